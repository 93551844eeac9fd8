#!/usr/bin/env python3
"""Compares Finch with Propulate: the processor time per evaluation, or (with `best`) the best losses of searches.

    python3 -m venv peers && peers/bin/pip install propulate mpi4py h5py && peers/bin/python tools/bench/beside_propulate.py [FINCH] [REPETITIONS] [RANKS,…|best] [GENERATIONS]

Without `best`, the script measures the processor time of all ranks per evaluation of the 2-dimensional sphere, after
the first 500 evaluations. Both programs use one island, the operators of Propulate's default propagator and a
population of twice the number of ranks. Both record every result. Each rank of Propulate makes GENERATIONS evaluations
(default 300; 1 500 on one rank, 750 on two, 375 on four) and measures its processor time after its share of the first
500. Finch makes 10 000 evaluations. Every few milliseconds this script reads from the kernel the processor time of
Finch's ranks. The archive has the times at which the same evaluations ended. Prints medians [least … most].

With `best`, the script compares the best losses of searches on 4 ranks with 256 evaluations per rank, for Propulate's
benchmark functions. The searches have two islands that pollinate with probability 0.9. The minimum of the function is
subtracted from the losses. Propulate and Finch's `genetic` use a population of 8. A third column is for Finch's `auto`.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SKIPPED = 500
EVALUATIONS = 10_000
CONFIG = """
name: sphere
search:
  objective: {{function: sphere}}
  propagator: {{genetic: {{population: {population}}}}}
  budget: {{evaluations: {evaluations}}}
workers: {{islands: 1}}
log: {{level: warning}}
"""
FUNCTIONS = ["sphere", "rosenbrock", "rastrigin", "griewank", "schwefel", "birastrigin"]
SEARCH = """
name: best
search:
  objective: {{function: {function}}}
  propagator: {propagator}
  exchange: {{kind: pollination, probability: 0.9}}
  budget: {{evaluations: 1024}}
