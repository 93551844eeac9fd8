"""Reads the files of a run into pandas tables: population.h5 and models/best.h5 (docs/files.md). The state and the
statistics of a run come from `finch show`."""
import dataclasses
import functools
import pathlib

import h5py
import numpy as np
import pandas
import yaml

from .program import ask, shown

WORKER_BITS, SEQUENCE_BITS = 20, 32
RANKED = ("evaluated", "pruned")  # outcomes of individuals that are ranked by their loss
COST_COLUMNS = {"parameters": "parameters", "seconds": "training_seconds", "joules": "joules", "accuracy": "accuracy"}  # in /individuals


class NoRun(Exception):
    """There is no readable run. The message says what was expected."""


@dataclasses.dataclass
class Gene:
    name: str
    kind: str  # real, int or choice
    is_log: bool
    low: float
    high: float
    step: float  # 0: there is no step
    options: list
    when: dict  # {other gene: the values, as texts, for which this gene is active}

    def has_one_of(self, value, texts):
        if self.kind == "choice":
            return str(value) in texts
        # A condition may name a value that a frozen gene no longer has. NaN is equal to no value.
        numbers = pandas.to_numeric(pandas.Series(texts), errors="coerce")
        return bool(np.isclose(numbers, value, rtol=1e-9, atol=1e-9 * self.step).any())


@dataclasses.dataclass
class Measure:
    """The quantity that a run minimises: its name, and a title with the unit. src/config/measure.cpp has the same
    texts. A rate is a share of images, which reports show in percent."""
    name: str
    title: str
    is_rate: bool = False

    @property
    def axis(self):
        """Returns the title of an axis of shown()."""
        return f"validation {self.name} (%)" if self.is_rate else self.title

    def shown(self, values):
        """Returns values of this quantity in the unit of the report."""
        return 100 * values if self.is_rate else values

    def text(self, value):
        return f"{100 * value:.2f} %" if self.is_rate else f"{value:.5g}"

    @classmethod
    def of(cls, settings):
        objective = settings["search"]["objective"]
        objective = objective[0] if isinstance(objective, list) else objective
        if isinstance(objective, dict) and "function" in objective:
            return cls("value", f"value of {objective['function']}")
        if isinstance(objective, dict):
            return cls("loss", "loss (as the program reports it)")
        if objective == "validation_error":
            return cls("error", "validation error (share of images)", is_rate=True)
        loss = settings.get("training", {}).get("loss")
        return cls("loss", "validation loss" + (f" ({loss.replace('_', ' ')})" if loss else ""))

    def of_epochs(self, curves):
        """Returns this quantity for each epoch of learning curves."""
        return 1 - curves.validation_accuracy if self.is_rate else curves.validation_loss


