#!/usr/bin/env python3
"""How near a simulation comes to a real run: rastrigin whose evaluations pretend to last, on 2 and 4 ranks, and simulated.

    tools/bench/simulation.py [FINCH] [REPETITIONS]

A real run does not compute while it pretends, so 4 ranks may share 2 cores. Busy is the share of the workers' time, until the last
evaluation ended, in which they evaluated. Prints the medians of both and simulated ÷ real, [least … most] of the repetitions.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import h5py

FINCH = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/finch")
REPETITIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
EVALUATIONS_PER_RANK = 100
CASES = [(ranks, seconds) for ranks in (2, 4) for seconds in (0.02, 0.1)]
CONFIG = """
name: rastrigin
search:
  objective: {{function: rastrigin, seconds: {seconds}, spread: 0.5}}
  propagator: {{genetic: {{population: 8}}}}
  exchange: {{kind: pollination, probability: 0.9}}
  budget: {{evaluations: {evaluations}}}
workers: {{islands: 2}}
log: {{level: warning}}
"""


def real(folder, ranks, seed):
    """Busy fraction and evaluations per hour."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    subprocess.run(["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", FINCH, "evolve", "config.yaml", "--fresh",
                    "--set", f"seed={seed}"], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    with h5py.File(folder / "runs/rastrigin/population.h5", "r") as file:
        rows = file["individuals"][:]
    seconds = rows["finished"].max() - rows["started"].min()
    return (rows["finished"] - rows["started"]).sum() / (ranks * seconds), len(rows) / seconds * 3600


def simulated(folder, ranks, seed):
    output = subprocess.run([FINCH, "simulate", "config.yaml", "--workers", str(ranks), "--seeds", str(seed)], cwd=folder, check=True,
                            stdout=subprocess.PIPE, text=True).stdout.splitlines()
    columns, row = output[-2].split(), output[-1].split()
    hours = float(row[columns.index("hours")])
    return float(row[columns.index("busy_fraction")]), float(row[columns.index("evaluations")]) / hours


def spread(values):
    return f"{statistics.median(values):.3f} [{min(values):.3f} … {max(values):.3f}]"


print("| ranks, s | busy, real | busy, simulated | ratio | evaluations/h, real | simulated | ratio |\n| --- | --- | --- | --- | --- | --- | --- |")
for ranks, seconds in CASES:
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as name:
        folder = pathlib.Path(name)
        (folder / "config.yaml").write_text(CONFIG.format(seconds=seconds, evaluations=EVALUATIONS_PER_RANK * ranks))
        pairs = [(real(folder, ranks, seed), simulated(folder, ranks, seed)) for seed in range(1, REPETITIONS + 1)]
    cells = [f"{ranks}, {seconds}"]
    for number, form in ((0, "{:.3f}"), (1, "{:.0f}")):
        cells += [form.format(statistics.median(pair[side][number] for pair in pairs)) for side in (0, 1)]
        cells.append(spread([pair[1][number] / pair[0][number] for pair in pairs]))
    print("| " + " | ".join(cells) + " |", flush=True)
