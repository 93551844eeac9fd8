#!/usr/bin/env python3
"""plan.py FINCH CONFIG RANKS [--set KEY=VALUE …]: compares the forecast of finch plan --measure with a search.

Plans the search on RANKS ranks of this machine. Then runs the search once for each size of workers that finch plan
measured, in a temporary folder, and prints the wall time and the forecast."""
import argparse
import os
import pathlib
import re
import subprocess
import tempfile
import time

UNITS = {"hours": 3600, "minutes": 60, "seconds": 1}
ROW = re.compile(r"^ +(\d+) +(\d+) +([\d.e+-]+) \(([\d.e+-]+) to ([\d.e+-]+)\) +([\d.e+-]+) +([\d.e+]+)(?: \([^)]*\))? +(\w+)$", re.MULTILINE)


def finch(options, folder, *arguments):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    settings = [word for setting in options.set for word in ("--set", setting)]
    command = ["mpirun", "-n", str(options.ranks), "--oversubscribe", "--bind-to", "none", options.finch, *map(str, arguments), *settings]
    begin = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("finch", type=os.path.abspath)
    parser.add_argument("config", type=os.path.abspath)
    parser.add_argument("ranks", type=int)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--measure-seconds", default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plan, seconds = finch(options, folder, "plan", options.config, "--measure", "--measure-seconds", options.measure_seconds)
        print(plan)
        unit = UNITS[re.search(r"ranks +workers +(hours|minutes|seconds)", plan)[1]]
        print(f"planned in {seconds:.0f} s\n{'ranks':>6} {'forecast s (90 %)':>28} {'search s':>9} {'search / forecast':>18}")
        for ranks, _, middle, low, high, *_ in ROW.findall(plan):
            run = pathlib.Path(folder) / f"run-{ranks}"
            _, actual = finch(options, folder, "evolve", options.config, "--run", run, "--set", f"workers.ranks={ranks}")
            forecast, low, high = (float(value) * unit for value in (middle, low, high))
            print(f"{ranks:>6} {forecast:>10.0f} ({low:.0f} to {high:.0f}) {actual:>9.0f} {actual / forecast:>18.2f}", flush=True)


main()