@dataclasses.dataclass
class Run:
    name: str
    path: pathlib.Path
    attributes: dict
    config: str
    genes: list
    individuals: pandas.DataFrame  # indexed by id; choices, operators and outcomes as words
    curves: pandas.DataFrame
    workers: pandas.DataFrame
    starts: pandas.DataFrame
    problems: pandas.DataFrame
    events: pandas.DataFrame
    memberships: pandas.DataFrame
    homes: pandas.DataFrame
    best: dict  # the data sets of models/best.h5 by name; empty if there is no file

    def class_text(self, number):
        """Returns the number of a class, followed by its name if the data have names."""
        names = self.best.get("classes", [])
        return f"{number} {names[number]}" if number < len(names) else str(number)

    def active_genes(self, row):
        """Returns the genes that are active in an individual: their conditions (`when`) hold."""
        by_name = {gene.name: gene for gene in self.genes}

        def is_active(gene):
            return all(is_active(by_name[name]) and by_name[name].has_one_of(row[name], texts) for name, texts in gene.when.items())
        return [gene for gene in self.genes if is_active(gene)]

    @property
    def has_journals(self):
        """True if a restart may add results to the archive."""
        return any(self.path.glob("state/**/*.journal"))

    @property
    def summary(self):
        """The sentences that Finch wrote with the archive; empty if the file is missing."""
        file = self.path / "summary.txt"
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""

    @property
    def settings(self):
        return yaml.safe_load(self.config)

    @property
    def objectives(self):
        """Returns the objectives of the configuration. The first objective defines the column `loss`."""
        objective = self.settings["search"]["objective"]
        if isinstance(objective, dict):
            return [objective, *objective.get("objectives", ["loss"])[1:]]
        return objective if isinstance(objective, list) else [objective]

    @property
    def cost_columns(self):
        """Returns the columns of /individuals with the objectives after the first, as they were reported."""
        names = [name.lstrip("-") for name in self.objectives[1:]]
        metrics = [name for name in self.objectives[1:] if name.lstrip("-") not in COST_COLUMNS]
        return [COST_COLUMNS.get(name) or f"objective_metric_{metrics.index(written) + 1}" for name, written in zip(names, self.objectives[1:])]

    def objective_values(self, table):
        """Returns the objectives of the rows of `table` (individuals, objectives); smaller is better."""
        signs = [1, *(-1 if name.startswith("-") else 1 for name in self.objectives[1:])]
        return table[["loss", *self.cost_columns]].to_numpy(float) * signs

    def on_fronts(self, table):
        """Returns the rows of `table` that may be on a front: complete, within the limits, with numbers as objectives."""
        rows = table[(table.outcome != "pruned") & (table.violation == 0)]
        return rows[np.isfinite(self.objective_values(rows)).all(axis=1)]

    @property
    def measure(self):
        return Measure.of(self.settings)

    @property
    def trains(self):
        """True if the individuals are networks."""
        return isinstance(self.objectives[0], str)

    @functools.cached_property
    def shown(self):
        """The results of the run as finch computes them: the JSON object of `finch show`."""
        return shown(self.path)

    @property
    def state(self):
        """Returns the state of the run, in the words of `finch status`."""
        return self.shown["state"]

    @property
    def best_interval(self):
        """Returns the 95 % interval of the best individual's loss, given the validation samples; None if it is unknown."""
        return self.shown["statistics"]["best_interval"]

    @property
    def gene_shares(self):
        """Returns {gene: share of the variance of the losses' ranks that it explains}, in the order of the genes. A gene
        that does not matter beyond chance has 0. Returns None if there are too few results."""
        shares = self.shown["statistics"]["gene_shares"]
        return None if shares is None else dict(zip((gene.name for gene in self.genes), shares))

    @property
    def measured(self):
        """Returns the individuals that are ranked by loss, without repeats of a final choice, in the order of their
        ends."""
        table = self.individuals
        return table[table.outcome.isin(RANKED) & np.isfinite(table.loss) & (table.operator != "repeat")].sort_values(["finished", "id_number"])

    @property
    def ended(self):
        """Returns the evaluations that ended in this run, with a result or a failure, without repeats of a final
        choice, in the order of their ends. The summary counts the same evaluations."""
        table = self.individuals
        rows = (table.outcome != "unfinished") & (table.operator != "repeat") & (table.reused_from == 0)
        return table[rows].sort_values(["finished", "id_number"])

    @property
    def complete(self):
        """Returns the individuals in `measured` that were trained to their end."""
        return self.measured[self.measured.outcome == "evaluated"]

    @property
    def ranked(self):
        """Returns `complete` with the best first, in the order of better() in include/finch/search/individual.hpp."""
        return self.complete.assign(is_reused=lambda rows: rows.reused_from != 0).sort_values(["violation", "loss", "is_reused", "id_number"])

    def node_hours(self, times):
        """Returns the node-hours that the run had used at each of `times`, in Unix seconds."""
        used = np.zeros(len(times))
        for start in self.starts.itertuples():
            used += start.nodes * np.clip(np.asarray(times) - start.began, 0, start.seconds) / 3600
        return used

    def running_hours(self, times):
        """Returns the hours that the run had been running at each of `times`. Time between its starts does not
        count."""
        hours = np.zeros(len(times))
        for start in self.starts.itertuples():
            hours += np.clip(np.asarray(times) - start.began, 0, start.seconds) / 3600
        return hours


    @property
    def knows_energy(self):
        """True if the energy of every ended individual is known, and their sum is above 0."""
        ended = self.individuals[self.individuals.outcome != "unfinished"]
        return bool(len(ended) and np.isfinite(ended.joules).all() and ended.joules.sum() > 0)

    def kilowatt_hours(self, times):
        """Returns the energy in kWh of the individuals that had ended at each of `times`, in Unix seconds."""
        ended = self.individuals[self.individuals.outcome != "unfinished"].sort_values("finished")
        sums = np.concatenate([[0], np.cumsum(np.nan_to_num(ended.joules))]) / 3.6e6
        return sums[np.searchsorted(ended.finished, np.asarray(times), side="right")]


