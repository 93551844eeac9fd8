#!/usr/bin/env python3
"""Compares fronts of Finch and of NSGA-II (pymoo) by their hypervolume, for test functions with several objectives.

    ninja -C build bench_fronts
    python3 -m venv peers && peers/bin/pip install pymoo
    peers/bin/python tools/bench/fronts.py build/bench_fronts --budgets 8x200 100x10000 --methods auto genetic nsga2:100

A budget is WORKERSxEVALUATIONS. A method is a propagator of Finch, or nsga2:POPULATION. All methods get the same numbers
of evaluations and seeds. A front contains the best of all evaluations. A cell has the median share of the volume between
the reference point and the true front that the front of a method dominates.
"""

import argparse
import json
import statistics
import subprocess

import numpy
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.indicators.hv import HV
from pymoo.optimize import minimize
from pymoo.problems import get_problem
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting
from pymoo.util.ref_dirs import get_reference_directions

GENES = {"zdt1": 30, "zdt2": 30, "zdt3": 30, "zdt4": 10, "zdt6": 10, "dtlz1": 7, "dtlz2": 12, "dtlz7": 22}


def problem_of(name):
    words = {"n_obj": 3} if name.startswith("dtlz") else {}
    return get_problem(name, n_var=GENES[name], **words)


def non_dominated(values):
    return values[NonDominatedSorting().do(values, only_non_dominated_front=True)]


def volumes(name, share):
    """Returns the function that measures a front. The reference point is `share` of the true front's range beyond it."""
    problem = problem_of(name)
    if name.startswith("dtlz"):
        grid = get_reference_directions("das-dennis", 3, n_partitions=60)
        front = problem.pareto_front(grid) if name != "dtlz7" else dtlz7_front()
    else:
        genes = numpy.zeros((4000, GENES[name]))
        genes[:, 0] = numpy.linspace(0, 1, len(genes))
        front = non_dominated(problem.evaluate(genes))
    low, high = front.min(axis=0), front.max(axis=0)
    indicator = HV(ref_point=numpy.ones(len(low)) * (1 + share))
    scaled = lambda values: (numpy.asarray(values) - low) / (high - low)
    whole = indicator(scaled(front))
    return lambda values: indicator(scaled(values)) / whole


def dtlz7_front():
    side = numpy.linspace(0, 1, 150)
    x, y = (grid.ravel() for grid in numpy.meshgrid(side, side))
    values = numpy.column_stack([x, y, 2 * (3 - sum(f / 2 * (1 + numpy.sin(3 * numpy.pi * f)) for f in (x, y)))])
    return non_dominated(values)


def nsga2(name, population, evaluations, seed):
    algorithm = NSGA2(pop_size=population, save_history=False)
    everything = []

    def keep(algorithm):
        everything.append(algorithm.off.get("F") if algorithm.off is not None else algorithm.pop.get("F"))

    minimize(problem_of(name), algorithm, ("n_eval", evaluations), seed=seed, callback=keep)
    values = numpy.concatenate(everything)[:evaluations]
    return non_dominated(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--budgets", nargs="+", default=["8x200", "100x10000"])
    parser.add_argument("--methods", nargs="+", default=["auto", "genetic", "nsga2:100"])
    parser.add_argument("--problems", nargs="+", default=list(GENES))
    parser.add_argument("--seeds", type=int, nargs=2, default=[1, 10], metavar=("FIRST", "LAST"))
    parser.add_argument("--share", type=float, default=0.1, help="reference point: share of the range beyond the front")
    options = parser.parse_args()
    for budget in options.budgets:
        workers, evaluations = map(int, budget.split("x"))
        print(f"{budget}, reference {options.share} beyond the front: median [quartiles]; CPU seconds per evaluation")
        for name in options.problems:
            measure = volumes(name, options.share)
            for method in options.methods:
                if method.startswith("nsga2:"):
                    seeds = range(options.seeds[0], options.seeds[1] + 1)
                    found = [measure(nsga2(name, int(method[6:]), evaluations, seed)) for seed in seeds]
                    seconds = 0
                else:
                    words = [options.bench, method, name, str(workers), str(evaluations), *map(str, options.seeds)]
                    lines = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
                    runs = [json.loads(line) for line in lines]
                    found = [measure(front) for _, _, front in runs]
                    seconds = statistics.mean(run[1] for run in runs) / evaluations
                low, middle, high = numpy.quantile(found, [0.25, 0.5, 0.75])
                print(f"{name:6} {method:12} {middle:.4f} [{low:.4f}, {high:.4f}] {1000 * seconds:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
