#!/usr/bin/env python3
"""Tests whether a change made training steps or whole runs slower, by running two builds in turn many times.

    tools/bench/pairs.py OLD/bench_step NEW/bench_step [--pairs 30] [--case "6 8 400"] ...
    tools/bench/pairs.py OLD/finch NEW/finch [--pairs 30] [--case evaluations|ranks|start] ...

A case of bench_step is "LAYERS BATCH STEPS" (tools/bench/step.cpp). Its result is the processor time per step of one
thread. The cases of finch are
  evaluations  24 000 evaluations that cost nothing, on 2 ranks: the wall time per evaluation, from the first result to
               the last
  ranks        a training on 2 ranks: the time per sample, from the speed that the run records
  start        a run of one evaluation: its wall time
Prints for each case the median of old / new (above 1: the new build is faster), the 95 % interval of the median by
bootstrapping the pairs, and the least and largest ratio.
"""
import argparse
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import tempfile
import time

CASES = ["2 8 400", "6 8 200", "6 64 40", "6 256 10"]


FUNCTION = """
name: run
search:
  objective: {function: sphere}
  propagator: {genetic: {population: 8}}
  exchange: {kind: pollination, probability: 0.9}
  budget: {evaluations: %d}
workers: {islands: %d}
log: {level: warning}
"""
TRAINING = """
name: run
data: {kind: generated, samples: 6000, validation_samples: 500}
model:
  - conv: {channels: 10, kernel: 3, padding: same, activation: relu, repeat: 6}
  - flatten
  - linear: {units: classes}
training: {epochs: 1, optimizer: adadelta, batch_size: 64}
workers: {threads: 1}
log: {level: warning}
"""
RUNS = {"evaluations": ("evolve", 2, FUNCTION % (24_000, 2)), "ranks": ("train", 2, TRAINING), "start": ("evolve", 1,
FUNCTION % (1, 1))}


class Finch:
    """Measures whole runs of finch."""

    def __init__(self, path):
        self.path = os.path.abspath(path)

    def seconds(self, case):
        import h5py
        import numpy
        verb, ranks, config = RUNS[case]
        folder = pathlib.Path(tempfile.mkdtemp(prefix="finch-bench-"))
        (folder / "run.yaml").write_text(config)
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        begin = time.monotonic()
        subprocess.run(["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", self.path, verb, "run.yaml", "--run", "run"], cwd=folder, env=environment,
                       check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - begin
        with h5py.File(folder / "run/population.h5", "r") as file:
            individuals = file["individuals"]
            if case == "evaluations":
                finished = numpy.sort(individuals["finished"])
                seconds = (finished[-1] - finished[0]) / (len(finished) - 1)
            elif case == "ranks":
                seconds = 1 / float(individuals["samples_per_second"][0])
        shutil.rmtree(folder)
        return seconds


class Program:
    """Measures bench_step, with a new process for each measurement, since the placement of memory pages differs by
    process.

    Each process runs the case once before the measurement.
    """

    def __init__(self, path):
        self.path = path

    def seconds(self, case):
        with subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, OMP_NUM_THREADS="1")) as process:
            clock = ~process.pid << 3 | 2  # clock_getcpuclockid(3)
            for _ in range(2):
                begin = time.clock_gettime(clock)
                process.stdin.write(case + "\n")
                process.stdin.flush()
                process.stdout.readline()
            seconds = time.clock_gettime(clock) - begin
            process.stdin.close()
        return seconds / int(case.split()[2])


def interval(ratios, rounds=4000):
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[rounds // 40], medians[-rounds // 40]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--case", action="append")
    arguments = parser.parse_args()
    whole = os.path.basename(arguments.new) == "finch"
    kind = Finch if whole else Program
    old, new = kind(arguments.old), kind(arguments.new)
    for case in arguments.case or (RUNS if whole else CASES):
        old.seconds(case), new.seconds(case)  # warm-up
        ratios, spent = [], []
        for pair in range(arguments.pairs):
            first, second = (old, new) if pair % 2 == 0 else (new, old)
            times = {first: first.seconds(case), second: second.seconds(case)}
            ratios.append(times[old] / times[new])
            spent.append(times[new])
        low, high = interval(ratios)
        print(f"{case:>12}: old/new {statistics.median(ratios):.3f} [{low:.3f} ... {high:.3f}], "
              f"all {min(ratios):.3f} ... {max(ratios):.3f}, "
              f"{1e6 * statistics.median(spent):.3g} us, new", flush=True)


if __name__ == "__main__":
    main()
