#!/usr/bin/env python3
"""Compares searches with few evaluations: Finch's propagators and other libraries. Prints tables in Markdown.

    ninja -C build bench_search
    python3 -m venv peers && peers/bin/pip install optuna cmaes scipy torch
    peers/bin/python tools/bench/small_budgets.py --results peers.txt --methods cmaes optuna gp:50,200:3
    tools/bench/small_budgets.py --results finch.txt --read peers.txt --methods random genetic evolution auto

A PROBLEM is a problem of bench_search. `functions` stands for the list FUNCTIONS below with all numbers of --genes;
each seed moves the optimum to a random position. A METHOD is a propagator of bench_search, or a library in PEERS.
`+halving` after a propagator adds pruning, with the same total number of epochs. `+final` adds a final choice, as Finch
makes it, in budgets from 100 evaluations. METHOD:EVALUATIONS,…:SEEDS restricts a method to these budgets and to the
first SEEDS seeds. Runs in --results are not repeated, so a stopped command can be continued. The tables also show the
runs in --read.

All methods get the same problem, evaluated by the same program, with simulated workers (lognormal durations). They get
the results in the order in which the evaluations end. Two peers are not asynchronous and accept only real genes.
`cmaes` gets the results of a complete generation (its default size) before it proposes the next one, and restarts at a
random point when it converges. `hebo` proposes one genome per worker at a time; it needs its own virtual environment
(pip install HEBO: NumPy below 1.25).
"""

import argparse
import collections
import concurrent.futures
import math
import os
import re
import statistics
import subprocess
import sys
import zlib
from pathlib import Path
from statistics import mean

from peers import PEERS, run_peer, space_of

LEAST_FINAL = 100  # evaluations
SLOW = ("gp", "hebo")  # ranked in a separate table, since they may run with few seeds
EQUAL = 1e-8  # smaller losses are raised to this multiple of the median of random search
FUNCTIONS = (
    "sphere shifted,ellipsoid_1e2 shifted,ellipsoid_1e2 rotated,ellipsoid_1e4 shifted,ellipsoid shifted,"
    "ellipsoid rotated,rosenbrock shifted,rosenbrock rotated,rastrigin shifted,rastrigin rotated,ackley rotated,"
    "levy shifted,griewank_100 rotated,styblinski_tang shifted,weighted_sum rotated"
).split(",")
HARTMANN = "hartmann:6:shifted"


def run(bench, problem, workers, evaluations, method, seed):
    if problem.endswith((":shifted", ":rotated")):  # so that no two functions share an optimum
        seed += zlib.crc32(problem.encode()) % 10**5 * 10**4
    if method in PEERS:
        best, seconds = run_peer(bench, method, problem, workers, evaluations, seed)
    else:
        words = [bench, method, problem, str(workers), str(evaluations), str(seed), str(seed)]
        output = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
        best, seconds = map(float, re.search(r"^seed \d+: (\S+), (\S+) s$", output, re.MULTILINE).groups())
    return max(best, 0.0), 1000 * seconds / evaluations, len(space_of(bench, problem))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", default="build/bench_search", help="the program bench_search")
    parser.add_argument("--problems", nargs="+", default=["functions"])
    parser.add_argument("--genes", type=int, nargs="+", default=[3, 5, 10, 20], help="of `functions`")
    parser.add_argument("--budgets", nargs="+", default=["4x50", "8x200", "64x500"], help="WORKERSxEVALUATIONS")
    parser.add_argument("--methods", nargs="*", default=["random", "genetic", "evolution", "auto", "cmaes", "optuna"])
    parser.add_argument("--judged", default="auto", help="the method whose medians are set beside the best peer's")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=3001)
    parser.add_argument("--results", type=Path, help="a line for each run is appended to it; what it has is not run")
    parser.add_argument("--read", type=Path, nargs="+", default=[], help="results of other commands, shown beside")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args()
    arguments.budgets = [tuple(map(int, text.split("x"))) for text in arguments.budgets]
    arguments.seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    if "functions" in arguments.problems:
        own = [":".join([name, str(n), how]) for n in arguments.genes for name, how in map(str.split, FUNCTIONS)]
        at = arguments.problems.index("functions")
        arguments.problems[at : at + 1] = own + [HARTMANN]
    return arguments


