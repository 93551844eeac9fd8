"""Computes data for reports from the tables of a run: a forest over the genes, ancestors, busy times of workers.
Statistics that finch computes come from `finch show` (run.py)."""
import numpy as np
import pandas
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

FEWEST = 20  # individuals that a forest needs at least
MOST = 3000  # individuals that a forest uses at most: more take seconds and do not improve the result


def thinned(table, most, seed=0):
    """Returns at most `most` rows, in their order: the best rows (1 % of `most`) and random other rows."""
    if len(table) <= most:
        return table
    best = table.nsmallest(max(1, most // 100), "loss").index
    others = table.index.difference(best, sort=False)
    chosen = np.random.default_rng(seed).choice(len(others), most - len(best), replace=False)
    return table.loc[table.index.isin(best.union(others[chosen]))]


def coordinates(gene, values):
    """Returns the values of a gene as numbers: log10 for a logarithmic gene, the index of the option for a choice."""
    if gene.kind == "choice":
        place = {option: number for number, option in enumerate(gene.options)}
        return np.array([place.get(str(value), -1) for value in values], float)
    values = np.asarray(values, float)
    return np.log10(values) if gene.is_log else values


def features(run, table):
    """Returns the features (individuals, columns) of a forest.

    A gene is one column. A choice of more than two options has one column per option, since the options have no order.
    """
    columns = []
    for gene in run.genes:
        values = coordinates(gene, table[gene.name])
        if gene.kind == "choice" and len(gene.options) > 2:
            columns += [(values == option).astype(float) for option in range(len(gene.options))]
        else:
            columns.append(values)
    return np.column_stack(columns)


class Forest:
    """A random forest that predicts the rank of the loss, in [0, 1], from the genes.

    It predicts ranks, since a few very large losses would dominate the training of a forest that predicts losses.
    """

    def __init__(self, run):
        table = thinned(run.complete, MOST)
        self.run = run
        x = features(run, table)
        y = table.loss.rank(pct=True).to_numpy()
        known_x, unseen_x, known_y, unseen_y = train_test_split(x, y, test_size=0.3, random_state=0)
        self.model = RandomForestRegressor(200, min_samples_leaf=2, max_features=0.7, random_state=0).fit(known_x, known_y)
        self.score = self.model.score(unseen_x, unseen_y)
        self.samples = len(table)

    @staticmethod
    def fits(run):
        return len(run.complete) >= FEWEST and len(run.genes) > 0 and run.complete.loss.nunique() > 1

    def surface(self, first, second, x, y):
        """Returns predicted ranks (len(y), len(x)): the mean over 100 individuals, which give the values of the other
        genes."""
        table = thinned(self.run.complete, 100)
        names = [first.name, second.name]
        grid_x, grid_y = np.meshgrid(np.arange(len(x)), np.arange(len(y)))
        sums = np.zeros(grid_x.size)
        for _, row in table.iterrows():
            points = pandas.DataFrame({gene.name: [row[gene.name]] * grid_x.size for gene in self.run.genes if gene.name not in names})
            points[first.name] = np.asarray(x)[grid_x.ravel()]
            points[second.name] = np.asarray(y)[grid_y.ravel()]
            sums += self.model.predict(features(self.run, points))
        return (sums / len(table)).reshape(grid_x.shape)


def best_so_far(run):
    """Returns the measured individuals with a column `evaluations`, the number of evaluations that had ended with them,
    and the individuals that were the best when they ended.
    """
    ends = np.sort(run.ended.finished)
    table = run.measured.assign(evaluations=lambda rows: np.searchsorted(ends, rows.finished, side="right"))
    counted = table[(table.outcome != "pruned") & (table.violation == 0)]
    return table, counted[counted.loss < counted.loss.cummin().shift(fill_value=np.inf)]


def expected_best(losses, most=100):
    """Returns numbers of draws without replacement from `losses`, and the expected smallest loss of each number, given
    that one of the draws has a loss. A draw with an infinite loss is an evaluation without a result.

    The expectation is exact: of all C(m, n) sets, C(m - i, n - 1) have the i-th smallest loss as their best. For n <= m
    it is an unbiased estimate for n new individuals. The numbers end at m / 2: beyond, the smallest loss has more than
    half of the weight.
    """
    count = len(losses)
    finite = np.sort(losses[np.isfinite(losses)])
    if not len(finite):
        return [], []
    numbers = np.unique(np.geomspace(1, max(1, count // 2), most).astype(int))
    place = np.arange(1, len(finite))
    means = []
    for draws in numbers:
        weights = draws / count * np.cumprod([1, *np.maximum(0, count - place - draws + 1) / (count - place)])
        means.append(float(weights @ finite / weights.sum()))
    return numbers.tolist(), means


def random_losses(run):
    """Returns the losses of the random individuals of a run; infinity without a loss of a complete training."""
    rows = run.ended[run.ended.operator == "random"]
    return rows.loss.where((rows.outcome == "evaluated") & np.isfinite(rows.loss), np.inf).to_numpy(float)


def ancestors(run, name, most=150):
    """Returns about `most` nearest ancestors of `name`, each with its distance in generations, and the edges between
    them.

    If several paths lead to an ancestor, the longest path counts, so that a parent is never on the level of its child.
    """
    table = run.individuals
    by_number = dict(zip(table.id_number, table.index))
    depth, edges, front = {name: 0}, [], [name]
    while front and len(depth) < most:
        row = table.loc[front.pop(0)]
        for number in (row.parent_1, row.parent_2, row.retry_of, row.inherited_from):
            parent = by_number.get(number)
            if number == 0 or parent is None:
                continue
            edges.append((parent, row.name))
            if parent not in depth:
                depth[parent] = depth[row.name] + 1
                front.append(parent)
    edges = sorted((parent, child) for parent, child in set(edges) if parent in depth)
    for parent, child in sorted(edges, key=lambda edge: -table.born[edge[1]]):  # children first
        depth[parent] = max(depth[parent], depth[child] + 1)
    return depth, edges


def trainings(run):
    """Returns a row for each evaluation and each start in which it ran: its worker, its begin and its end.

    An evaluation that resumed after a stop has a row for each start, since it did not train between the starts.
    """
    rows = run.individuals
    rows = rows[np.isfinite(rows.started) & np.isfinite(rows.finished) & (rows.started > 0) & (rows.last_worker >= 0) & (rows.reused_from == 0)]
    parts = []
    for start in run.starts.itertuples():
        end = start.began + start.seconds
        here = rows[(rows.started < end) & (rows.finished > start.began) & (rows.last_restart >= start.restart)]
        here = here.assign(begin=here.started.clip(lower=start.began), end=here.finished.clip(upper=end), restart_of=start.restart)
        parts.append(here[here.end >= here.begin])
    return pandas.concat(parts) if parts else rows.assign(begin=rows.started, end=rows.finished, restart_of=0)


def busy_fraction(parts, workers, edges):
    """Returns the share of `workers` that trained, in each interval between `edges`."""
    busy = np.zeros(len(edges) - 1)
    for row in parts.itertuples():
        busy += np.clip(np.minimum(row.end, edges[1:]) - np.maximum(row.begin, edges[:-1]), 0, None)
    return np.minimum(1, busy / (np.diff(edges) * max(1, workers)))


def front_of(losses):
    """Returns a mask of the Pareto front of `losses` (individuals, objectives): rows that no other row dominates."""
    order = np.lexsort(losses.T[::-1])
    best = np.zeros(len(losses), bool)
    kept = np.empty((0, losses.shape[1]))
    for place in order:
        row = losses[place]
        if not ((kept <= row).all(axis=1) & (kept < row).any(axis=1)).any():
            best[place] = True
            kept = np.vstack([kept, row])
    return best
