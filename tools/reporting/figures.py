"""The figures of a run's results. Each function returns a plotly figure, or a sentence that explains its absence."""
import html
import itertools

import numpy as np
import plotly.graph_objects as go

from . import analysis
from .axes import gene_axis, number_text, ranked_ticks, value_axis
from .drawing import (AMOUNTS, BLUE, INK, MOST_CURVES, MOST_POINTS, MUTED, OUTCOME_COLOURS, PALE, PAPER, RANKS, RED, RUN_COLOURS, describe, figure,
                      numbers, star)
from .run import id_text

COST_TITLES = {"seconds": "training, seconds", "joules": "energy of the training, joules"}
NONE_TRAINED = "No individual was trained to its end."
MOST_ISLANDS = 8  # that have a colour of their own
FEWEST_RANDOM = 10


class ProgressFigure:
    """Collects lines with their x values on each of several axes, of which a button chooses one."""

    def __init__(self, runs):
        self.made = figure(height=480)
        self.titles = ["evaluations", "hours of running", "node-hours"] + ["kWh"] * all(run.knows_energy for run in runs)
        self.axes = []

    def places(self, run, rows):
        """Returns the x values of `rows` on each axis."""
        return [numbers(x) for x in (rows.evaluations, run.running_hours(rows.finished), run.node_hours(rows.finished),
                                     run.kilowatt_hours(rows.finished))][:len(self.titles)]

    def add(self, axes, y, **look):
        self.made.add_scatter(x=axes[0], y=numbers(y), **look)
        self.axes.append(axes)

    def add_staircase(self, run, table, best, **look):
        """Adds the best loss so far, up to the last individual of `table`."""
        axes = [[*x, *end] for x, end in zip(self.places(run, best), self.places(run, table.iloc[[-1]]))]
        text = describe(run, best)
        self.add(axes, run.measure.shown(best.loss.to_numpy()[[*range(len(best)), -1]]), text=[*text, text[-1]], hovertemplate="%{text}<extra></extra>",
                 line={"shape": "hv", **look.pop("line")}, **look)

    def with_buttons(self):
        buttons = [{"label": title, "method": "update", "args": [{"x": [x[place] for x in self.axes]}, {"xaxis.title.text": title}]}
                   for place, title in enumerate(self.titles)]
        self.made.update_layout(updatemenus=[{"type": "buttons", "direction": "right", "x": 0, "y": 1.16, "xanchor": "left", "buttons": buttons}],
                                margin={"t": 60})
        self.made.update_xaxes(title=self.titles[0])
        return self.made


def add_islands(plot, run, table):
    """Adds the best loss so far of each island."""
    islands = table[table.outcome != "pruned"].groupby("island")
    for number, (island, rows) in enumerate(islands if table.island.nunique() > 1 else []):
        own = rows[rows.loss < rows.loss.cummin().shift(fill_value=np.inf)]
        look = {"name": f"island {island}", "line": {"width": 1.5, "color": RUN_COLOURS[1 + number % (len(RUN_COLOURS) - 1)]}}
        if len(islands) > MOST_ISLANDS:
            look = {"name": "an island", "legendgroup": "islands", "showlegend": number == 0, "line": {"width": 1, "color": MUTED}}
        plot.add_staircase(run, table, own, mode="lines", **look)


def add_random_search(plot, run):
    """Adds the expected best of as many random individuals, against evaluations alone."""
    losses = analysis.random_losses(run)
    if len(losses) < FEWEST_RANDOM:
        return
    draws, means = analysis.expected_best(losses)
    absent = [None] * len(draws)
    plot.add([draws, *[absent] * (len(plot.titles) - 1)], run.measure.shown(np.array(means)), mode="lines", name="random search (expected)",
             line={"dash": "dash", "width": 2, "color": MUTED}, hovertemplate="best of %{x} random: %{y:.5g}<extra></extra>")


