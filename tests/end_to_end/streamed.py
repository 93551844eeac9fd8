"""Checks images that are streamed from a file. Results have the same bits as with images in memory, for any number of
threads, on one and two ranks, and after USR2 and a resume. The test also truncates the file during a training, and
trains on a set that is larger than the permitted memory."""
import os
import pathlib
import resource
import signal
import subprocess

import h5py
import numpy as np

from harness import FINCH, SOON, Folder, check, curves, end, environment, passed, ranks_of, wait_for

CONFIG = """
name: streamed
seed: 5
data: {kind: hdf5, path: images.h5, validation_samples: 500, augmentation: {shift: 1}}
model: [{conv: {channels: 4, kernel: 3, activation: relu}}, {max_pool: {kernel: 2}}, flatten, linear]
training: {epochs: 2, batch_size: 32, optimizer: adam, learning_rate: $lr}
workers: {ranks: $ranks, threads: 1}
search: {propagator: random, budget: {evaluations: 2}, space: {lr: {real: [0.001, 0.01], scale: log}}}
checkpoint: {archive_seconds: 0.2, training_seconds: 0.2}
"""
STREAMED = ("--set", "data.memory=streamed")
SIDE = 12


def write_images(path, count):
    """Writes `count` training images (SIDE, SIDE, 3) of bytes, and 400 test images: noise with a bright row at 2 *
    class."""
    generator = np.random.default_rng(2)
    with h5py.File(path, "w") as file:
        for group, size in (("training", count), ("test", 400)):
            labels = generator.integers(0, 5, size)
            images = generator.integers(0, 180, (size, SIDE, SIDE, 3), dtype=np.uint8)
            images[np.arange(size), 2 * labels] += 70
            file[f"{group}/images"], file[f"{group}/labels"] = images, labels


def results(run):
    """Returns the curves of all individuals, and the bytes of all arrays in models/best.h5 (weights, predictions,
    scores)."""
    with h5py.File(pathlib.Path(run) / "models/best.h5") as file:
        arrays = {}
        file.visititems(lambda name, item: arrays.__setitem__(name, item[()].tobytes()) if isinstance(item, h5py.Dataset) and
                        not name.startswith("finch") else None)
    return curves(run), arrays


def equal(one, other):
    return one[0] == other[0] and one[1].keys() == other[1].keys() and all(one[1][name] == other[1][name] for name in one[1])


def begin(folder, run, *settings):
    process = folder.start(2, "evolve", "two.yaml", "--run", run, *STREAMED, *SOON, *settings)
    wait_for(lambda: list((folder.path / run).glob("state/training-*.h5")) or process.poll() is not None, "a snapshot")
    check(process.poll() is None, f"the training ended too soon\n{folder.output()}")
    return process


def large_set(path, count):
    """Writes `count` black images to a sparse file: it has the full length, but takes no disk space."""
    with h5py.File(path, "w") as file:
        for group, size in (("training", count), ("test", 100)):
            space = h5py.h5s.create_simple((size, 64, 64, 3))
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            h5py.h5d.create(file.create_group(group).id, b"images", h5py.h5t.STD_U8LE, space, how)
            file[f"{group}/images"].attrs["axes"] = "NHWC"
            file[f"{group}/labels"] = np.arange(size) % 3


def train_within(folder, limit, *settings):
    """Trains with at most `limit` bytes of address space (0: unlimited). Returns exit code and output."""
    def before():
        if limit > 0:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    done = subprocess.run([FINCH, "train", "large.yaml", "--fresh", *settings], cwd=folder.path, env=environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=before, timeout=900)
    return done.returncode, done.stdout


def enough_for(folder):
    """Returns the first limit, in steps of 100 MiB, with which a training on a small set succeeds."""
    for limit in range(300 << 20, 4 << 30, 100 << 20):
        if train_within(folder, limit, "--set", "data.path=small.h5")[0] == 0:
            return limit
    check(False, "not even 4 GiB of addresses do for a small training")


with Folder() as folder:
    write_images(folder.path / "images.h5", 6000)
    folder.write("one.yaml", CONFIG.replace("$ranks", "1"))
    folder.write("two.yaml", CONFIG.replace("$ranks", "2"))

    for name, ranks in (("one", 1), ("two", 2)):
        folder.run(ranks, "evolve", f"{name}.yaml", "--run", f"runs/{name}")
        whole = results(folder.path / f"runs/{name}")
        for threads in (1, 2, 8):
            run = f"runs/{name}-{threads}"
            folder.run(ranks, "evolve", f"{name}.yaml", "--run", run, *STREAMED, "--set", f"data.prefetch.threads={threads}")
            check(equal(results(folder.path / run), whole), f"{threads} threads on {ranks} rank(s) gave other bits than memory")
    passed("losses, weights and predictions have the bits of images in memory, by 1, 2 and 8 threads, on 1 and 2 ranks")

    long = ("--set", "training.epochs=100", "--set", "search.budget={evaluations: 1}")
    folder.run(2, "evolve", "two.yaml", "--run", "runs/straight", *long)
    straight = results(folder.path / "runs/straight")
    process = begin(folder, "runs/stopped", *long)
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGUSR2)
    check(end(process) == 75, f"a start that USR2 stopped\n{folder.output()}")
    folder.run(2, "evolve", "two.yaml", "--run", "runs/stopped", *STREAMED, *long, "--set", "data.prefetch={threads: 5, batches: 9}")
    check(equal(results(folder.path / "runs/stopped"), straight), "the bits differ after USR2")
    passed("stopped by USR2 in a training, and gone on with to the same bits, with other threads")

    path = folder.path / "images.h5"
    bytes_before = path.read_bytes()
    process = begin(folder, "runs/cut", *long)
    os.truncate(path, len(bytes_before) // 3)
    check(end(process) == 75, f"a start whose data were cut short\n{folder.output()}")
    said = [line for line in folder.output().splitlines() if "images.h5: " in line]
    check(said and ("ends before byte" in said[-1] or "was changed" in said[-1]), f"nothing is said of the file\n{folder.output()}")
    check("images.h5" in folder.run(2, "evolve", "two.yaml", "--run", "runs/cut", *STREAMED, *long, expect=2), "half a file")
    path.write_bytes(bytes_before)
    folder.run(2, "evolve", "two.yaml", "--run", "runs/cut", *STREAMED, *long)
    check(equal(results(folder.path / "runs/cut"), straight), "the bits differ after the file was cut short")
    passed("a file that is cut short stops the run with 75 and its name; with the file back it ends with the same bits")

    large_set(folder.path / "small.h5", 400)
    folder.write("large.yaml", "name: large\ndata: {kind: hdf5, path: large.h5, training_samples: 256, validation_samples: 64}\n"
                 "model: [flatten, linear]\ntraining: {epochs: 1, batch_size: 32, optimizer: adam, learning_rate: 0.01}\n"
                 "workers: {threads: 1}\nsearch: {budget: {evaluations: 1}}\n")
    limit = enough_for(folder) + (100 << 20)
    count = limit * 5 // 4 // (64 * 64 * 3)
    large_set(folder.path / "large.h5", count)
    code, said = train_within(folder, limit)
    check(code == 2 and "data.memory: streamed" in said, f"whole, it ended with {code}\n{said}")
    code, said = train_within(folder, limit, *STREAMED)
    check(code == 0, f"streamed, it ended with {code}\n{said}")
    passed(f"a set of {count * 64 * 64 * 3 >> 20} MiB does not fit into {limit >> 20} MiB of addresses, which says so; streamed it does")
