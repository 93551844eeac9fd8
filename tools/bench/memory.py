#!/usr/bin/env python3
"""Compares the memory of the ranks on one node with the forecast of `finch plan`.

    tools/bench/memory.py FINCH CONFIG [RANKS …] [-- finch's options]

Runs a search. Every 20 ms, adds up the proportional set sizes of its ranks (PSS: a page that k processes share counts
1/k in each process). Prints the largest sum.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def sizes_of(parent, program):
    """Returns the PSS in KiB of each rank that `parent`, the process ID of an mpirun, started."""
    sizes = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "status").read_text()
            if f"\nPPid:\t{parent}\n" in status and os.readlink(entry / "exe") == program:
                sizes.append(int(re.search(r"^Pss:\s*(\d+)", (entry / "smaps_rollup").read_text(), re.MULTILINE)[1]))
        except (OSError, TypeError):
            continue
    return sizes


def measure(finch, config, ranks, options):
    planned = subprocess.run([finch, "plan", config, "--nodes", "1", "--ranks-per-node", str(ranks), *options], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    said = int(re.search(r"at most (\d+) MiB on a node", planned)[1])
    with tempfile.TemporaryDirectory() as folder:
        largest = []
        run = subprocess.Popen(["mpirun", "-n", str(ranks), finch, "evolve", config, "--run", folder + "/run", *options],
                               stdout=subprocess.DEVNULL)
        while run.poll() is None:
            largest = max(largest, sizes_of(run.pid, finch), key=sum)
            time.sleep(0.02)
        if run.returncode != 0:
            sys.exit(f"{config} on {ranks} ranks: exit code {run.returncode}")
    taken = sum(largest) / 1024
    print(f"{config} {ranks} ranks: planned {said} MiB, measured {taken:.0f} MiB, ratio {said / taken:.2f}; "
          f"each {', '.join(f'{size / 1024:.0f}' for size in sorted(largest))}", flush=True)


arguments = sys.argv[1:]
split = arguments.index("--") if "--" in arguments else len(arguments)
program, configuration, *counts = arguments[:split]
for count in map(int, counts or ["1", "2", "4"]):
    measure(os.path.realpath(program), configuration, count, arguments[split + 1:])
