#!/usr/bin/env python3
"""Measures the overhead of Finch per evaluation, with a function that costs nothing (sphere).

    tools/bench/evaluations.py [FINCH] [REPETITIONS]

Prints the wall time per evaluation of all ranks together, in microseconds: over the whole run, and around 1 000, 20 000
and 100 000 known individuals. The run has 4 ranks and makes 102 000 evaluations. The ratios between these three times
should be below 2. The journals are on. The times come from the column `finished` of the individuals. The last 1 000
evaluations are shown separately: their leases shrink to one evaluation, so the leaders ask world rank 0 for every
evaluation.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import h5py
import numpy

FINCH = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/finch")
REPETITIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
RANKS = 4
WINDOW = 1000
MIDDLES = (1_000, 20_000, 100_000)
CONFIG = """
name: sphere
search:
  objective: {function: sphere}
  propagator: {genetic: {population: 8}}
  exchange: {kind: pollination, probability: 0.9}
  budget: {evaluations: 102000}
workers: {islands: 2}
log: {level: warning}
"""


def microseconds(finished, begin, end):
    """Returns the wall time per evaluation in µs, between result number `begin` and result number `end` of the run."""
    return (finished[end - 1] - finished[begin]) / (end - 1 - begin) * 1e6


def one_run(folder, number):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    subprocess.run(["mpirun", "-n", str(RANKS), "--oversubscribe", "--bind-to", "none", FINCH, "evolve", "sphere.yaml", "--run", f"run{number}"],
                   cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    with h5py.File(pathlib.Path(folder) / f"run{number}" / "population.h5", "r") as file:
        finished = numpy.sort(file["individuals"]["finished"])
    count = len(finished)
    around = [microseconds(finished, middle - WINDOW // 2, middle + WINDOW // 2) for middle in MIDDLES]
    return (microseconds(finished, 0, count), *around, microseconds(finished, count - WINDOW, count))


def spread(values):
    return f"{statistics.median(values):7.2f} [{min(values):.2f} … {max(values):.2f}]"


with tempfile.TemporaryDirectory(prefix="finch-bench-") as folder:
    (pathlib.Path(folder) / "sphere.yaml").write_text(CONFIG)
    runs = [one_run(folder, number) for number in range(REPETITIONS)]
print(f"{RANKS} ranks on {os.cpu_count()} cores, sphere, 102 000 evaluations, {REPETITIONS} runs, median [least … most]")
print(f"all evaluations:          {spread([run[0] for run in runs])} µs per evaluation")
for place, middle in enumerate(MIDDLES, 1):
    print(f"at {middle:7} individuals:   {spread([run[place] for run in runs])} µs per evaluation")
print(f"the last 1 000:           {spread([run[-1] for run in runs])} µs per evaluation")
for place, middle in enumerate(MIDDLES[1:], 2):
    print(f"ratio {middle:7} / 1 000:   {spread([run[place] / run[1] for run in runs])}")