def is_running(path):
    """True if a process of finch works in the run directory."""
    codes = {0: False, 75: False, 76: False, 77: True, 78: False}  # docs/operations.md
    return codes[ask("status", path, codes=codes)[1]]


def id_text(number):
    number = int(number)
    return f"{number >> (WORKER_BITS + SEQUENCE_BITS)}.{number >> SEQUENCE_BITS & (1 << WORKER_BITS) - 1}.{number & (1 << SEQUENCE_BITS) - 1}"


def words(values):
    """Returns strings of HDF5 as str."""
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in values]


def read_table(file, name):
    """Returns an HDF5 dataset as a table. Enums and byte strings become str."""
    if name not in file:
        return pandas.DataFrame()
    rows = file[name][:]
    columns = {}
    for column in rows.dtype.names:
        values = rows[column]
        meaning = h5py.check_enum_dtype(rows.dtype[column])
        if meaning:
            word = {number: text for text, number in meaning.items()}
            columns[column] = pandas.Categorical([word.get(int(value), str(value)) for value in values])
        elif values.dtype.kind in "SO":
            columns[column] = words(values)
        else:
            columns[column] = values
    return pandas.DataFrame(columns)


def read_conditions(config):
    """Returns {gene: {other gene: values}} of all `when` conditions, with the values as texts of the configuration."""
    space = (yaml.load(config, yaml.BaseLoader).get("search") or {}).get("space") or {}
    conditions = {name: gene["when"] for name, gene in space.items() if isinstance(gene, dict) and "when" in gene}
    return {name: {other: values if isinstance(values, list) else [values] for other, values in when.items()} for name, when in conditions.items()}


def read_genes(file, config):
    space, choices = read_table(file, "space"), read_table(file, "choices")
    conditions = read_conditions(config)
    steps = {name: gene.get("step", 0) for name, gene in (yaml.safe_load(config)["search"].get("space") or {}).items() if isinstance(gene, dict)}
    genes = []
    for place, row in enumerate(space.itertuples()):
        options = list(choices[choices.gene == place].option) if len(choices) else []
        whole = row.kind == "int"
        genes.append(Gene(row.gene, row.kind, row.scale == "log", float(row.low_whole if whole else row.low),
                          float(row.high_whole if whole else row.high), float(steps.get(row.gene, 0)), options,
                          conditions.get(row.gene, {})))
    return genes


def read_individuals(file, genes):
    table = read_table(file, "individuals")
    for gene in genes:
        if gene.kind == "choice":
            table[gene.name] = table[gene.name].astype(str)
    table["id_number"] = table.id
    table.index = [id_text(number) for number in table.id]
    return table


def read_best(path):
    try:
        with h5py.File(path) as file:
            best = {}
            file.visititems(lambda name, item: best.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
            best["id"] = file.attrs["id"]
            best["classes"] = words(file.attrs.get("classes", []))
            return best
    except OSError:
        return {}


def read_run(path):
    path = pathlib.Path(path)
    archive = path / "population.h5"
    if not path.is_dir():
        raise NoRun(f"{path}: is no folder; expected the directory of a run")
    if not archive.is_file():
        raise NoRun(f"{path}: holds no population.h5; expected the directory of a run")
    try:
        with h5py.File(archive) as file:
            config = words([file["config"][()]])[0]
            genes = read_genes(file, config)
            tables = {name: read_table(file, name) for name in ("curves", "workers", "starts", "problems", "events", "memberships", "homes")}
            individuals = read_individuals(file, genes)
            return Run(name=path.resolve().name, path=path, attributes=dict(file.attrs), config=config, genes=genes, individuals=individuals,
                       best=read_best(path / "models" / "best.h5"), **tables)
    except (OSError, KeyError) as error:
        raise NoRun(f"{archive}: cannot be read ({error}); `finch show {path}` says what is there") from error
