"""Exports the individuals of a run: write_trace(), write_graphml() and write_optuna()."""
import datetime
import json
import math
import warnings

import numpy as np

from reporting.run import id_text


def genes_of(run, row):
    """Returns the values of the active genes by name, as built-in types of Python."""
    types = {"real": float, "int": int, "choice": str}
    return {gene.name: types[gene.kind](row[gene.name]) for gene in run.active_genes(row)}


# trace

RUN_PROCESS = 0  # the process that shows the run; worker w is process w + 1


def lanes_of(slices):
    """Distributes the slices (begin, end, row) to the smallest number of lanes in which they do not overlap."""
    lanes = []
    for one in sorted(slices, key=lambda slice: slice[0]):
        lane = next((lane for lane in lanes if lane[-1][1] <= one[0]), None)
        if lane is None:
            lanes.append(lane := [])
        lane.append(one)
    return lanes


class Trace:
    """The trace events of a run. Times are in microseconds since the first start of the run."""

    def __init__(self, run):
        self.run = run
        self.starts = {start.restart: start for start in run.starts.itertuples()}
        self.origin = min((start.began for start in self.starts.values()), default=0)
        self.curves = dict(tuple(run.curves.groupby("individual"))) if len(run.curves) else {}
        self.events = []
        self.name_process(RUN_PROCESS, "the run")

    def name_process(self, process, name):
        self.events.append({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}})

    def slice(self, name, category, process, lane, begin, end, args):
        self.events.append({"ph": "X", "name": name, "cat": category, "pid": process, "tid": lane,
                            "ts": (begin - self.origin) * 1e6, "dur": (end - begin) * 1e6, "args": args})

    def add_run(self):
        last = self.run.individuals.groupby("last_restart").finished.max()
        for restart, start in self.starts.items():
            # The end of a killed start is its last result.
            end = np.fmax(start.began + start.seconds, last.get(restart, math.nan))
            self.slice(f"start {restart}", "start", RUN_PROCESS, 0, start.began, end,
                       {"workers": int(start.workers), "nodes": int(start.nodes)})
        for event in self.run.events.itertuples():
            self.events.append({"ph": "i", "s": "g", "name": event.kind, "cat": "event", "pid": RUN_PROCESS, "tid": 0, "ts": (event.time - self.origin) * 1e6,
                                "args": {"worker": int(event.worker), "text": event.text}})

    def add_worker(self, worker, individuals):
        last = individuals.iloc[-1]
        self.name_process(worker + 1, f"worker {worker} (island {last.island}, {last.node})")
        for restart, rows in individuals.groupby("last_restart"):
            start = self.starts.get(restart)
            slices = []
            for _, row in rows.iterrows():  # for a resumed evaluation: its last part
                began = max(row.started, start.began) if start else row.started
                slices.append((began, max(began, row.finished), row))
            for number, lane in enumerate(lanes_of(slices)):
                free_since = start.began if start else lane[0][0]
                for begin, end, row in lane:
                    if begin > free_since:
                        self.slice("waiting", "waiting", worker + 1, number, free_since, begin, {})
                    self.add_evaluation(worker + 1, number, begin, end, row)
                    free_since = end

    def add_evaluation(self, process, lane, begin, end, row):
        measure = self.run.measure
        self.slice(row.name, str(row.outcome), process, lane, begin, end,
                   {"outcome": str(row.outcome), measure.name: number_or_null(row.loss), "operator": str(row.operator), "epochs": int(row.epochs),
                    "genes": genes_of(self.run, row)})
        curve = self.curves.get(row.id_number)
        # Draws no epochs if the evaluation resumed after a stop, or if a program reports no times.
        if curve is None or not curve.seconds.sum(skipna=False) <= end - begin:
            return
        for (_, epoch), value in zip(curve.iterrows(), measure.of_epochs(curve)):
            self.slice(f"epoch {int(epoch.epoch)}", "epoch", process, lane, begin, begin + epoch.seconds, {measure.name: number_or_null(value)})
            begin += epoch.seconds


def number_or_null(value):
    return float(value) if math.isfinite(value) else None  # JSON has no NaN


def write_trace(run, output):
    trace = Trace(run)
    trace.add_run()
    table = run.individuals
    trained = table[(table.outcome != "unfinished") & (table.last_worker >= 0) & (table.started > 0) & (table.reused_from == 0)]
    for worker, individuals in trained.groupby("last_worker"):
        trace.add_worker(worker, individuals)
    output.write_text(json.dumps({"displayTimeUnit": "ms", "traceEvents": trace.events}, allow_nan=False))


