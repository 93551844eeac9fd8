#!/usr/bin/env python3
"""Measures the cost of resuming a large run, compared with an empty run: seconds and memory.

    tools/bench/resume.py BUILD INDIVIDUALS [EPOCHS] [RANKS] [ISLANDS]

BUILD is the build folder that contains finch and bench_big_run (ninja bench_big_run). bench_big_run writes a run of
INDIVIDUALS individuals with learning curves of EPOCHS lines. The evaluations do not end. The script measures the
seconds until every leader has started an evaluation. Then it reads the private memory of each rank (Private_Clean +
Private_Dirty of /proc/PID/smaps_rollup). The peak memory of world rank 0 is VmHWM: its largest resident set so far,
including shared libraries.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from shared_data import ENVIRONMENT, memory_of

BUILD = pathlib.Path(sys.argv[1]).resolve()
NUMBERS = [int(word) for word in sys.argv[2:]]
INDIVIDUALS, EPOCHS, RANKS, ISLANDS = NUMBERS + [0, 0, 4, 2][len(NUMBERS):]
CONFIG = f"""
name: resume
search:
  objective: {{function: sphere, dimensions: 4, seconds: 1000}}
  propagator: {{genetic: {{population: 16}}}}
  exchange: {{kind: pollination}}
  budget: {{evaluations: 100000000}}
workers: {{islands: {ISLANDS}}}
checkpoint: {{archive_seconds: 100000}}
"""


def ranks_of(launcher):
    """Returns the process IDs of the ranks that `launcher`, an mpirun, started, world rank 0 first."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"\nPPid:\t{launcher}\n" in (entry / "status").read_text():
                variables = (entry / "environ").read_bytes().split(b"\0")
                ranks = [int(one.split(b"=")[1]) for one in variables if one.startswith(b"OMPI_COMM_WORLD_RANK=")]
                found += [(ranks[0], int(entry.name))] if ranks else []
        except OSError:
            continue
    return [pid for _, pid in sorted(found)]


def go_on(folder, run):
    """Starts `run`, waits until every leader evaluates, and ends it.

    Returns (seconds, processor seconds by rank, private bytes by rank, peak bytes of rank 0).
    """
    start = time.time()
    with open(folder / "output", "w") as output:
        process = subprocess.Popen(["mpirun", "-n", str(RANKS), BUILD / "finch", "evolve", "resume.yaml", "--run", run], cwd=folder,
                                   env=ENVIRONMENT, stdout=output, stderr=subprocess.STDOUT)
    state = folder / run / "state"
    # A leader's first journal record is the start of an individual.
    while sum(journal.stat().st_size > 0 for journal in state.glob("**/*.journal")) < RANKS:
        if process.poll() is not None:
            sys.exit((folder / "output").read_text())
        time.sleep(0.02)
    seconds = time.time() - start
    ranks = ranks_of(process.pid)
    busy = [sum(int(word) for word in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")
            for pid in ranks]
    time.sleep(1)
    memory = [memory_of(pid) for pid in ranks]
    private = [one["Private_Clean"] + one["Private_Dirty"] for one in memory]
    status = pathlib.Path(f"/proc/{ranks[0]}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    process.kill()
    process.wait()
    for pid in ranks:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    return seconds, busy, private, peak


def main():
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as place:
        folder = pathlib.Path(place)
        (folder / "resume.yaml").write_text(CONFIG)
        subprocess.run([BUILD / "bench_big_run", "resume.yaml", "large", str(INDIVIDUALS), str(EPOCHS), str(RANKS), str(ISLANDS)], cwd=folder,
                       check=True)
        size = (folder / "large/population.h5").stat().st_size
        empty_seconds, empty_busy, empty, empty_peak = go_on(folder, "empty")
        seconds, busy, private, peak = go_on(folder, "large")
    more = [(a - b) / 1e6 for a, b in zip(private, empty)]
    print(f"{INDIVIDUALS} individuals of {EPOCHS} epochs ({size / 1e6:.0f} MB), {RANKS} ranks, {ISLANDS} islands: "
          f"{seconds:.1f} s until all evaluate, an empty run {empty_seconds:.1f} s")
    print(f"processor time until then: world rank 0 {busy[0]:.1f} s, other leaders at most {max(busy[1:]):.1f} s; "
          f"in an empty run {empty_busy[0]:.1f} and {max(empty_busy[1:]):.1f} s")
    print(f"private memory beyond an empty run's: world rank 0 {more[0]:.0f} MB, other leaders at most {max(more[1:]):.0f} MB")
    print(f"world rank 0's peak: {peak / 1e6:.0f} MB, in an empty run {empty_peak / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
