#!/usr/bin/env python3
"""Data-parallel efficiency on this machine: one training on 1 and on 2 ranks, the same global batch, in turn.

    tools/bench/ranks.py [FINCH] [REPETITIONS]

Prints samples per second (of the leader's clock, validation included) and the efficiency: speed on 2 ranks ÷ (2 × speed on 1). Only of use
where both ranks have a core each and nothing else runs.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import h5py

FINCH = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/finch")
REPETITIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
CONFIG = """
name: ranks
data: {kind: generated, samples: 6000, validation_samples: 500}
model:
  - conv: {channels: 10, kernel: 3, padding: same, activation: relu, repeat: 6}
  - flatten
  - linear: {units: classes}
training: {epochs: 1, optimizer: adadelta, batch_size: %d}
workers: {threads: 1}
log: {level: warning}
"""


def speed(folder, batch, ranks, number):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    run = f"run{batch}-{ranks}-{number}"
    subprocess.run(["mpirun", "-n", str(ranks), "--bind-to", "core", FINCH, "train", f"batch{batch}.yaml", "--run", run],
                   cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    with h5py.File(pathlib.Path(folder) / run / "population.h5", "r") as file:
        return float(file["individuals"]["samples_per_second"][0])


with tempfile.TemporaryDirectory(prefix="finch-bench-") as folder:
    for batch in (16, 64, 256):
        (pathlib.Path(folder) / f"batch{batch}.yaml").write_text(CONFIG % batch)
        one, two = [], []
        for number in range(REPETITIONS):
            one.append(speed(folder, batch, 1, number))
            two.append(speed(folder, batch, 2, number))
        efficiency = [b / (2 * a) for a, b in zip(one, two)]
        print(f"global batch {batch:4}: 1 rank {statistics.median(one):8.0f}, 2 ranks {statistics.median(two):8.0f} samples/s, "
              f"efficiency {statistics.median(efficiency):.2f} [{min(efficiency):.2f} … {max(efficiency):.2f}]", flush=True)