# graphml

def write_graphml(run, output):
    import networkx

    graph = networkx.MultiDiGraph()
    for name, row in run.individuals.iterrows():
        genes = {f"gene.{gene}": value for gene, value in genes_of(run, row).items()}
        graph.add_node(name, outcome=str(row.outcome), operator=str(row.operator), loss=float(row.loss), island=int(row.island), generation=int(row.generation),
                       born=float(row.born), **genes)
    for name, row in run.individuals.iterrows():
        for column, kind in (("parent_1", "parent"), ("parent_2", "parent"), ("inherited_from", "weights"), ("retry_of", "retry")):
            source = id_text(row[column])
            if row[column] and graph.has_node(source):
                graph.add_edge(source, name, kind=kind)
    networkx.write_graphml(graph, str(output))


# optuna

def typed_options(options):
    """Returns options as numbers and booleans if Python prints them with the same text, else as texts.

    Returns all options as texts if two options would be equal.
    """
    def typed(text):
        if text in ("true", "false"):
            return text == "true"
        for kind in (int, float):
            try:
                value = kind(text)
            except ValueError:
                continue
            if math.isfinite(value) and (text == str(value) or text + ".0" == str(value)):
                return value
        return text

    values = [typed(text) for text in options]
    numbers = [value for value in values if not isinstance(value, str)]
    return values if len(numbers) == len(set(numbers)) else list(options)


def distribution_of(gene):
    from optuna import distributions

    if gene.kind == "choice":
        return distributions.CategoricalDistribution(typed_options(gene.options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Optuna warns if a range does not end at a step
        if gene.kind == "int":
            return distributions.IntDistribution(int(gene.low), int(gene.high), log=gene.is_log, step=1 if gene.is_log else int(gene.step) or 1)
        return distributions.FloatDistribution(gene.low, gene.high, log=gene.is_log, step=None if gene.is_log else gene.step or None)


def time_of(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def trial_of(run, row, distributions, curve, problem):
    from optuna.trial import FrozenTrial, TrialState

    active = run.active_genes(row)
    params = {gene.name: distributions[gene.name].to_external_repr(gene.options.index(row[gene.name]) if gene.kind == "choice" else row[gene.name])
              for gene in active}
    several = len(run.objectives) > 1
    ended = row.outcome != "unfinished"
    ranks = row.outcome in ("evaluated", "pruned") and math.isfinite(row.loss)
    state = (TrialState.RUNNING if not ended else TrialState.PRUNED if row.outcome == "pruned" else TrialState.COMPLETE if ranks else TrialState.FAIL)
    values = [float(row.loss), *(float(row[column]) for column in run.cost_columns)] if ended and ranks else None
    epochs = {} if several or curve is None else {int(epoch): float(value) for epoch, value in zip(curve.epoch, run.measure.of_epochs(curve)) if not math.isnan(value)}
    attributes = {"id": row.name, "outcome": str(row.outcome), "operator": str(row.operator), "island": int(row.island), "worker": int(row.last_worker),
                  "epochs": int(row.epochs), "training_seconds": number_or_null(row.training_seconds), "joules": number_or_null(row.joules),
                  "parameters": int(row.parameters), "accuracy": number_or_null(row.accuracy), "problem": problem}
    return FrozenTrial(number=0, trial_id=0, state=state, value=None, values=values, params=params, distributions={gene.name: distributions[gene.name] for gene in active},
                       user_attrs={name: value for name, value in attributes.items() if value is not None}, system_attrs={}, intermediate_values=epochs,
                       datetime_start=time_of(row.started or row.born), datetime_complete=time_of(row.finished) if ended else None)


def write_optuna(run, output):
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    output.unlink(missing_ok=True)  # Optuna would append to an existing file
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(output)))
    study = optuna.create_study(storage=storage, study_name=run.settings["name"], directions=["minimize", *("maximize" if name.startswith("-") else "minimize" for name in run.objectives[1:])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names([run.measure.title, *(name.lstrip("-") for name in run.objectives[1:])])
    distributions = {gene.name: distribution_of(gene) for gene in run.genes}
    curves = dict(tuple(run.curves.groupby("individual"))) if len(run.curves) else {}
    problems = dict(zip(run.problems.individual, run.problems.text)) if len(run.problems) else {}
    table = run.individuals
    began = np.where(table.started > 0, table.started, table.born)
    study.add_trials([trial_of(run, row, distributions, curves.get(row.id_number), problems.get(row.id_number))
                      for _, row in table.iloc[np.argsort(began, kind="stable")].iterrows()])