def add_best(plot, run, table):
    """Adds the best individual, with the 95 % interval of its loss."""
    best, interval = run.ranked.iloc[0], run.best_interval
    shown, error = run.measure.shown, {}
    if interval:
        error = {"error_y": {"type": "data", "symmetric": False, "array": [shown(interval[1] - best.loss)], "arrayminus": [shown(best.loss - interval[0])],
                             "color": RED, "thickness": 1.5, "width": 5}}
    axes = plot.places(run, table.loc[[best.name]])
    plot.add(axes, [shown(best.loss)], **{name: value for name, value in star(0, 0, run, best, **error).items() if name not in ("x", "y")})


def progress(runs):
    """Draws the best loss so far, against evaluations, running hours, node-hours or (if known) energy."""
    plot, is_alone = ProgressFigure(runs), len(runs) == 1
    measures = {run.measure.axis: run.measure.name for run in runs}
    for colour, run in zip(itertools.cycle(RUN_COLOURS), runs):
        table, best = analysis.best_so_far(run)
        if best.empty:
            continue
        if is_alone:
            some = analysis.thinned(table, MOST_POINTS)
            plot.add(plot.places(run, some), run.measure.shown(some.loss), mode="markers", name="individuals", text=describe(run, some),
                     hovertemplate="%{text}<extra></extra>", marker={"size": 6, "opacity": 0.6, "color": PALE})
        name = "best so far" if is_alone else run.name if len(measures) == 1 else f"{run.name}: {run.measure.axis}"
        is_wide = is_alone and table.island.nunique() > 1
        plot.add_staircase(run, table, best, mode="lines", name=name, line={"width": 7 if is_wide else 3, "color": colour}, opacity=0.45 if is_wide else 1)
        if is_alone:
            add_islands(plot, run, table)
            add_random_search(plot, run)
            add_best(plot, run, table)
    if not plot.axes:
        return "No individual has a loss yet."
    made = plot.with_buttons()
    made.update_yaxes(title=" or ".join(measures if len(measures) == 1 else dict.fromkeys(measures.values())),
                      **value_axis(np.concatenate([run.measure.shown(run.measured.loss) for run in runs])))
    return made


