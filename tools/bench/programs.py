#!/usr/bin/env python3
"""Measures the overhead of Finch if a program evaluates the individuals, compared with the bare program.

    tools/bench/programs.py [FINCH] [REPETITIONS]
    python3 -m venv peers && peers/bin/pip install propulate mpi4py optuna h5py && peers/bin/python tools/bench/programs.py [FINCH] [REPETITIONS]

`started`: `finch evolve` on 4 ranks starts /bin/sh, which prints a loss. The bare program is the same command in 4
concurrent shell loops. `persistent`: `finch evolve` on 4 ranks uses a Python program that answers a line for each
individual. The bare programs are 4 concurrent processes of this program that are fed through pipes. Prints the wall
time per evaluation of all ranks together in microseconds, as median [least … most], and the ratio of the medians. The
variants take turns. If Python finds the packages, the script also measures Optuna (TPE, 4 threads), with an objective
that starts the same program, and Propulate (4 ranks, its default propagator), which calls the same function without a
program.
"""
import collections
import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy

FINCH = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/finch")
REPETITIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
PEERS = {name for name in ("optuna", "propulate") if importlib.util.find_spec(name)}
RANKS = 4
ANSWER = """import json, sys
for line in sys.stdin:
    x = json.loads(line)["genes"]["x"]
    sys.stdout.write(f"finch loss={x * x}\\nfinch done\\n")
    sys.stdout.flush()
"""
CONFIG = """
name: run
search:
  objective: {command: "%s", persistent: %s, keep: none}
  space: {x: {real: [-5, 5]}}
  propagator: {genetic: {population: 8}}
  budget: {evaluations: %d}
workers: {islands: 1}
log: {level: warning}
"""


def by_finch(folder, number, command, persistent, evaluations):
    (folder / "run.yaml").write_text(CONFIG % (command, str(persistent).lower(), evaluations))
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    subprocess.run(["mpirun", "-n", str(RANKS), "--oversubscribe", "--bind-to", "none", FINCH, "evolve", "run.yaml", "--run", f"run{number}"],
                   cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    with h5py.File(folder / f"run{number}" / "population.h5", "r") as file:
        finished = numpy.sort(file["individuals"]["finished"])
    # The first tenth is skipped: the Python interpreters are still starting.
    first = len(finished) // 10
    return (finished[-1] - finished[first]) / (len(finished) - 1 - first) * 1e6


def started_bare(evaluations):
    begin = time.perf_counter()
    each = evaluations // RANKS
    loops = [subprocess.Popen(["/bin/sh", "-c", f"i=0; while [ $i -lt {each} ]; do /bin/sh -c 'echo finch loss=1'; i=$((i+1)); done"], stdout=subprocess.DEVNULL)
             for _ in range(RANKS)]
    for loop in loops:
        loop.wait()
    return (time.perf_counter() - begin) / evaluations * 1e6


def persistent_bare(folder, evaluations):
    """Sends lines to four programs in rounds: one line to each program, then waits for the answer of each program."""
    programs = [subprocess.Popen([sys.executable, folder / "answer.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(RANKS)]
    line = b'{"id": "0.1.2", "seed": 1, "folder": "", "checkpoint_dir": "", "resume": false, "genes": {"x": 0.5}}\n'

    def ask(rounds):
        for _ in range(rounds):
            for program in programs:
                program.stdin.write(line)
                program.stdin.flush()
            for program in programs:
                program.stdout.readline(), program.stdout.readline()

    ask(10)
    begin = time.perf_counter()
    ask(evaluations // RANKS)
    seconds = time.perf_counter() - begin
    for program in programs:
        program.stdin.close()
        program.wait()
    return seconds / evaluations * 1e6


def optuna_started(evaluations):
    import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        x = trial.suggest_float("x", -5, 5)
        said = subprocess.run(["/bin/sh", "-c", "echo finch loss=1"], env=dict(os.environ, FINCH_GENE_x=repr(x)), stdout=subprocess.PIPE, text=True, check=True)
        return float(said.stdout.split("=")[1])

    study = optuna.create_study()
    begin = time.perf_counter()
    study.optimize(objective, n_trials=evaluations, n_jobs=RANKS)
    return (time.perf_counter() - begin) / evaluations * 1e6


def be_a_rank_of_propulate(generations):
    """Runs a search as one rank of Propulate. Rank 0 prints the time per evaluation in µs, without the first tenth."""
    import random
    from mpi4py import MPI
    import propulate
    comm = MPI.COMM_WORLD
    times = []

    def square(individual):
        times.append(time.perf_counter())
        return individual["x"] ** 2

    rng = random.Random(comm.rank)
    propagator = propulate.get_default_propagator(pop_size=8, limits={"x": (-5.0, 5.0)}, rng=rng)
    search = propulate.Propulator(square, propagator, rng, island_comm=comm, propulate_comm=comm, generations=generations, checkpoint_path="checkpoints")
    search.propulate(logging_interval=generations)
    first = generations // 10
    seconds = comm.reduce(times[-1] - times[first])  # the sum over the ranks, divided by the number of ranks below
    if comm.rank == 0:
        print(seconds / comm.size / ((generations - 1 - first) * comm.size) * 1e6)


def propulate_called(folder, number, evaluations):
    place = folder / f"p{number}"
    place.mkdir()
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    words = ["mpirun", "-n", str(RANKS), "--oversubscribe", "--bind-to", "none", sys.executable, os.path.abspath(__file__), "--rank", str(evaluations // RANKS)]
    done = subprocess.run(words, cwd=place, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.split()[-1])


if sys.argv[1:2] == ["--rank"]:
    be_a_rank_of_propulate(int(sys.argv[2]))
    sys.exit()


def spread(values):
    return f"{statistics.median(values):.0f} [{min(values):.0f} … {max(values):.0f}]"


with tempfile.TemporaryDirectory(prefix="finch-bench-") as name:
    place = pathlib.Path(name)
    (place / "answer.py").write_text(ANSWER)
    rows = {"started": ([], []), "persistent": ([], [])}
    peers = collections.defaultdict(list)  # by the name and the row of Finch that it is compared with
    for number in range(REPETITIONS):
        rows["started"][0].append(by_finch(place, f"a{number}", "/bin/sh -c 'echo finch loss=1'", False, 2000))
        rows["started"][1].append(started_bare(2000))
        rows["persistent"][0].append(by_finch(place, f"b{number}", f"{sys.executable} {place}/answer.py", True, 10000))
        rows["persistent"][1].append(persistent_bare(place, 10000))
        if "optuna" in PEERS:
            peers["optuna, started", "started"].append(optuna_started(1000))
        if "propulate" in PEERS:
            peers["propulate, called", "persistent"].append(propulate_called(place, number, 2000))
print(f"{RANKS} ranks on {os.cpu_count()} cores, {REPETITIONS} runs, µs per evaluation: median [least … most]")
for kind, (finch, bare) in rows.items():
    print(f"{kind:>10}: finch {spread(finch)}, bare {spread(bare)}, ratio {statistics.median(finch) / statistics.median(bare):.2f}")
for (name, beside), values in peers.items():
    print(f"{name}: {spread(values)}, {statistics.median(values) / statistics.median(rows[beside][0]):.1f} times finch {beside}")
