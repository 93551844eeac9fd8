"""Checks configs/gallery/cifar10_residual.yaml on generated images of 32 x 32 x 3, and on MNIST padded to that size if FINCH_MNIST is
set. Networks of the configuration's search space must train. A training that USR2 stops in mid-epoch ends with the same
bits as an uninterrupted training. One and two ranks agree within rounding."""
import gzip
import os
import pathlib
import signal

import h5py
import numpy as np

from harness import SOON, SOURCE, Folder, check, curves, end, individuals, outcome_words, passed, ranks_of, wait_for

CLASSES, SIDE = 10, 32


def write(path, images, labels):
    """Writes `images` (N, 32, 32, 3) in CIFAR's binary format: per image the label, then the colour planes."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.concatenate([labels[:, None].astype(np.uint8), planes.astype(np.uint8)], axis=1).tobytes())


def generated(count, generator):
    """Draws one bar per image over noise. The label determines the angle of the bar; its colour and position are
    random."""
    labels = generator.integers(0, CLASSES, count)
    angles = (labels * np.pi / CLASSES)[:, None, None]
    row, column = np.mgrid[:SIDE, :SIDE] - SIDE / 2
    middle = generator.uniform(-5, 5, (2, count, 1, 1))
    along = (row - middle[0]) * np.cos(angles) + (column - middle[1]) * np.sin(angles)
    across = (row - middle[0]) * np.sin(angles) - (column - middle[1]) * np.cos(angles)
    bars = (np.abs(across) < 2) & (np.abs(along) < 12)
    colours = generator.uniform(120, 255, (count, 1, 1, 3))
    return np.clip(bars[..., None] * colours + generator.normal(20, 15, (count, SIDE, SIDE, 3)), 0, 255), labels


def padded_mnist(folder, images, labels, count):
    def read(name, skip):
        path = next(path for path in (folder / name, folder / (name + ".gz")) if path.exists())
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            return np.frombuffer(file.read()[skip:], dtype=np.uint8)
    grey = np.pad(read(images, 16).reshape(-1, 28, 28)[:count], ((0, 0), (2, 2), (2, 2)))
    return np.repeat(grey[..., None], 3, axis=3), read(labels, 8)[:count]


def write_sets(folder, training, test):
    write(folder / "cifar-10-batches-bin/test_batch.bin", *test)
    images, labels = training
    for number, part in enumerate(np.array_split(np.arange(len(labels)), 5), 1):
        write(folder / f"cifar-10-batches-bin/data_batch_{number}.bin", images[part], labels[part])


SMALL = ("--set", "training.epochs=3", "--set", "training.batch_size=32", "--set", "workers.threads=1", "--set", "search.pruning=none", "--set", "search.final=none",
         "--set", "checkpoint={archive_seconds: 0.2, training_seconds: 0.5}", "--set", "search.space.width=16", "--set", "search.space.width2=32",
         "--set", "search.space.width3=64", "--set", "search.space.depth=1", "--set", "search.space.depth2=0")


def outcomes(run):
    words = outcome_words(run)
    return [words[row["outcome"]] for row in individuals(run).values()]


with Folder() as folder:
    generator = np.random.default_rng(1)
    write_sets(folder.path / "generated", generated(900, generator), generated(200, generator))
    (folder.path / "run.yaml").symlink_to(SOURCE / "configs/gallery/cifar10_residual.yaml")
    data = ("--set", "data.path=generated", "--set", "data.validation_samples=300")
    one = ("--set", "search.budget.evaluations=1")

    folder.run(2, "evolve", "run.yaml", "--run", "some", *data, *SMALL, "--set", "search.budget.evaluations=3")
    check(outcomes(folder.path / "some") == ["evaluated"] * 3, f"{outcomes(folder.path / 'some')}")
    passed("networks of the space train on generated images")

    folder.run(2, "evolve", "run.yaml", "--run", "straight", *data, *SMALL, *one)
    process = folder.start(2, "evolve", "run.yaml", "--run", "broken", *data, *SMALL, *one, *SOON)
    wait_for(lambda: list(folder.path.glob("broken/state/training-*.h5")) or process.poll() is not None, "a snapshot")
    for pid in ranks_of(process) if process.poll() is None else []:
        os.kill(pid, signal.SIGUSR2)
    check(end(process) == 75, f"USR2 ended with {process.returncode}\n{folder.output()}")
    folder.run(2, "evolve", "run.yaml", "--run", "broken", *data, *SMALL, *one)
    straight, broken = curves(folder.path / "straight"), curves(folder.path / "broken")
    check(straight == broken, f"{straight} without interruption, {broken} with")
    passed("a training that is stopped and resumed ends with the same bits")

    def weights_after_steps(ranks):
        """Trains one epoch of 50 steps on `ranks` ranks and returns the weights. All calls train the same
        individual."""
        run = f"ranks-{ranks}"
        folder.run(ranks, "evolve", "run.yaml", "--run", run, *data, *SMALL, *one, "--set", f"workers.ranks={ranks}", "--set", "training.epochs=1",
                   "--set", "training.batch_size=12", "--set", "search.space.lr={real: [0.001, 0.5], value: 0.001}", "--set", "search.space.activation=gelu")  # rounding may switch a unit of relu
        with h5py.File(folder.path / run / "models/best.h5", "r") as file:
            found = {}
            file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) and item.dtype == np.float32 else None)
            return found

    first, second = weights_after_steps(1), weights_after_steps(2)
    check(first.keys() == second.keys() and len(first) > 20, f"{sorted(first)} and {sorted(second)}")
    apart = max(np.abs(first[name] - second[name]).max() / max(np.abs(first[name]).max(), 1e-3) for name in first)
    check(apart < 1e-5, f"after 50 steps the weights of 1 and 2 ranks are {apart:.2g} of their largest entry apart")
    passed(f"after 50 steps on 1 and 2 ranks weights and statistics are {apart:.1g} of their largest entry apart")

    mnist = os.environ.get("FINCH_MNIST")
    if mnist:
        folder_of = pathlib.Path(mnist)
        write_sets(folder.path / "mnist", padded_mnist(folder_of, "train-images-idx3-ubyte", "train-labels-idx1-ubyte", 2500),
                   padded_mnist(folder_of, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 500))
        folder.run(2, "evolve", "run.yaml", "--run", "on_mnist", *SMALL, *one, "--set", "data.path=mnist", "--set", "data.validation_samples=500",
                   "--set", "search.space.lr=0.1")
        row = next(iter(individuals(folder.path / "on_mnist").values()))
        check(row["accuracy"] > 0.8, f"{row['accuracy']:.1%} on padded MNIST")
        passed(f"on MNIST padded to 32 x 32 x 3 it knows {row['accuracy']:.1%} after 3 epochs of 2 000 images")
    else:
        print("skipped in part: FINCH_MNIST names no folder with MNIST")