def chosen_curves(run, numbers, best):
    """Returns at most MOST_CURVES rows of the individuals `numbers`, including `best`. At most a quarter have no
    result."""
    known = run.individuals[run.individuals.id_number.isin(numbers) & (run.individuals.operator != "repeat")]
    has_result = known.index.isin(run.measured.index)
    others = analysis.thinned(known[~has_result], MOST_CURVES // 4)
    results = analysis.thinned(known[has_result], MOST_CURVES - len(others))
    return known[known.index.isin([*results.index, *others.index, best])].set_index("id_number")


def learning_curves(run):
    """Draws learning curves. Colours separate best, pruned, failed, unfinished and other individuals."""
    curves = run.curves
    if len(curves):
        curves = curves.assign(measured=run.measure.shown(run.measure.of_epochs(curves)))
        curves = curves[np.isfinite(curves.measured)]
    if curves.empty or curves.epoch.max() < 2:
        return "No individual of this run has a learning curve of several epochs."
    best = run.ranked.index[0] if len(run.complete) else None
    chosen = chosen_curves(run, curves.individual.unique(), best)
    made = figure()
    kinds = {"best": (RED, 4, 1), "pruned": (OUTCOME_COLOURS["pruned"], 1, 0.5), "trained": (OUTCOME_COLOURS["evaluated"], 1, 0.35),
             "failed": (OUTCOME_COLOURS["failed"], 1, 0.5), "unfinished": (OUTCOME_COLOURS["unfinished"], 1, 0.5)}
    kind_of = {"evaluated": "trained", "pruned": "pruned", "unfinished": "unfinished", "stopped": "unfinished"}
    lines = {kind: ([], [], []) for kind in kinds}
    ends = ([], [])
    for number, rows in curves[curves.individual.isin(chosen.index)].sort_values("epoch").groupby("individual"):
        name = id_text(number)
        kind = "best" if name == best else kind_of.get(chosen.outcome[number], "failed")
        x, y, text = lines[kind]
        x += [*rows.epoch.tolist(), None]
        y += [*rows.measured.tolist(), None]
        text += [name] * (len(rows) + 1)
        if kind == "pruned":
            ends[0].append(int(rows.epoch.iloc[-1]))
            ends[1].append(float(rows.measured.iloc[-1]))
    for kind in ("failed", "unfinished", "trained", "pruned", "best"):
        colour, width, opacity = kinds[kind]
        x, y, text = lines[kind]
        if x:
            made.add_scatter(x=x, y=y, text=text, mode="lines+markers" if len(chosen) < 20 or kind == "best" else "lines",
                             name=f"best: {best}" if kind == "best" else kind, line={"color": colour, "width": width}, opacity=opacity,
                             hovertemplate="%{text}: %{y:.5g}<extra></extra>")
    if ends[0]:
        made.add_scatter(x=ends[0], y=ends[1], mode="markers", name="pruned here", marker={"symbol": "x", "color": kinds["pruned"][0]})
    made.update_xaxes(title="epoch", dtick=1 if curves.epoch.max() < 20 else None)
    made.update_yaxes(title=run.measure.axis, **value_axis(curves.measured))
    return made


def spread(gene, values, seed=0):
    """Returns the values of a choice or of a gene with few whole numbers, moved at random by less than a quarter, so
    that equal values do not hide each other."""
    values = np.asarray(values, float)
    if gene.kind == "real" or gene.is_log or gene.kind == "int" and gene.high - gene.low > 10 * max(1.0, gene.step):
        return values
    width = 0.22 * max(1.0, gene.step)
    return values + np.random.default_rng(seed).uniform(-width, width, len(values))


def parallel_coordinates(run):
    if run.complete.empty or not run.genes:
        return NONE_TRAINED
    table = analysis.thinned(run.complete, MOST_POINTS).sort_values("loss", ascending=False)
    rank = table.loss.rank(pct=True)
    dimensions = []
    for gene in run.genes:
        values = analysis.coordinates(gene, table[gene.name])
        moved, ticks = spread(gene, values, len(dimensions)), gene_axis(gene, values)
        shown = [*moved, *ticks["tickvals"]]
        dimensions.append({"label": gene.name, "values": numbers(moved), "range": [float(np.min(shown)), float(np.max(shown))], **ticks})
    places, texts = ranked_ticks(run.measure.shown(table.loss))
    dimensions.append({"label": run.measure.axis, "values": numbers(rank), "tickvals": places, "ticktext": texts, "range": [0, 1]})
    made = figure(margin={"l": 90, "r": 150, "t": 70 if len(dimensions) < 9 else 110, "b": 30})
    made.add_trace(go.Parcoords(dimensions=dimensions, line={"color": numbers(rank), "colorscale": RANKS, "cmin": 0, "cmax": 1},
                                labelangle=0 if len(dimensions) < 9 else -25, rangefont={"color": "rgba(0,0,0,0)"}))
    return made


def slices(run):
    """Draws the loss against each gene. Later individuals have stronger colours, and a star marks the best."""
    if run.complete.empty or not run.genes:
        return NONE_TRAINED
    columns = min(3, len(run.genes))
    lines = -(-len(run.genes) // columns)
    table = analysis.thinned(run.complete, max(300, MOST_POINTS // lines))
    best, text = run.ranked.iloc[0], describe(run, table)
    order, losses = table.finished.rank(pct=True).to_numpy(), run.measure.shown(table.loss).to_numpy()
    active = [{gene.name for gene in run.active_genes(row)} for _, row in table.iterrows()]
    made = figure(lines, columns, height=130 + 270 * lines, shared_yaxes=True, horizontal_spacing=0.04, vertical_spacing=0.35 / lines)
    for number, gene in enumerate(run.genes):
        where = {"row": number // columns + 1, "col": number % columns + 1}
        values = analysis.coordinates(gene, table[gene.name])
        moved = spread(gene, values, number)
        rows = [place for place, names in enumerate(active) if gene.name in names]
        made.add_scatter(x=numbers(moved[rows]), y=numbers(losses[rows]), mode="markers", showlegend=False,
                         text=[text[place] for place in rows], hovertemplate="%{text}<extra></extra>",
                         marker={"size": 7, "color": numbers(order[rows]), "colorscale": AMOUNTS, "cmin": -0.4, "cmax": 1,
                                 "line": {"width": 0.5, "color": PAPER}}, **where)
        at = table.index.get_loc(best.name)
        if at in rows:
            made.add_scatter(**star(moved[at], losses[at], run, best) | {"mode": "markers", "showlegend": False}, **where)
        made.update_xaxes(title=gene.name, **gene_axis(gene, values), **where)
    made.update_yaxes(**value_axis(losses))
    made.update_yaxes(title=run.measure.axis.replace(" (", "<br>(") if len(run.measure.axis) > 25 else run.measure.axis, col=1)
    return made


def importance(shares):
    """Draws the share of variance that each gene explains. `shares`: Run.gene_shares."""
    names = sorted(shares, key=shares.get)
    made = figure(height=110 + 34 * len(names), margin={"l": 170, "r": 120})
    made.add_bar(x=[shares[name] for name in names], y=names, orientation="h", marker={"color": BLUE}, hovertemplate="%{y}: %{x:.3f}<extra></extra>")
    for place, name in enumerate(names):
        made.add_annotation(x=shares[name], y=place, text=f"{shares[name]:.2f}" if shares[name] else "within chance", showarrow=False, xanchor="left", xshift=8,
                            font={"color": MUTED})
    made.update_xaxes(title="share of the variance of the ranks", rangemode="tozero")
    return made


def contours(forest):
    """Draws the ranks that the forest predicts for each pair of the four genes that matter most. A menu selects the
    pair."""
    run = forest.run
    shares = run.gene_shares or {}
    genes = sorted(run.genes, key=lambda gene: -shares.get(gene.name, 0))[:4]
    if len(genes) < 2:
        return "The search space has one gene."
    table = analysis.thinned(run.complete, 500)
    best, text = run.ranked.iloc[0], describe(run, table)
    pairs = list(itertools.combinations(genes, 2))
    made, buttons = figure(height=520, margin={"t": 60}), []
    for place, (one, other) in enumerate(pairs):
        grids = [grid_of(gene) for gene in (one, other)]
        x, y = (analysis.coordinates(gene, grid) for gene, grid in zip((one, other), grids))
        points = [analysis.coordinates(gene, table[gene.name]) for gene in (one, other)]
        points = [spread(gene, values, number) if gene.kind == "choice" else values for number, (gene, values) in enumerate(zip((one, other), points))]
        look = {"x": numbers(x), "y": numbers(y), "z": forest.surface(one, other, *grids).tolist(), "visible": place == 0, "colorscale": RANKS,
                "colorbar": {"title": f"rank of<br>the {run.measure.name}"}}
        if "choice" in (one.kind, other.kind):  # options have no values in between
            made.add_heatmap(**look)
        else:
            made.add_contour(**look, contours={"coloring": "heatmap"}, line={"width": 0.5})
        made.add_scatter(x=numbers(points[0]), y=numbers(points[1]), mode="markers", visible=place == 0, showlegend=False,
                         marker={"size": 6, "color": "white", "line": {"width": 1, "color": "black"}}, text=text, hovertemplate="%{text}<extra></extra>")
        at = table.index.get_loc(best.name)
        made.add_scatter(**star(points[0][at], points[1][at], run, best) | {"mode": "markers", "visible": place == 0, "showlegend": False})
        axes = {}
        for axis, gene, values in (("xaxis", one, x), ("yaxis", other, y)):
            ticks = gene_axis(gene, values)
            axes |= {f"{axis}.title.text": gene.name, f"{axis}.tickvals": ticks["tickvals"], f"{axis}.ticktext": ticks["ticktext"]}
        visible = [number // 3 == place for number in range(3 * len(pairs))]
        buttons.append({"label": f"{one.name}, {other.name}", "method": "update", "args": [{"visible": visible}, axes]})
    made.update_layout(**{name.replace(".", "_"): value for name, value in buttons[0]["args"][1].items()})
    made.update_layout(updatemenus=[{"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.14}])
    return made


def grid_of(gene, most=24):
    """Returns values of a gene over its whole range."""
    if gene.kind == "choice":
        return gene.options
    if gene.is_log:
        values = np.geomspace(gene.low, gene.high, most)
    else:
        values = np.linspace(gene.low, gene.high, most)
    return sorted(set(np.rint(values))) if gene.kind == "int" else list(values)


def pareto(run):
    """Draws the first two objectives against each other, and the Pareto front of all objectives."""
    names, cost, table = run.objectives, run.cost_columns[0], run.complete
    allowed = run.on_fronts(table)
    if allowed.empty:
        return NONE_TRAINED
    front = allowed[analysis.front_of(run.objective_values(allowed))].sort_values("loss")
    some, shown = analysis.thinned(table, MOST_POINTS), run.measure.shown
    made = figure()
    for rows, name, look in ((some, "individuals", {"mode": "markers", "marker": {"color": PALE, "size": 7}}),
                             (front, "the front", {"mode": "lines+markers", "line": {"color": RED, "shape": "vh" if len(names) == 2 else "linear"},
                                                   "marker": {"size": 9}})):
        made.add_scatter(x=numbers(rows[cost]), y=numbers(shown(rows.loss)), name=name, text=describe(run, rows),
                         hovertemplate="%{text}<extra></extra>", **look)
    best = run.ranked.iloc[0]
    made.add_scatter(**star(best[cost], shown(best.loss), run, best))
    name = names[1].lstrip("-")
    made.update_xaxes(title=COST_TITLES.get(name, name), **value_axis(some[cost]))
    made.update_yaxes(title=run.measure.axis, **value_axis(shown(some.loss)))
    return made


def hypervolume(run):
    """Returns the figure of the hypervolume against evaluations, and a sentence that names the reference point."""
    found = run.shown.get("hypervolume")
    if len(run.objectives) != 2 or found is None:
        return None, ""
    table = run.on_fronts(analysis.best_so_far(run)[0])
    enlarged = {step["id"]: step["share"] for step in found["course"]}
    shares = table.index.to_series().map(enlarged).ffill().fillna(0)
    made = figure(height=300)
    made.add_scatter(x=numbers(table.evaluations), y=numbers(shares), mode="lines", line={"shape": "hv", "width": 3, "color": BLUE}, name="hypervolume",
                     text=list(table.index), hovertemplate="%{text}: %{y:.4f}<extra></extra>")
    made.update_xaxes(title="evaluations")
    made.update_yaxes(title="hypervolume", rangemode="tozero")
    loss, other = found["reference"].values()
    return made, (f"The hypervolume is the area that the front dominates, as a share of the box between the smallest values and the reference point. The reference "
                  f"point is the largest values in the front, and a tenth of the front's range more: {run.measure.name} {run.measure.text(loss)}, "
                  f"{run.objectives[1].lstrip('-')} {number_text(float(f'{other:.4g}'))}.")


def confusion(run):
    if "test/confusion" not in run.best:
        return "models/best.h5 has no results on a test set."
    counts = np.asarray(run.best["test/confusion"])
    share = 100 * counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    return counts_by(share, counts, [html.escape(run.class_text(number), quote=False) for number in range(len(counts))], "guess", "truth", "% of<br>the class")


def counts_by(colours, counts, names, across, down, meaning):
    """Draws a square table of counts as coloured cells. Tables of up to 20 rows also show the counts as text."""
    side = min(460, 44 * len(names))
    made = figure(height=130 + side, layout={"width": 320 + side + 7 * min(30, max(map(len, names)))})
    made.add_heatmap(z=colours.tolist(), x=names, y=names, text=counts.tolist(), hovertemplate="%{y} → %{x}: %{text}<extra></extra>",
                     colorscale=AMOUNTS, colorbar={"title": meaning})
    if len(names) <= 20:
        x, y, text = zip(*((column, row, str(count)) for row, line in zip(names, counts) for column, count in zip(names, line)))
        shade = (np.asarray(colours) / max(1e-300, np.max(colours))).ravel()
        made.add_scatter(x=x, y=y, text=text, mode="text", hoverinfo="skip", textfont={"color": [PAPER if one > 0.5 else INK for one in shade]})
    made.update_xaxes(title=across, type="category", constrain="domain", automargin=True)
    made.update_yaxes(title=down, type="category", automargin=True, autorange="reversed", scaleanchor="x")
    return made
