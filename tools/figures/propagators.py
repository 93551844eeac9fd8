#!/usr/bin/env python3
"""propagators.py BENCH_SIMULATE [-o FILE.svg] [--csv FILE]: draws the figure of propagators in docs/search.md.

Runs bench_simulate for each propagator, function and budget, with 8 workers and 11 seeds. Draws the median and the
quartiles of the best loss. Each seed has a different optimum. With --csv, the script also writes the numbers to FILE.
If FILE exists, the script draws the numbers in FILE without running bench_simulate.
"""
import argparse
import concurrent.futures
import csv
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from chart import COLOURS, chart

SEEDS, WORKERS = "1..11", 8
BUDGETS = [25, 50, 100, 200, 400, 800]
FUNCTIONS = {"sphere, 5 genes": ("sphere", 5), "rosenbrock, 4 genes": ("rosenbrock", 4), "rastrigin, 5 genes": ("rastrigin", 5)}
PROPAGATORS = {"auto": "auto", "evolution": "evolution", "cmaes": "cmaes", "swarm": "swarm", "nelder_mead": "nelder_mead",
               "genetic": "{genetic: {population: 16}}", "random": "random"}
CONFIG = """
name: figure
search:
  objective: {{function: {function}, dimensions: {dimensions}, shift: true}}
  propagator: {propagator}
  budget: {{evaluations: {budget}}}
workers: {{ranks: 1, islands: 1}}
"""


def measured(program, propagator, title, budget):
    """Runs bench_simulate. Returns a row for each seed."""
    function, dimensions = FUNCTIONS[title]
    with tempfile.TemporaryDirectory() as folder:
        config, table = pathlib.Path(folder) / "figure.yaml", pathlib.Path(folder) / "figure.csv"
        config.write_text(CONFIG.format(function=function, dimensions=dimensions, propagator=PROPAGATORS[propagator], budget=budget))
        done = subprocess.run([program, config, "--workers", str(WORKERS), "--durations", "lognormal:60,0.5", "--seeds", SEEDS, "--csv", table],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{propagator} on {title}: {done.stderr}")
        with table.open() as rows:
            return [{"propagator": propagator, "function": title, "budget": budget, "seed": row["seed"], "best": row["best"]} for row in csv.DictReader(rows)]


def all_measured(program):
    wanted = [(propagator, title, budget) for propagator in PROPAGATORS for title in FUNCTIONS for budget in BUDGETS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [row for rows in pool.map(lambda one: measured(program, *one), wanted) for row in rows]


def lines_of(rows, title):
    lines = []
    for propagator, colour in zip(PROPAGATORS, COLOURS):
        middle, low, high = [], [], []
        for budget in BUDGETS:
            best = [float(row["best"]) for row in rows if (row["propagator"], row["function"], int(row["budget"])) == (propagator, title, budget)]
            quartiles = statistics.quantiles(best, n=4, method="inclusive")
            low.append((budget, max(quartiles[0], 1e-12)))
            middle.append((budget, max(quartiles[1], 1e-12)))
            high.append((budget, max(quartiles[2], 1e-12)))
        lines.append({"points": middle, "band": high + low[::-1], "colour": colour})
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="build/bench_simulate")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("docs/search-propagators.svg"))
    parser.add_argument("--csv", type=pathlib.Path)
    given = parser.parse_args()
    if given.csv and given.csv.exists():
        with given.csv.open() as file:
            rows = list(csv.DictReader(file))
    else:
        rows = all_measured(os.path.abspath(given.program))
        if given.csv:
            with given.csv.open("w", newline="") as file:
                writer = csv.DictWriter(file, rows[0].keys())
                writer.writeheader()
                writer.writerows(rows)
    panels = [{"title": title, "lines": lines_of(rows, title)} for title in FUNCTIONS]
    given.output.write_text(chart(panels, dict(zip(PROPAGATORS, COLOURS)), "evaluations of the budget", "best loss", log_x=True, log_y=True), encoding="utf-8")


if __name__ == "__main__":
    main()
