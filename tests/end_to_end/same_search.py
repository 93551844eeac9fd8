"""Searches a rotated function of 20 dimensions twice, built in and as a persistent program with the Python client: the
two searches must be bitwise equal."""
import os
import sys

import h5py

from harness import SOURCE, Folder, check, individuals, passed

VALUES = os.path.abspath(sys.argv[2])
FUNCTION = "rastrigin"
DIMENSIONS = 20
INSTANCE = 5
SEARCH = """
name: run
seed: 11
search:
  objective: %s
  propagator: %s
  exchange: {kind: pollination}
  budget: {evaluations: 250}
%s
workers: {islands: 1}
"""
PROGRAM = f"""
import subprocess, sys
sys.path.insert(0, {str(SOURCE / "tools/python")!r})
import finch_objective as finch

values = subprocess.Popen([{VALUES!r}, "{FUNCTION}", "{DIMENSIONS}", "{INSTANCE}"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for individual in finch.individuals():
    print(*(repr(individual.genes[f"x{{i}}"]) for i in range({DIMENSIONS})), file=values.stdin, flush=True)
    finch.report(loss=float(values.stdout.readline()))
"""


def space_of(run):
    """Returns the search space of a run as YAML."""
    with h5py.File(run / "population.h5") as file:
        rows = file["space"][:]
    genes = ", ".join(f"{row['gene'].decode()}: {{real: [{float(row['low'])!r}, {float(row['high'])!r}]}}" for row in rows)
    return f"  space: {{{genes}}}"


def search_of(run):
    return {number: tuple(row[f"x{i}"] for i in range(DIMENSIONS)) + (row["loss"], row["parent_1"], row["parent_2"], row["operator"])
            for number, row in individuals(run).items()}


for propagator in ("{evolution: {}}", "{cmaes: {}}", "{genetic: {}}"):
    with Folder() as folder:
        folder.write("program.py", PROGRAM)
        function = f"{{function: {FUNCTION}, dimensions: {DIMENSIONS}, shift: true, rotate: true, instance: {INSTANCE}}}"
        folder.write("built_in.yaml", SEARCH % (function, propagator, ""))
        folder.run(1, "evolve", "built_in.yaml", "--run", "built_in")
        command = f"{{command: '{sys.executable} program.py', persistent: true}}"
        folder.write("program.yaml", SEARCH % (command, propagator, space_of(folder.path / "built_in")))
        folder.run(1, "evolve", "program.yaml", "--run", "program")
        built_in, program = search_of(folder.path / "built_in"), search_of(folder.path / "program")
        check(len(built_in) == 250, f"{len(built_in)} evaluations")
        check(built_in == program, f"{propagator}: {sum(program.get(key) != value for key, value in built_in.items())} of {len(built_in)} individuals differ")
    passed(f"{propagator}: 250 individuals, their genes, parents and losses have the same bits")
