#!/usr/bin/env python3
"""Compares the validation accuracy of Finch and PyTorch on MNIST, for one genome of the tutorial's search and 5 seeds.

    FINCH_MNIST=DIR tools/bench/accuracy.py [FINCH] [conv_layers=4 activation=relu lr=1.0 gamma=0.9]

Finch trains in float32, and in bfloat16 if the processor supports it. Each training has 10 000 training images, 10 000
other images for validation, 2 epochs, batch size 16, Adadelta, and a learning rate that is multiplied by gamma after
each epoch. Needs PyTorch (tools/install.sh --peers). Finch and PyTorch draw images, weights and sample orders from
different random numbers, so only the means are comparable.
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
import torch

FINCH = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/finch")
GENES = dict(word.split("=") for word in (sys.argv[2:] or ["conv_layers=4", "activation=relu", "lr=1.0", "gamma=0.9"]))
MNIST = pathlib.Path(os.environ["FINCH_MNIST"])
CONFIG = pathlib.Path(__file__).resolve().parents[2] / "configs/mnist.yaml"
SEEDS = range(1, 6)
SAMPLES, EPOCHS, BATCH = 10000, 2, 16


def finch(folder, seed, precision):
    """Trains the genome with 2 ranks. Returns the validation accuracy of the best epoch."""
    settings = [f"seed={seed}", f"data.path={MNIST}", f"data.training_samples={SAMPLES}", f"data.validation_samples={SAMPLES}",
                f"training.epochs={EPOCHS}", f"training.batch_size={BATCH}",
                f"training.precision={precision}", "search.space.lr={real: [0.01, 2.0], scale: log}"]
    words = [word for setting in settings for word in ("--set", setting)]
    words += [word for name, value in GENES.items() for word in ("--gene", f"{name}={value}")]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    subprocess.run(["mpirun", "-n", "2", "--oversubscribe", FINCH, "train", str(CONFIG), "--run", f"{precision}-{seed}", *words],
                   cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    with h5py.File(pathlib.Path(folder) / f"{precision}-{seed}" / "population.h5", "r") as file:
        return float(file["individuals"]["accuracy"][0])


def read_idx(name, offset):
    with gzip.open(MNIST / f"{name}.gz") as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=offset)


def pytorch(images, labels, seed):
    """Trains the same genome with PyTorch's modules and defaults. Returns the validation accuracy of the best epoch."""
    torch.manual_seed(seed)
    order = torch.randperm(len(labels))
    train, check = order[:SAMPLES], order[SAMPLES:2 * SAMPLES]
    activation = {"relu": torch.nn.ReLU, "sigmoid": torch.nn.Sigmoid, "tanh": torch.nn.Tanh}[GENES["activation"]]
    layers, channels = [], 1
    for _ in range(int(GENES["conv_layers"])):
        layers += [torch.nn.Conv2d(channels, 10, 3, padding=1), activation()]
        channels = 10
    model = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(10 * 28 * 28, 10))
    optimizer = torch.optim.Adadelta(model.parameters(), lr=float(GENES["lr"]))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, float(GENES["gamma"]))
    best = (float("inf"), 0.0)
    for _ in range(EPOCHS):
        for batch in train[torch.randperm(SAMPLES)].split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            logits = torch.cat([model(images[batch]) for batch in check.split(500)])
        loss = torch.nn.functional.cross_entropy(logits, labels[check]).item()
        if loss < best[0]:  # false for NaN
            best = loss, (logits.argmax(1) == labels[check]).float().mean().item()
    return best[1]


def line(name, values):
    shown = " ".join(f"{100 * value:.2f}" for value in values)
    print(f"{name:8} mean {100 * statistics.mean(values):.2f} %  ({shown}; deviation {100 * statistics.stdev(values):.2f})",
          flush=True)


print(f"genome {GENES}, seeds {list(SEEDS)}, PyTorch {torch.__version__}")
pixels = torch.tensor(read_idx("train-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28).astype(numpy.float32))
images = (pixels / 255 - 0.1307) / 0.3081
labels = torch.tensor(read_idx("train-labels-idx1-ubyte", 8).astype(numpy.int64))
with tempfile.TemporaryDirectory(prefix="finch-bench-") as folder:
    ours = [finch(folder, seed, "float32") for seed in SEEDS]
    line("Finch", ours)
    if ", no bfloat16" not in subprocess.run([FINCH, "doctor"], stdout=subprocess.PIPE, text=True).stdout:
        rounded = [finch(folder, seed, "bfloat16") for seed in SEEDS]
        line("bfloat16", rounded)
        print(f"bfloat16 − float32: {100 * (statistics.mean(rounded) - statistics.mean(ours)):+.2f} points", flush=True)
theirs = [pytorch(images, labels, seed) for seed in SEEDS]
line("PyTorch", theirs)
print(f"Finch − PyTorch: {100 * (statistics.mean(ours) - statistics.mean(theirs)):+.2f} points")
