#!/usr/bin/env python3
"""How well searches of few evaluations end, beside Optuna's TPE: asynchronous simulated workers, lognormal durations.

    ninja -C build bench_search
    python3 -m venv peers && peers/bin/pip install optuna && peers/bin/python tools/bench/small_budgets.py [BENCH_SEARCH] [SEEDS]
                                                             [PROBLEM,… WORKERSxEVALUATIONS,… SEARCH,… FIRST_SEED]

Prints the median and the quartiles, over SEEDS (10) seeds from FIRST_SEED (1001) on, of what the best individual as measured is worth without noise.
PROBLEM: mixed, table, or trainings:FOLDER with what tools/bench/trainings.py recorded. A SEARCH is a propagator of bench_search, with `+halving` if it prunes
(in as many epochs as the others) or `+final` if it chooses at the end, from 100 evaluations on, as Finch does; or `optuna`: TPESampler(multivariate=True, group=True,
constant_liar=True), which sees the same spaces, measures by the same program, and is told results in the order in which they would end.
"""
import heapq
import json
import math
import random
import re
import statistics
import subprocess
import sys
import warnings

BENCH = sys.argv[1] if len(sys.argv) > 1 else "build/bench_search"
SEEDS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
PROBLEMS = (sys.argv[3] if len(sys.argv) > 3 else "mixed,table").split(",")
BUDGETS = [tuple(map(int, text.split("x"))) for text in (sys.argv[4] if len(sys.argv) > 4 else "4x50,8x200,64x500").split(",")]
SEARCHES = (sys.argv[5] if len(sys.argv) > 5 else "random,propulate,genetic,auto,auto+final,tpe,optuna").split(",")
FIRST_SEED = int(sys.argv[6]) if len(sys.argv) > 6 else 1001
LEAST_FINAL = 100  # evaluations


def suggest(trial, space):
    """A genome as Finch writes it; an inactive gene stands at its first value."""
    genome, active = [], []
    for gene in space:
        is_active = all(active[c["gene"]] and genome[c["gene"]] in c["values"] for c in gene["when"])
        name, kind = gene["name"], gene["kind"]
        if not is_active:
            value = gene.get("low", 0)
        elif kind == "real":
            value = trial.suggest_float(name, gene["low"], gene["high"], log=gene["log"], step=gene["step"] or None)
        elif kind == "int":
            value = trial.suggest_int(name, gene["low"], gene["high"], log=gene["log"], step=gene["step"])
        elif gene["ordered"]:
            value = trial.suggest_int(name, 0, gene["options"] - 1)
        else:
            value = trial.suggest_categorical(name, list(range(gene["options"])))
        genome.append(value)
        active.append(is_active)
    return genome


def optuna_best(problem, workers, evaluations, seed):
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    space = json.loads(subprocess.run([BENCH, "space", problem], check=True, stdout=subprocess.PIPE, text=True).stdout)
    sampler = optuna.samplers.TPESampler(multivariate=True, group=True, constant_liar=True, seed=seed)
    study = optuna.create_study(sampler=sampler)
    durations = random.Random(seed)
    due, found, started = [], (math.inf, math.inf), 0
    with subprocess.Popen([BENCH, "evaluate", problem, str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as judge:
        while started < evaluations or due:
            now = 0.0
            if started >= workers or started >= evaluations:
                now, _, trial, genome = heapq.heappop(due)
                judge.stdin.write(" ".join(map(repr, genome)) + "\n")
                judge.stdin.flush()
                measured, truth = map(float, judge.stdout.readline().split())
                study.tell(trial, measured)
                found = min(found, (measured, truth))
            if started < evaluations:
                trial = study.ask()
                genome = suggest(trial, space)
                heapq.heappush(due, (now + 60 * math.exp(0.5 * durations.gauss(0, 1)), started, trial, genome))
                started += 1
        judge.stdin.close()
    return found[1]


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]"


def cell(search, problem, workers, evaluations):
    if search.endswith("+final") and evaluations < LEAST_FINAL:
        return "—"
    if search == "optuna":
        return quartiles([optuna_best(problem, workers, evaluations, seed) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)])
    words = [BENCH, search, problem, str(workers), str(evaluations), str(FIRST_SEED), str(FIRST_SEED + SEEDS - 1)]
    output = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    middle, low, high = (float(word) for word in re.search(r"median +(\S+) \[ *(\S+), +(\S+)\]", output).groups())
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]"


print("| problem | workers × evaluations | " + " | ".join(SEARCHES) + " |\n" + "| --- " * (2 + len(SEARCHES)) + "|")
for problem in PROBLEMS:
    for workers, evaluations in BUDGETS:
        cells = [cell(search, problem, workers, evaluations) for search in SEARCHES]
        print(f"| {problem} | {workers} × {evaluations} | " + " | ".join(cells) + " |", flush=True)
