#!/usr/bin/env python3
"""Memory of the ranks of one node beside what `finch plan` says.

    tools/bench/memory.py FINCH CONFIG [RANKS …] [-- finch's options]

Runs a search and adds up the largest resident memory (VmHWM) of its ranks. Pages that ranks share count in each.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def peaks_of(parent, program, peaks):
    """Updates the peak of each rank that `parent` (an mpirun) started, in KiB by process id."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "status").read_text()
            if f"\nPPid:\t{parent}\n" in status and os.readlink(entry / "exe") == program:
                peaks[entry.name] = int(re.search(r"VmHWM:\s*(\d+)", status)[1])
        except (OSError, TypeError):
            continue


def measure(finch, config, ranks, options):
    planned = subprocess.run([finch, "plan", config, "--nodes", "1", "--ranks-per-node", str(ranks), *options], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    said = int(re.search(r"at most (\d+) MiB on a node", planned)[1])
    with tempfile.TemporaryDirectory() as folder:
        peaks = {}
        run = subprocess.Popen(["mpirun", "-n", str(ranks), finch, "evolve", config, "--run", folder + "/run", *options],
                               stdout=subprocess.DEVNULL)
        while run.poll() is None:
            peaks_of(run.pid, finch, peaks)
            time.sleep(0.02)
        if run.returncode != 0:
            sys.exit(f"{config} on {ranks} ranks: exit code {run.returncode}")
    taken = sum(peaks.values()) / 1024
    print(f"{config} {ranks} ranks: planned {said} MiB, measured {taken:.0f} MiB, ratio {said / taken:.2f}; "
          f"each {', '.join(f'{peak / 1024:.0f}' for peak in sorted(peaks.values()))}", flush=True)


arguments = sys.argv[1:]
split = arguments.index("--") if "--" in arguments else len(arguments)
program, configuration, *counts = arguments[:split]
for count in map(int, counts or ["1", "2", "4"]):
    measure(os.path.realpath(program), configuration, count, arguments[split + 1:])
