#!/usr/bin/env python3
"""Measures the overhead of `finch train --profile`, by training with and without it in turn many times, on one rank.

    tools/bench/profile_cost.py [FINCH] [--pairs 15] [--batch 8 64] [--samples 3000] [--program MORE_FINCH]

Prints for each batch size the median of the ratio "with / without", and its 95 % interval by bootstrapping the pairs.
The times are processor times of the whole process: other work on the machine changes them less than wall times. The
network is the tutorial's with two convolutions. Its steps are short, so the share of the profile's clock calls is
large. With --program, the script compares FINCH with MORE_FINCH, both without --profile. This shows whether a change
slowed trainings without --profile.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

from pairs import interval

CONFIG = """
name: profile
data: {kind: generated, samples: %d, validation_samples: 100}
model:
  - conv: {channels: 10, kernel: 3, padding: same, activation: relu, repeat: 2}
  - flatten
  - linear: {units: classes}
training: {epochs: 4, optimizer: adadelta, batch_size: %d}
workers: {threads: 1, device: cpu}
log: {level: warning}
"""


def seconds(program, folder, batch, name, *more):
    run = pathlib.Path(folder) / name
    process = subprocess.Popen([program, "train", f"{batch}.yaml", "--run", str(run), "--fresh", *more], cwd=folder, stdout=subprocess.DEVNULL,
                               env=dict(os.environ, OMP_NUM_THREADS="1"))
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"finch train: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("finch", nargs="?", default="build/finch")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--program")
    options = parser.parse_args()
    first = os.path.abspath(options.finch)
    second, flags = (os.path.abspath(options.program), []) if options.program else (first, ["--profile"])
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as folder:
        for batch in options.batch:
            (pathlib.Path(folder) / f"{batch}.yaml").write_text(CONFIG % (options.samples, batch))
            ratios, spent = [], []
            for pair in range(options.pairs):
                turns = [(first, "without", []), (second, "with", flags)]
                times = {name: seconds(program, folder, batch, name, *more) for program, name, more in turns[::1 if pair % 2 else -1]}
                ratios.append(times["with"] / times["without"])
                spent.append(times["without"])
            low, high = interval(ratios)
            print(f"batch {batch:4}: with/without {statistics.median(ratios):.4f} [{low:.4f} ... {high:.4f}], "
                  f"{statistics.median(spent):.2f} s without", flush=True)


if __name__ == "__main__":
    main()