def split_method(text):
    """Splits METHOD[:EVALUATIONS,…:SEEDS] into its three parts. Missing parts are None: no restriction."""
    return re.fullmatch(r"(.+?)(?::([\d,]+):(\d+))?", text).groups()


def tasks(arguments):
    """Yields the runs seed by seed, so that an incomplete set of results still makes complete tables."""
    for seed in arguments.seeds:
        for text in arguments.methods:
            method, budgets, seeds = split_method(text)
            for workers, evaluations in arguments.budgets:
                if seeds and (str(evaluations) not in budgets.split(",") or seed >= arguments.first_seed + int(seeds)):
                    continue
                if not (method.endswith("+final") and evaluations < LEAST_FINAL):
                    for problem in arguments.problems:
                        yield problem, workers, evaluations, method, seed


def read(path):
    """Returns {(problem, workers, evaluations, method, seed): (true loss, CPU milliseconds per proposal)}."""
    results = {}
    for line in path.read_text().splitlines() if path and path.exists() else []:
        problem, _, workers, evaluations, method, seed, loss, milliseconds = line.split("\t")
        results[problem, int(workers), int(evaluations), method, int(seed)] = float(loss), float(milliseconds)
    return results


def run_all(arguments, results):
    """Runs the tasks that `results` lacks. Returns the number of failed tasks."""
    failed = 0
    todo = [task for task in tasks(arguments) if task not in results]
    pool = concurrent.futures.ProcessPoolExecutor(arguments.jobs)
    try:
        running = {pool.submit(run, arguments.bench, *task): task for task in todo}
        for future in concurrent.futures.as_completed(running):
            problem, workers, evaluations, method, seed = task = running[future]
            try:
                loss, milliseconds, genes = future.result()
            except Exception as error:
                print(f"{task}: {error!r}", file=sys.stderr, flush=True)
                failed += 1
                continue
            results[task] = loss, milliseconds
            if arguments.results:
                words = problem, genes, workers, evaluations, method, seed, f"{loss:.6g}", f"{milliseconds:.4g}"
                with arguments.results.open("a") as file:
                    print(*words, sep="\t", file=file)
    finally:
        pool.shutdown(cancel_futures=True)
    return failed


def print_row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def print_head(*cells):
    print_row(*cells)
    print("| --- " * len(cells) + "|")


def median(values):
    return statistics.median(values) if values else None


def number(value):
    return "—" if value is None else f"{value:.3g}"


def quartiles(values):
    if len(values) < 2:
        return number(median(values))
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]"


def genes_of(problem):
    """Returns the number of genes of a benchmark function (NAME:GENES…), or None for other problems."""
    words = problem.split(":")
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None