seed: {seed}
workers: {{islands: 2}}
log: {{level: warning}}
"""


def be_a_rank_of_propulate(generations):
    """Runs a search as one rank of Propulate. Rank 0 prints the processor time of all ranks per evaluation, in µs."""
    import random
    from mpi4py import MPI
    import propulate
    comm = MPI.COMM_WORLD
    skipped = -(-SKIPPED // comm.size)
    times = []

    def sphere(individual):
        times.append(time.process_time())
        return sum(individual[name] ** 2 for name in ("x0", "x1"))

    limits = {"x0": (-5.12, 5.12), "x1": (-5.12, 5.12)}
    rng = random.Random(comm.rank)
    propagator = propulate.get_default_propagator(pop_size=2 * comm.size, limits=limits, rng=rng)
    search = propulate.Propulator(sphere, propagator, rng, island_comm=comm, propulate_comm=comm, generations=generations, checkpoint_path="checkpoints")
    search.propulate(logging_interval=generations)
    seconds = comm.reduce(times[-1] - times[skipped])
    if comm.rank == 0:
        print(seconds / ((generations - 1 - skipped) * comm.size) * 1e6)


def search_as_a_rank_of_propulate(function, seed):
    """Runs a search as one of 4 ranks of Propulate. Rank 0 prints the best loss."""
    import random
    import numpy
    from mpi4py import MPI
    import propulate
    from propulate.utils.benchmark_functions import get_function_search_space
    loss, limits = get_function_search_space(function)
    rng = random.Random(1000 * seed + MPI.COMM_WORLD.rank)
    propagator = propulate.get_default_propagator(pop_size=8, limits=limits, rng=rng)
    islands = propulate.Islands(loss, propagator, rng, generations=256, num_islands=2, migration_probability=0.9, pollination=True, checkpoint_path="checkpoints")
    islands.propulate(logging_interval=1024)
    best = MPI.COMM_WORLD.reduce(numpy.nanmin([individual.loss for individual in islands.propulator.population]), op=MPI.MIN)
    if MPI.COMM_WORLD.rank == 0:
        print(best)


def mpirun(folder, ranks, *command):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    words = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", *map(str, command)]
    return subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def propulate_microseconds(ranks, generations):
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as folder:
        output, _ = mpirun(folder, ranks, sys.executable, os.path.abspath(__file__), "--rank", generations).communicate()
    return float(output.split()[-1])


def processor_seconds(parent):
    """Returns the processor time so far of all threads of the children of `parent`, or None if a process just ended."""
    seconds = 0.0
    try:
        for child in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            for thread in os.listdir(f"/proc/{child}/task"):
                seconds += int(pathlib.Path(f"/proc/{child}/task/{thread}/schedstat").read_text().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return None  # a process or thread has just ended
    return seconds


def finch_microseconds(finch, ranks, evaluations):
    """Returns the processor time of Finch per evaluation, in µs, from evaluation SKIPPED to evaluation
    `evaluations`."""
    import h5py
    import numpy
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as folder:
        (pathlib.Path(folder) / "sphere.yaml").write_text(CONFIG.format(population=2 * ranks, evaluations=EVALUATIONS))
        samples = []
        with mpirun(folder, ranks, finch, "evolve", "sphere.yaml") as process:
            while process.poll() is None:
                seconds = processor_seconds(process.pid)
                if seconds is not None:
                    samples.append((time.time(), seconds))
                time.sleep(0.002)
        with h5py.File(pathlib.Path(folder) / "runs/sphere/population.h5", "r") as file:
            finished = numpy.sort(file["individuals"]["finished"])
    begin, end = numpy.interp(finished[[SKIPPED - 1, evaluations - 1]], *numpy.transpose(samples))
    return (end - begin) / (evaluations - SKIPPED) * 1e6


def best_of_propulate(function, seed):
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as folder:
        output, _ = mpirun(folder, 4, sys.executable, os.path.abspath(__file__), "--search", function, seed).communicate()
    return float(output.split()[-1])


def best_of_finch(finch, function, propagator, seed):
    import h5py
    import numpy
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as folder:
        (pathlib.Path(folder) / "best.yaml").write_text(SEARCH.format(function=function, propagator=propagator, seed=seed))
        mpirun(folder, 4, finch, "evolve", "best.yaml").communicate()
        with h5py.File(pathlib.Path(folder) / "runs/best/population.h5", "r") as file:
            return float(numpy.nanmin(file["individuals"]["loss"]))


def compare_best(finch, repetitions):
    print("| function | Propulate | `genetic` | `auto` |\n| --- | --- | --- | --- |")
    for function in FUNCTIONS:
        seeds = range(1, repetitions + 1)
        rows = [[best_of_propulate(function, seed) for seed in seeds]]
        for propagator in ("{genetic: {population: 8}}", "auto"):
            rows.append([best_of_finch(finch, function, propagator, seed) for seed in seeds])
        print(f"| {function} | " + " | ".join(spread(row, ".2g") for row in rows) + " |", flush=True)


def spread(values, form):
    return f"{statistics.median(values):{form}} [{min(values):{form}} … {max(values):{form}}]"


def main():
    finch = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/finch")
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    if sys.argv[3:4] == ["best"]:
        compare_best(finch, repetitions)
        return
    many_ranks = [int(word) for word in (sys.argv[3] if len(sys.argv) > 3 else "1,2,4,8,16").split(",")]
    print("| ranks | evaluations | µs an evaluation, Propulate | Finch | ratio |\n| --- | --- | --- | --- | --- |")
    for ranks in many_ranks:
        generations = int(sys.argv[4]) if len(sys.argv) > 4 else max(300, 1500 // ranks)
        rows = []
        for _ in range(repetitions):
            theirs = propulate_microseconds(ranks, generations)
            ours = finch_microseconds(finch, ranks, ranks * generations)
            rows.append((theirs, ours, theirs / ours))
        cells = [spread(values, form) for values, form in zip(zip(*rows), (".0f", ".1f", ".0f"))]
        print(f"| {ranks} | {ranks * generations} | " + " | ".join(cells) + " |", flush=True)


if sys.argv[1:2] == ["--rank"]:
    be_a_rank_of_propulate(int(sys.argv[2]))
elif sys.argv[1:2] == ["--search"]:
    search_as_a_rank_of_propulate(sys.argv[2], int(sys.argv[3]))
else:
    main()
