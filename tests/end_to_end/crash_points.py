"""Crashes a short run, or injects an I/O error, at each change of a file: every resume is complete and exact.

A preloaded library counts the calls of one rank that write, sync, rename, link, unlink, truncate or open a file in the
run directory. At the n-th call it kills the rank (before or after the call, or in the middle of a write), or makes the
call fail, once or for ever. Then the run starts again without faults and must end with exactly its budget, also in
population.h5 alone. No id may occur twice, earlier results must be unchanged, models/best.h5 must hold the best
individual, and no snapshot may remain.

FINCH_TEST_CRASHES=all tries every call, which takes hours. FINCH_TEST_CRASHES=N tries N calls of each kind of run, and
in addition the most important calls: the syncs of the journal and the last calls of a run. FINCH_TEST_CRASH_RUNS names
the kinds (function, two_ranks, cnn, program), and FINCH_TEST_CRASH_MODES names the faults. FINCH_TEST_CRASH_JOBS: number of runs
in parallel."""
import concurrent.futures
import csv
import errno
import itertools
import os
import subprocess
import sys

import h5py

from harness import FINCH, TINY, Folder, check, environment, individuals, passed

LIBRARY = os.path.abspath(sys.argv[2])
SAMPLE = os.environ.get("FINCH_TEST_CRASHES", "10")
KILLS = ("before", "half", "after")
# Of a full disk, a file server that fails, a Lustre server that evicted this node, an expired ticket.
ERRORS = {name: os.strerror(getattr(errno, name))
          for name in ("ENOSPC", "EIO", "EDQUOT", "ESTALE", "EROFS", "EFBIG", "ESHUTDOWN", "EREMOTEIO", "EACCES", "EKEYEXPIRED")}
MODES = os.environ.get("FINCH_TEST_CRASH_MODES", " ".join((*KILLS, *ERRORS))).split()

SPHERE = """
name: run
search:
  objective: {function: sphere, seconds: 0.004}
  propagator: {genetic: {population: 4}}
  exchange: {kind: pollination}
  budget: {evaluations: 12}
workers: {islands: %d}
checkpoint: {archive_seconds: 0.02}
"""
CNN = (TINY.replace("name: tiny", "name: run").replace("samples: 600", "samples: 300").replace("validation_samples: 203", "validation_samples: 60")
       .replace("evaluations: 12", "evaluations: 4").replace("workers: {ranks: 2, islands: 2}", "workers: {ranks: 1, threads: 1}")
       .replace("archive_seconds: 0.2, training_seconds: 0.5", "archive_seconds: 0.05, training_seconds: 0.02"))
PROGRAM = SPHERE.replace("{function: sphere, seconds: 0.004}", "{command: echo finch loss=0.5, keep: all}\n  space: {x: {real: [0, 1]}}") % 1
RUNS = {"function": (SPHERE % 1, 1, 12), "two_ranks": (SPHERE % 2, 2, 12), "cnn": (CNN, 1, 4), "program": (PROGRAM, 1, 12)}


def start(folder, ranks, faults=None):
    """Starts the run once and returns exit code and output. `faults`: environment variables of the library."""
    words = [FINCH, "evolve", "run.yaml", "--run", "run"]
    if faults is not None:
        words = ["env", f"LD_PRELOAD={LIBRARY}", f"CRASH_FOLDER={folder.path}/run",
                 *[f"CRASH_{key}={value}" for key, value in faults.items()], *words]
    if ranks > 1:
        words = ["mpirun", "-n", str(ranks), *words]
    done = subprocess.run(words, cwd=folder.path, env=environment(), text=True, timeout=300, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, errors="replace")
    return done.returncode, done.stdout


def known(folder):
    """Returns outcome and loss of each finished individual in archive and journals; {} if there is no run yet."""
    done = subprocess.run([FINCH, "show", "run", "--csv"], cwd=folder.path, env=environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=300)
    lines = done.stdout.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("id,")), None)
    if first is None:
        check("there is no run here" in done.stdout, f"finch show: {done.stdout}")
        return {}
    rows = list(csv.DictReader(lines[first:]))
    check(len({row["id"] for row in rows}) == len(rows), "an id stands twice")
    return {row["id"]: (row["outcome"], row["loss"]) for row in rows if row["outcome"] != "unfinished"}


def status(folder):
    """Returns the exit code of `finch status`."""
    return subprocess.run([FINCH, "status", "run"], cwd=folder.path, env=environment(), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=300).returncode


