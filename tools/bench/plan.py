#!/usr/bin/env python3
"""plan.py FINCH CONFIG RANKS [--set KEY=VALUE …]: compares the estimate of finch plan --measure with a search.

Plans the search on RANKS ranks of this machine. Then runs the search once for each size of workers that finch plan
measured, in a temporary folder, and prints the wall time and the estimate."""
import argparse
import os
import pathlib
import re
import subprocess
import tempfile
import time

ROW = re.compile(r"^ +(\d+)  .*  (\S+)  +\S+  +\w+$", re.MULTILINE)  # ranks, node-hours


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
        print(f"planned in {seconds:.0f} s\n{'ranks':>6} {'estimate s':>11} {'search s':>9} {'search / estimate':>18}")
        for ranks, node_hours in ROW.findall(plan[plan.index(" ranks  threads  genomes"):]):
            run = pathlib.Path(folder) / f"run-{ranks}"
            _, actual = finch(options, folder, "evolve", options.config, "--run", run, "--set", f"workers.ranks={ranks}")
            estimate = 3600 * float(node_hours)  # on one node
            print(f"{ranks:>6} {estimate:>11.0f} {actual:>9.0f} {actual / estimate:>18.2f}", flush=True)


main()
