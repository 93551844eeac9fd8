#!/usr/bin/env python3
"""Compares trainings with Winograd's F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3) on CPUs: five seeds, two data sets.

    FINCH_MNIST=DIR tools/bench/tile_accuracy.py [FINCH]

The data sets are MNIST, and the same digits in bright colours on dark noise, at 32 x 32 x 3 pixels: the size of CIFAR. Each
training has 10 000 training images, 10 000 other images for validation, the wide network of tools/bench/step.py, batch
size 32 and 3 epochs of Adam. The two trainings of a seed have the same initial weights and orders of samples. Printed are
the validation accuracies, their means and deviations over the seeds, and the mean and deviation of the differences.
Needs Python 3 with numpy and h5py.
"""
import gzip
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy

FINCH = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/finch")
MNIST = pathlib.Path(os.environ["FINCH_MNIST"])
SAMPLES = 10000
SEEDS = range(1, 6)
CONFIG = """
data:
  kind: hdf5
  path: {path}
  validation_samples: {samples}
model:
  - conv: {{channels: 32, activation: relu, repeat: 2}}
  - max_pool
  - conv: {{channels: 64, activation: relu, repeat: 2}}
  - max_pool
  - conv: {{channels: 128, activation: relu, repeat: 2}}
  - max_pool
  - flatten
  - linear
training:
  epochs: 3
  batch_size: 32
  learning_rate: 0.001
  optimizer: adam
"""


def read_idx(name, offset):
    with gzip.open(MNIST / f"{name}.gz") as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=offset)


def coloured(digits):
    """Returns (n, 32, 32, 3) pixels: each digit in a random bright colour, shifted by up to 4 pixels, on a dark noisy background."""
    random = numpy.random.default_rng(1)
    images = random.integers(0, 96, (len(digits), 32, 32, 3)).astype(numpy.float32)
    colours = random.integers(128, 256, (len(digits), 1, 1, 3))
    for image, digit, colour in zip(images, digits, colours):
        row, column = random.integers(0, 5, 2)
        part = image[row:row + 28, column:column + 28]
        part += digit[:, :, None] / 255 * (colour - part)
    return images.astype(numpy.uint8)


def write_data(folder):
    digits = read_idx("train-images-idx3-ubyte", 16).reshape(-1, 28, 28)[:2 * SAMPLES]
    labels = read_idx("train-labels-idx1-ubyte", 8)[:2 * SAMPLES]
    for name, images in {"mnist": digits[..., None], "coloured": coloured(digits)}.items():
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file["training/images"] = images
            file["training/images"].attrs["axes"] = "NHWC"
            file["training/labels"] = labels.astype(numpy.int32)
        (folder / f"{name}.yaml").write_text(CONFIG.format(path=folder / f"{name}.h5", samples=SAMPLES))
        yield name


def accuracy(folder, name, tile, seed):
    run = f"{name}-{tile}-{seed}"
    environment = dict(os.environ, FINCH_WINOGRAD_TILE=str(tile), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run([FINCH, "train", f"{name}.yaml", "--run", run, "--set", f"seed={seed}"], cwd=folder, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)
    with h5py.File(folder / run / "population.h5", "r") as file:
        return 100 * float(file["individuals"]["accuracy"][0])


def text(values):
    return f"{statistics.mean(values):.3f} (deviation {statistics.stdev(values):.3f}; {' '.join(f'{value:.2f}' for value in values)})"


def main():
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as temporary:
        folder = pathlib.Path(temporary)
        for name in write_data(folder):
            pairs = [[accuracy(folder, name, tile, seed) for tile in (2, 4)] for seed in SEEDS]
            small, large = zip(*pairs)
            print(f"{name}: F(2 x 2) {text(small)} %; F(4 x 4) {text(large)} %; difference {text([b - a for a, b in pairs])} points", flush=True)


if __name__ == "__main__":
    main()