def check_complete(folder, budget, before, trains, where):
    now = known(folder)
    check(len(now) == budget, f"{where}: {len(now)} of {budget} evaluations")
    check(len(individuals(folder.path / "run")) == budget, f"{where}: population.h5 does not hold the budget")
    check(status(folder) == 0, f"{where}: finch status says {status(folder)}")
    check({outcome for outcome, _ in now.values()} == {"evaluated"}, f"{where}: an individual is blamed: {now}")
    left = [path.name for path in folder.path.glob("run/state/**/training-*")]
    check(not left, f"{where}: {left} left behind")
    for name, value in before.items():
        check(now.get(name) == value, f"{where}: {name} was {value}, is {now.get(name)}")
    if trains:
        with h5py.File(folder.path / "run/models/best.h5", "r") as file:
            best = file.attrs["id"]
        best = best.decode() if isinstance(best, bytes) else best
        least = min(float(loss) for outcome, loss in now.values() if outcome == "evaluated")
        check(float(now[best][1]) == least, f"{where}: models/best.h5 is of {best}, {now[best]}, the least loss {least}")
    damaged = [path.name for path in folder.path.glob("run/**/*.damaged")]
    check(not damaged, f"{where}: {damaged} set aside")


def try_point(kind, rank, mode, span, number):
    """Starts a run with one fault, and again without faults. Returns complete, stopped or killed for the first
    start."""
    text, ranks, budget = RUNS[kind]
    where = f"{kind}, rank {rank}, {mode}{' for ever' if span == 0 else ''} at call {number}"
    with Folder() as folder:
        folder.write("run.yaml", text)
        code, output = start(folder, ranks, {"RANK": rank, "AT": number, "MODE": mode, "SPAN": span})
        before = known(folder)
        if mode in ERRORS:
            # If the run directory is new, the user must fix a read-only file system or missing permissions.
            allowed = (0, 75, 2) if mode in ("EROFS", "EACCES") else (0, 75)
            check(code in allowed, f"{where}: exit code {code}\n{output}")
            check(code == 0 or ERRORS[mode] in output, f"{where}: the output does not say why\n{output}")
        if code == 0 or status(folder) == 0:
            check_complete(folder, budget, before, kind == "cnn", f"{where}, which ended with {code}")
        again, output = start(folder, ranks)
        check(again == 0, f"{where}: the next start ended with {again}\n{output}")
        check_complete(folder, budget, before, kind == "cnn", where)
        return "complete" if code == 0 else "stopped" if mode in ERRORS else "killed"


def calls_of(kind, rank, mode):
    """Returns the names of the counted calls of a start without faults, in order."""
    text, ranks, _ = RUNS[kind]
    with Folder() as folder:
        folder.write("run.yaml", text)
        code, output = start(folder, ranks, {"RANK": rank, "AT": 0, "MODE": mode, "COUNT": folder.path / "count"})
        check(code == 0, f"{kind}: a start without faults ended with {code}\n{output}")
        return (folder.path / "count").read_text().split()[1:]


def points(kind):
    every, foremost = [], []
    for rank in range(RUNS[kind][1]):
        for modes in ([mode for mode in KILLS if mode in MODES], [mode for mode in ERRORS if mode in MODES]):
            if not modes:
                continue
            calls = calls_of(kind, rank, modes[0])
            spans = (1,) if modes[0] in KILLS else (1, 0)
            every += [(kind, rank, mode, span, number)
                      for number, mode, span in itertools.product(range(1, len(calls) + 1), modes, spans)]
            if modes[0] in ERRORS:
                syncs = [number for number, name in enumerate(calls, 1) if name == "fdatasync"]
                writes = [number for number, name in enumerate(calls, 1) if name == "write"]
                foremost += [(kind, rank, modes[0], 0, number) for number in writes[3:4]]  # rank 0: of the first archive, after probes and lock
                foremost += [(kind, rank, modes[0], 1, number) for number in syncs[:1] + syncs[-1:]]
                foremost += [(kind, rank, modes[0], 0, number) for number in (len(calls) - 9, len(calls) - 1)]
                if kind == "program":  # the folder of the last evaluations
                    foremost += [(kind, rank, mode, 0, max(i for i, name in enumerate(calls, 1) if name == "mkdir")) for mode in modes]
    if SAMPLE == "all":
        return every
    step = len(every) / int(SAMPLE)
    return foremost + [every[int((index + 0.5) * step)] for index in range(int(SAMPLE))]


for kind in os.environ.get("FINCH_TEST_CRASH_RUNS", "function two_ranks cnn program").split():
    chosen = points(kind)
    ends = {}
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("FINCH_TEST_CRASH_JOBS", "2"))) as pool:
        for number, end in enumerate(pool.map(lambda point: try_point(*point), chosen), 1):
            ends[end] = ends.get(end, 0) + 1
            if number % 100 == 0:
                print(f"{kind}: {number} of {len(chosen)}, {ends}", flush=True)
    passed(f"{kind}: {len(chosen)} faults ({ends}), every resume complete and exact")

with Folder() as folder:
    folder.write("run.yaml", SPHERE % 1)
    start(folder, 1)
    os.environ["SLURM_RESTART_COUNT"] = "1"  # for errors that also hide if the directory is there
    for mode in [mode for mode in ERRORS if mode in MODES]:
        code, output = start(folder, 1, {"RANK": 0, "AT": 1, "MODE": mode, "SPAN": 0})
        check(code == 75 and ERRORS[mode] in output, f"a start in an old run directory with {mode}: {code}\n{output}")
passed("a start in an old run directory that meets any of these errors is to be started again")
