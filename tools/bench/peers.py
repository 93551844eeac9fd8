"""Gives the searches of other libraries one interface, for small_budgets.py.

`ask` returns a handle and a genome in Finch's notation. `tell` passes the handle and the measured loss to the search.
`workers` is the number of simulated workers. A search that is not asynchronous gets one result at a time, and collects
results into batches of its own size.
"""

import functools
import heapq
import json
import math
import random
import subprocess
import time
import warnings


class Optuna:
    is_asynchronous = True

    def __init__(self, space, seed, workers):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.space = space
        self.study = optuna.create_study(sampler=self.sampler(optuna.samplers, seed))

    def sampler(self, samplers, seed):
        return samplers.TPESampler(multivariate=True, group=True, constant_liar=True, seed=seed)

    def ask(self):
        """Returns a trial and its genome. An inactive gene gets its first value."""
        trial = self.study.ask()
        genome, active = [], []
        for gene in self.space:
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
        return trial, genome

    def tell(self, trial, measured):
        self.study.tell(trial, measured)


class OptunaGp(Optuna):
    def sampler(self, samplers, seed):
        return samplers.GPSampler(seed=seed)


class Cmaes:
    """CMA-ES in the unit cube. It starts in the middle of the cube with an initial step size of 0.25."""

    is_asynchronous = False

    def __init__(self, space, seed, workers):
        import numpy

        self.space = space
        self.random = numpy.random.RandomState(seed)
        self.start(numpy.full(len(space), 0.5))

    def start(self, mean):
        import cmaes
        import numpy

        bounds = numpy.array([[0.0, 1.0]] * len(mean))
        self.strategy = cmaes.CMA(mean=mean, sigma=0.25, bounds=bounds, seed=self.random.randint(2**31))
        self.told = []

    def ask(self):
        place = self.strategy.ask()
        return place, [g["low"] + float(x) * (g["high"] - g["low"]) for g, x in zip(self.space, place)]

    def tell(self, place, measured):
        self.told.append((place, measured))
        if len(self.told) == self.strategy.population_size:
            self.strategy.tell(self.told)
            self.told = []
            if self.strategy.should_stop():
                self.start(self.random.uniform(size=len(place)))


class Hebo:
    is_asynchronous = False

    def __init__(self, space, seed, workers):
        import numpy
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        numpy.random.seed(seed)
        genes = [{"name": g["name"], "type": "num", "lb": g["low"], "ub": g["high"]} for g in space]
        self.optimizer = HEBO(DesignSpace().parse(genes), scramble_seed=seed)
        self.workers, self.batch, self.told = workers, [], []

    def ask(self):
        if not self.batch:
            suggested = self.optimizer.suggest(n_suggestions=self.workers)
            self.batch = [suggested.iloc[[i]] for i in range(len(suggested))]
        row = self.batch.pop(0)
        return row, [float(x) for x in row.iloc[0]]

    def tell(self, row, measured):
        import numpy

        self.optimizer.observe(row, numpy.array([[measured]]))


PEERS = {"cmaes": Cmaes, "optuna": Optuna, "gp": OptunaGp, "hebo": Hebo}


@functools.cache
def space_of(bench, problem):
    return json.loads(subprocess.run([bench, "space", problem], check=True, stdout=subprocess.PIPE, text=True).stdout)


def run_peer(bench, peer, problem, workers, evaluations, seed):
    """Returns the true loss of the individual with the best measured loss, and the CPU seconds of `ask` and `tell`."""
    warnings.simplefilter("ignore")
    search = PEERS[peer](space_of(bench, problem), seed, workers)
    seconds = 0.0
    at_once = workers if search.is_asynchronous else 1
    durations = random.Random(seed)
    due, found, started = [], (math.inf, math.inf), 0
    command = [bench, "evaluate", problem, str(seed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as judge:
        while started < evaluations or due:
            now = 0.0
            if started >= at_once or started >= evaluations:
                now, _, handle, genome = heapq.heappop(due)
                judge.stdin.write(" ".join(map(repr, genome)) + "\n")
                judge.stdin.flush()
                measured, truth = map(float, judge.stdout.readline().split())
                began = time.process_time()
                search.tell(handle, measured)
                seconds += time.process_time() - began
                found = min(found, (measured, truth))
            if started < evaluations:
                began = time.process_time()
                handle, genome = search.ask()
                seconds += time.process_time() - began
                heapq.heappush(due, (now + 60 * math.exp(0.5 * durations.gauss(0, 1)), started, handle, genome))
                started += 1
        judge.stdin.close()
    return found[1], seconds
