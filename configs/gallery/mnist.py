"""The options and the data of the PyTorch examples in the gallery. FINCH_MNIST is the folder with MNIST's IDX files,
which may be gzipped."""
import argparse
import gzip
import os
import pathlib
import sys

import torch


def read_idx(folder, name):
    path = next((path for path in (pathlib.Path(folder) / name, pathlib.Path(folder) / (name + ".gz")) if path.exists()), None)
    if path is None:
        sys.exit(f"{folder}: holds no {name} or {name}.gz; tools/fetch_mnist.sh fetches MNIST")
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        data = file.read()
    dimensions = data[3]
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(dimensions)]
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions:]), dtype=torch.uint8).reshape(shape)


def read_training_set(folder, count):
    """Returns `count` images (count, 1, 28, 28) as floats from 0 to 1, and their labels."""
    images, labels = read_idx(folder, "train-images-idx3-ubyte"), read_idx(folder, "train-labels-idx1-ubyte")
    if len(images) < count or len(images) != len(labels):
        sys.exit(f"{folder}: has {len(images)} images and {len(labels)} labels; expected as many of both, and {count} or more")
    return images[:count, None].float() / 255, labels[:count].long()


def parse_options(description, **genes):
    """Returns the command line's options: the genes, which have a type each, and those that all examples have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", default=os.environ.get("FINCH_MNIST"))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=6000)
    for name, kind in genes.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    options = parser.parse_args()
    if not options.data:
        parser.error("--data: expected the folder with MNIST's files, or FINCH_MNIST")
    return options