class Tables:
    def __init__(self, results, arguments):
        self.budgets, self.judged = arguments.budgets, arguments.judged
        self.losses = collections.defaultdict(dict)  # [problem, budget, method][seed]
        self.milliseconds = collections.defaultdict(list)  # [genes, budget, method]
        for (problem, *budget, method, seed), (loss, milliseconds) in results.items():
            if problem in arguments.problems and tuple(budget) in self.budgets and seed in arguments.seeds:
                self.losses[problem, tuple(budget), method][seed] = loss
                self.milliseconds[genes_of(problem), tuple(budget), method].append(milliseconds)
        found = {method for _, _, method in self.losses}
        order = [split_method(text)[0] for text in arguments.methods] + sorted(found - PEERS.keys()) + list(PEERS)
        self.methods = [method for method in dict.fromkeys(order) if method in found]
        self.groups = collections.defaultdict(list)
        for problem in arguments.problems:
            self.groups[genes_of(problem)].append(problem)

    def of(self, problem, budget, method):
        """Returns the losses by seed. Raises losses below EQUAL × the median of random search to this value."""
        floor = EQUAL * (median(self.losses.get((problem, budget, "random"), {}).values()) or 0)
        return {seed: max(best, floor) for seed, best in self.losses.get((problem, budget, method), {}).items()}

    def print_medians(self):
        for genes, problems in self.groups.items():
            for budget in self.budgets:
                title = "{} at once × {} evaluations".format(*budget) + (f", {genes} genes" if genes else "")
                print(f"\n{title}: medians\n")
                print_head("", *self.methods)
                for problem in problems:
                    cells = [list(self.losses.get((problem, budget, m), {}).values()) for m in self.methods]
                    print_row(problem, *(number(median(c)) if genes else quartiles(c) for c in cells))
                counts = [[len(self.losses.get((p, budget, m), {})) for p in problems] for m in self.methods]
                print_row("seeds", *("–".join(map(str, sorted({min(c), max(c)}))) for c in counts))
                times = [median(self.milliseconds[genes, budget, m]) for m in self.methods]
                print_row("CPU ms a proposal", *map(number, times))

    def print_ranks(self, methods):
        """Prints mean ranks over the functions and seeds that all `methods` have. Ties get their average rank."""
        print(f"\nMean ranks of {len(methods)} methods (1 is the best)\n")
        print_head("at once × evaluations", "genes", *methods, "functions × seeds")
        all_ranks = []
        for budget in self.budgets:
            for genes, problems in self.groups.items():
                ranks = []
                for problem in problems:
                    losses = [self.of(problem, budget, method) for method in methods]
                    for seed in set.intersection(*map(set, losses)):
                        values = [of_method[seed] for of_method in losses]
                        ranks.append([sum(o < v for o in values) + (values.count(v) + 1) / 2 for v in values])
                all_ranks += ranks
                if ranks:
                    print_row("{} × {}".format(*budget), genes or "", *map(number, map(mean, zip(*ranks))), len(ranks))
        print_row("all", "", *map(number, map(mean, zip(*all_ranks))), len(all_ranks))

    def ratios(self, problem, budget):
        """Yields (ratio, problem, peer, seeds) for each peer: the judged method's median over the peer's, on their
        common seeds."""
        judged = self.of(problem, budget, self.judged)
        for peer in (method for method in self.methods if method in PEERS):
            losses = self.of(problem, budget, peer)
            if both := judged.keys() & losses.keys():
                above, below = (median([some[seed] for seed in both]) for some in (judged, losses))
                yield above / below if below else math.inf if above else 1, problem, peer, len(both)

    def print_ratios(self):
        print(f"\n`{self.judged}`'s median over the best peer's: the worst, and how many functions are above 3\n")
        print_head("at once × evaluations", "genes", "worst ratio", "function", "peer", "seeds", "above 3")
        for budget in self.budgets:
            for genes, problems in self.groups.items():
                ratios = [max(of_peers) for p in problems if (of_peers := list(self.ratios(p, budget)))]
                if ratios:
                    worst, *of_what = max(ratios)
                    above = f"{sum(ratio > 3 for ratio, *_ in ratios)} of {len(ratios)}"
                    print_row("{} × {}".format(*budget), genes or "", number(worst), *of_what, above)

    def print_all(self):
        self.print_medians()
        fast = [method for method in self.methods if method not in SLOW]
        for methods in [fast, self.methods] if fast != self.methods else [fast]:
            if len(methods) > 1:
                self.print_ranks(methods)
        if self.judged in self.methods:
            self.print_ratios()
        print(f"\nIn ranks and ratios, losses below {EQUAL:g} of the median of `random` count as equal.")


def main():
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    arguments = parse_arguments()
    results = {}
    for path in arguments.read + [arguments.results]:
        results.update(read(path))
    failed = run_all(arguments, results)
    Tables(results, arguments).print_all()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
