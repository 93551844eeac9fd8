#!/usr/bin/env python3
"""Compares streaming images from disk with loading them into memory: samples per second and peak memory.

    tools/bench/streaming.py [FINCH] [--gigabytes 2] [--rounds 5] [--limit MIB] [--folder /var/tmp]

Writes a contiguous HDF5 file of random bytes (N, 32, 32, 3). Trains a small and a larger network for one epoch on a
part of the file. Each round trains once with the images in memory, and once streamed by 1, 2 and 8 threads each. Prints
the median, and in brackets the smallest and the largest value. The page cache is not dropped between the starts, so
pages of the file may already be in memory. With `--limit`, every streamed start has at most MIB MiB of address space
(ulimit -v).
"""
import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import tempfile

import h5py
import numpy

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_hwloc_base_binding_policy="none", PMIX_MCA_gds="hash")
MODELS = {
    "small": "[{conv: {channels: 4, kernel: 3, stride: 4}}, flatten, linear]",
    "larger": "[{conv: {channels: 16, kernel: 3, activation: relu}}, {max_pool: {kernel: 2}}, {conv: {channels: 16, kernel: 3, "
              "activation: relu}}, {max_pool: {kernel: 2}}, flatten, linear]",
}
SAMPLES = {"small": 200000, "larger": 40000}
WAYS = {"whole": (), "1 thread": (1,), "2 threads": (2,), "8 threads": (8,)}


def write_images(path, images):
    generator = numpy.random.default_rng(1)
    with h5py.File(path, "w") as file:
        for group, count in (("training", images), ("test", 1000)):
            made = file.create_dataset(f"{group}/images", (count, 32, 32, 3), numpy.uint8)
            made.attrs["axes"] = "NHWC"
            for begin in range(0, count, 20000):
                end = min(begin + 20000, count)
                made[begin:end] = generator.integers(0, 256, (end - begin, 32, 32, 3), dtype=numpy.uint8)
            file[f"{group}/labels"] = generator.integers(0, 10, count, dtype=numpy.uint8)


def train(finch, folder, model, threads, limit):
    """Trains once. Returns the samples per second that the run recorded, and the peak resident memory in MiB."""
    (folder / "bench.yaml").write_text(
        f"name: bench\ndata: {{kind: hdf5, path: bench.h5, training_samples: {SAMPLES[model]}, validation_samples: 2000}}\n"
        f"model: {MODELS[model]}\ntraining: {{epochs: 1, batch_size: 64, optimizer: adam, learning_rate: 0.001}}\n"
        "workers: {threads: 1}\nsearch: {budget: {evaluations: 1}}\n")
    streamed = ["--set", "data.memory=streamed", "--set", f"data.prefetch.threads={threads[0]}"] if threads else []

    def before():
        if threads and limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit << 20, limit << 20))
    process = subprocess.Popen([finch, "train", "bench.yaml", "--fresh", *streamed], cwd=folder, env=ENVIRONMENT,
                               stdout=open(folder / "output", "w"), stderr=subprocess.STDOUT, preexec_fn=before)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"finch ended with {process.returncode}\n{(folder / 'output').read_text()}")
    with h5py.File(folder / "runs/bench-train/population.h5") as file:
        return float(file["individuals"]["samples_per_second"][0]), usage.ru_maxrss / 1024


def text(values):
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("finch", nargs="?", default="build/finch")
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=0, help="MiB of addresses of each streamed start")
    parser.add_argument("--folder", default="/var/tmp")
    given = parser.parse_args()
    finch = os.path.abspath(given.finch)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="finch-streaming-", dir=given.folder))
    try:
        write_images(folder / "bench.h5", int(given.gigabytes * 1e9 / 3072))
        print(f"{(folder / 'bench.h5').stat().st_size / 1e9:.2f} GB; medians of {given.rounds}, least to largest", flush=True)
        for model in MODELS:
            found = {way: [] for way in WAYS}
            for _ in range(given.rounds):
                for way, threads in WAYS.items():
                    found[way].append(train(finch, folder, model, threads, given.limit))
            for way, results in found.items():
                print(f"{model:8} {way:10} samples/s {text([speed for speed, _ in results]):28} peak MiB {text([peak for _, peak in results])}",
                      flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
