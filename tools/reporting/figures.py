"""The figures of a report. Each function of a figure returns a plotly figure, or a sentence that explains its
absence."""
import html

import numpy as np
import pandas
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from . import analysis
from .run import COST_COLUMNS, id_text

MOST_POINTS, MOST_CURVES, MOST_BARS = 2000, 200, 4000
OUTCOME_COLOURS = {"evaluated": "#2b6cb0", "pruned": "#dd8a1d", "stopped": "#8a8a8a", "diverged": "#c53030", "out_of_memory": "#97266d",
                   "failed": "#702459", "unfinished": "#a0aec0"}
RUN_COLOURS = ["#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280", "#2c7a7b", "#975a16", "#4a5568"]
COST_TITLES = {"parameters": "parameters", "seconds": "training, seconds", "joules": "energy of the training, joules"}


def figure(height=430, **layout):
    made = go.Figure()
    made.update_layout(template="plotly_white", height=height, margin={"l": 70, "r": 30, "t": 30, "b": 55}, font={"size": 13}, **layout)
    return made


def loss_axis(values):
    """Returns "log" if all losses are positive and the largest is more than 20 times the smallest, else "linear"."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    return "log" if len(values) and values.min() > 0 and values.max() > 20 * values.min() else "linear"


def numbers(values):
    return [float(value) for value in values]


def describe(run, rows):
    """Returns a text for each individual: its id, its loss and its genes."""
    def text(value):
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    measure = run.measure.name
    return [f"{name}, {measure} {row.loss:.5g}<br>" + "<br>".join(f"{gene.name} = {text(row[gene.name])}" for gene in run.active_genes(row))
            for name, row in rows.iterrows()]


def steps(table, x, last):
    """Returns the points of a staircase of the best loss so far, which continues to the last individual."""
    return numbers([*x, last]), numbers([*table.loss, table.loss.iloc[-1]])


def progress(runs):
    """Draws the best loss so far, against evaluations, running hours, node-hours or (if known) energy."""
    made, axes = figure(), []
    measures = {run.measure.title: run.measure.name for run in runs}
    titles = ["evaluations", "hours of running", "node-hours"] + ["kWh"] * all(run.knows_energy for run in runs)

    def scales(run, rows):
        return [rows.evaluations, run.running_hours(rows.finished), run.node_hours(rows.finished), run.kilowatt_hours(rows.finished)][:len(titles)]
    for colour, run in zip(RUN_COLOURS, runs):
        table, best = analysis.best_so_far(run)
        if best.empty:
            continue
        last = table.iloc[[-1]]
        coordinates = [steps(best, x, np.asarray(end)[0]) for x, end in zip(scales(run, best), scales(run, last))]
        made.add_scatter(x=coordinates[0][0], y=coordinates[0][1], mode="lines+markers", line={"shape": "hv", "width": 3, "color": colour},
                         name=run.name if len(measures) == 1 else f"{run.name}: {run.measure.title}", text=[*describe(run, best), describe(run, best)[-1]], hovertemplate="%{text}<extra></extra>")
        axes.append([x for x, _ in coordinates])
        for island, rows in table[table.outcome != "pruned"].groupby("island") if len(runs) == 1 and table.island.nunique() > 1 else []:
            own = rows[rows.loss < rows.loss.cummin().shift(fill_value=np.inf)]
            coordinates = [steps(own, x, np.asarray(end)[0]) for x, end in zip(scales(run, own), scales(run, last))]
            made.add_scatter(x=coordinates[0][0], y=coordinates[0][1], mode="lines", line={"shape": "hv", "width": 1}, name=f"island {island}")
            axes.append([x for x, _ in coordinates])
    if not axes:
        return "No individual has a loss yet."
    if len(runs) == 1:
        some = analysis.thinned(table, MOST_POINTS)
        made.add_scatter(x=numbers(some.evaluations), y=numbers(some.loss), mode="markers", name="individuals", text=describe(run, some),
                         hovertemplate="%{text}<extra></extra>", marker={"size": 4, "opacity": 0.35, "color": "#4a5568"})
        axes.append([numbers(x) for x in scales(run, some)])
    buttons = [{"label": title, "method": "update", "args": [{"x": [x[place] for x in axes]}, {"xaxis.title.text": title}]}
               for place, title in enumerate(titles)]
    made.update_layout(updatemenus=[{"type": "buttons", "direction": "right", "x": 0, "y": 1.14, "xanchor": "left", "buttons": buttons}])
    made.update_xaxes(title=titles[0])
    made.update_yaxes(title=" or ".join(measures if len(measures) == 1 else dict.fromkeys(measures.values())), type=loss_axis(np.concatenate([run.measured.loss for run in runs])))
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
        curves = curves.assign(measured=run.measure.of_epochs(curves))
        curves = curves[np.isfinite(curves.measured)]
    if curves.empty:
        return "No individual of this run has a learning curve."
    best = run.ranked.index[0] if len(run.complete) else None
    chosen = chosen_curves(run, curves.individual.unique(), best)
    made = figure(hovermode="closest")
    kinds = {"best": ("#c53030", 4, 1), "pruned": (OUTCOME_COLOURS["pruned"], 1, 0.5), "trained": (OUTCOME_COLOURS["evaluated"], 1, 0.35),
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
            made.add_scatter(x=x, y=y, text=text, mode="lines+markers" if len(chosen) < 20 or kind == "best" else "lines", name=kind,
                             line={"color": colour, "width": width}, opacity=opacity, hovertemplate="%{text}: %{y:.5g}<extra></extra>")
    if ends[0]:
        made.add_scatter(x=ends[0], y=ends[1], mode="markers", name="pruned here", marker={"symbol": "x", "color": kinds["pruned"][0]})
    made.update_xaxes(title="epoch", dtick=1 if curves.epoch.max() < 20 else None)
    made.update_yaxes(title=run.measure.title, type=loss_axis(curves.measured))
    return made


def gene_axis(gene, values):
    """Returns plotly's settings for the tick marks of a gene's axis."""
    if gene.kind == "choice":
        return {"tickvals": list(range(len(gene.options))), "ticktext": gene.options}
    if gene.is_log:
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        marks = np.linspace(low, high, 5) if high > low else [low]
        return {"tickvals": numbers(marks), "ticktext": [f"{10.0 ** mark:.3g}" for mark in marks]}
    return {}


def parallel_coordinates(run):
    if run.complete.empty or not run.genes:
        return "No individual was trained to its end."
    table = analysis.thinned(run.complete, MOST_POINTS)
    rank = table.loss.rank(pct=True)
    axes = []
    for gene in run.genes:
        values = analysis.coordinates(gene, table[gene.name])
        axes.append({"label": gene.name, "values": numbers(values), **gene_axis(gene, values)})
    marks = [0.01, 0.25, 0.5, 0.75, 1]
    axes.append({"label": run.measure.title, "values": numbers(rank), "tickvals": marks, "ticktext": [f"{table.loss.quantile(mark):.4g}" for mark in marks],
                 "range": [0, 1]})
    made = figure()
    made.add_trace(go.Parcoords(dimensions=axes, line={"color": numbers(rank), "colorscale": "Viridis", "reversescale": False, "showscale": False}))
    made.update_layout(margin={"l": 90, "r": 150, "t": 60, "b": 30})
    return made


def slices(run):
    """Draws the loss against each gene. Later individuals are darker."""
    if run.complete.empty or not run.genes:
        return "No individual was trained to its end."
    columns = min(3, len(run.genes))
    rows = -(-len(run.genes) // columns)
    table = analysis.thinned(run.complete, max(300, MOST_POINTS // rows))
    order = table.finished.rank(pct=True)
    made = make_subplots(rows, columns, shared_yaxes=True, horizontal_spacing=0.04, vertical_spacing=0.35 / rows)
    for place, gene in enumerate(run.genes):
        where = {"row": place // columns + 1, "col": place % columns + 1}
        values = analysis.coordinates(gene, table[gene.name])
        made.add_scatter(x=numbers(values), y=numbers(table.loss), mode="markers", showlegend=False, text=list(table.index),
                         hovertemplate="%{text}: %{y:.5g}<extra></extra>",
                         marker={"size": 5, "color": numbers(order), "colorscale": "Blues", "cmin": -0.3, "cmax": 1}, **where)
        made.update_xaxes(title=gene.name, **gene_axis(gene, values), **where)
    made.update_yaxes(type=loss_axis(table.loss))
    made.update_yaxes(title=run.measure.title, col=1)
    made.update_layout(template="plotly_white", height=130 + 270 * rows, margin={"l": 70, "r": 30, "t": 30, "b": 55})
    return made


def importance(forest):
    order = np.argsort(forest.importance)
    made = figure(height=140 + 32 * len(order))
    made.add_bar(x=numbers(forest.importance[order]), y=[forest.run.genes[place].name for place in order], orientation="h", marker_color="#2b6cb0",
                 error_x={"type": "data", "array": numbers(forest.deviation[order])})
    made.update_xaxes(title="fall of R² when the gene is shuffled")
    made.update_layout(margin={"l": 170})
    return made


def contours(forest):
    """Draws the ranks that the forest predicts for each pair of the four most important genes. A menu selects the
    pair."""
    genes = forest.order()[:4]
    if len(genes) < 2:
        return "The search space has one gene."
    table = analysis.thinned(forest.run.complete, 500)
    pairs = [(one, other) for place, one in enumerate(genes) for other in genes[place + 1:]]
    made, buttons = figure(height=520), []
    for place, (one, other) in enumerate(pairs):
        grids = [grid_of(gene) for gene in (one, other)]
        x, y = (analysis.coordinates(gene, grid) for gene, grid in zip((one, other), grids))
        points = [analysis.coordinates(gene, table[gene.name]) for gene in (one, other)]
        look = {"x": numbers(x), "y": numbers(y), "z": forest.surface(one, other, *grids).tolist(), "visible": place == 0, "colorscale": "Viridis",
                "colorbar": {"title": f"rank of<br>the {forest.run.measure.name}"}}
        if "choice" in (one.kind, other.kind):  # options have no values in between
            made.add_heatmap(**look)
        else:
            made.add_contour(**look, contours={"coloring": "heatmap"}, line={"width": 0.5})
        made.add_scatter(x=numbers(points[0]), y=numbers(points[1]), mode="markers", visible=place == 0, showlegend=False,
                         marker={"size": 4, "color": "white", "line": {"width": 1, "color": "black"}}, text=describe(forest.run, table),
                         hovertemplate="%{text}<extra></extra>")
        axes = {}
        for axis, gene, values in (("xaxis", one, x), ("yaxis", other, y)):
            ticks = gene_axis(gene, values)
            axes |= {f"{axis}.title.text": gene.name, f"{axis}.tickvals": ticks.get("tickvals"), f"{axis}.ticktext": ticks.get("ticktext")}
        visible = [number // 2 == place for number in range(2 * len(pairs))]
        buttons.append({"label": f"{one.name}, {other.name}", "method": "update", "args": [{"visible": visible}, axes]})
    made.update_layout(**{name.replace(".", "_"): value for name, value in buttons[0]["args"][1].items() if value is not None})
    made.update_layout(updatemenus=[{"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.12}], margin={"t": 60})
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
    names = [str(name) for name in run.objectives]
    if len(names) < 2:
        return "The run has one objective."
    columns = ["loss", *[COST_COLUMNS[name] for name in names[1:]]]
    table = run.complete
    if table.empty:
        return "No individual was trained to its end."
    front = table[analysis.front_of(table[columns].to_numpy(float))].sort_values("loss")
    some = analysis.thinned(table, MOST_POINTS)
    made = figure()
    for rows, name, look in ((some, "individuals", {"mode": "markers", "marker": {"color": "#a0aec0", "size": 6}}),
                             (front, "the front", {"mode": "lines+markers", "line": {"color": "#c53030"}, "marker": {"size": 9}})):
        made.add_scatter(x=numbers(rows[columns[1]]), y=numbers(rows[columns[0]]), name=name, text=describe(run, rows),
                         hovertemplate="%{text}<extra></extra>", **look)
    made.update_xaxes(title=COST_TITLES[names[1]], type=loss_axis(some[columns[1]]))
    made.update_yaxes(title=run.measure.title, type=loss_axis(some.loss))
    return made


def outcomes(run):
    """Draws the counts of outcomes, by the operator that bred the individuals."""
    if run.individuals.empty:
        return "No evaluation has begun."
    counts = pandas.crosstab(run.individuals.operator.astype(str), run.individuals.outcome.astype(str))
    made = figure(height=160 + 30 * len(counts), barmode="stack", showlegend=True)
    for outcome in counts.columns:
        made.add_bar(y=list(counts.index), x=[int(count) for count in counts[outcome]], name=outcome, orientation="h",
                     marker_color=OUTCOME_COLOURS.get(outcome, "#718096"))
    made.update_xaxes(title="individuals")
    made.update_layout(margin={"l": 170})
    return made


def family_tree(run):
    """Draws the ancestors of the best individual. The best individual is at the top."""
    if run.complete.empty:
        return "No individual was trained to its end."
    best = run.ranked.index[0]
    depth, edges = analysis.ancestors(run, best)
    if len(depth) == 1:
        return f"{best} has no parents: it came to its genes by the operator {run.individuals.operator[best]}."
    place = {}
    for level in range(max(depth.values()) + 1):
        names = sorted((name for name in depth if depth[name] == level), key=lambda name: run.individuals.born[name])
        for number, name in enumerate(names):
            place[name] = ((number + 0.5) / len(names), -level)
    x, y = [], []
    for parent, child in edges:
        x += [place[parent][0], place[child][0], None]
        y += [place[parent][1], place[child][1], None]
    made = figure(height=min(1400, 160 + 60 * max(depth.values())), showlegend=False)
    made.add_scatter(x=x, y=y, mode="lines", line={"color": "#a0aec0", "width": 1}, hoverinfo="skip")
    rows = run.individuals.loc[list(place)]
    made.add_scatter(x=[place[name][0] for name in rows.index], y=[place[name][1] for name in rows.index], text=list(rows.index),
                     mode="markers+text" if len(rows) < 40 else "markers", textposition="top center", customdata=describe(run, rows),
                     hovertemplate="%{customdata}<extra></extra>",
                     marker={"size": 11, "color": numbers(rows.loss.rank(pct=True)), "colorscale": "Viridis", "line": {"width": 1, "color": "#2d3748"}})
    made.update_xaxes(visible=False)
    made.update_yaxes(title="generations before it", tickvals=list(range(0, -max(depth.values()) - 1, -1)),
                      ticktext=[str(level) for level in range(max(depth.values()) + 1)])
    return made


def timeline(run):
    """Draws the trainings of each worker over time, and the share of workers that trained."""
    parts = analysis.trainings(run)
    if parts.empty or not (parts.end - parts.begin).sum() > 0:
        return "No training took time enough to be seen."
    began = float(run.starts.began.min())
    workers = int(run.starts.workers.max())
    edges = np.linspace(parts.begin.min(), parts.end.max(), 121)
    utilisation = analysis.busy_fraction(parts, workers, edges)
    bars = parts.assign(seconds=parts.end - parts.begin).nlargest(MOST_BARS, "seconds")
    made = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.75, 0.25], vertical_spacing=0.04)
    for outcome, rows in bars.groupby(bars.outcome.astype(str)):
        made.add_bar(y=[f"worker {number}" for number in rows.last_worker], x=numbers((rows.end - rows.begin) / 60), base=numbers((rows.begin - began) / 60),
                     orientation="h", name=outcome, marker={"color": OUTCOME_COLOURS.get(outcome, "#718096"), "line": {"width": 0.5, "color": "white"}},
                     text=describe(run, rows), textposition="none", hovertemplate="%{text}<extra></extra>", row=1, col=1)
    made.add_scatter(x=numbers((edges[:-1] - began) / 60), y=numbers(100 * utilisation), fill="tozeroy", mode="lines", line={"shape": "hv"}, name="busy",
                     row=2, col=1)
    names = sorted(bars.last_worker.unique(), reverse=True)
    made.update_yaxes(categoryorder="array", categoryarray=[f"worker {number}" for number in names], row=1, col=1)
    made.update_yaxes(title="% busy", range=[0, 105], row=2, col=1)
    made.update_xaxes(title="minutes since the first start", row=2, col=1)
    made.update_layout(template="plotly_white", barmode="overlay", height=min(1500, 300 + 22 * len(names)), margin={"l": 90, "r": 30, "t": 30, "b": 55})
    return made


def counts_by(colours, counts, names, across, down, meaning):
    """Draws a square table of counts as coloured cells. Tables of up to 20 rows also show the counts as text."""
    made = figure(height=520)
    made.add_heatmap(z=colours.tolist(), x=names, y=names, text=counts.tolist(), hovertemplate="%{y} → %{x}: %{text}<extra></extra>",
                     colorscale="Blues", colorbar={"title": meaning})
    if len(names) <= 20:
        x, y, text = zip(*((column, row, str(count)) for row, line in zip(names, counts) for column, count in zip(names, line)))
        shade = (np.asarray(colours) / max(1e-300, np.max(colours))).ravel()
        made.add_scatter(x=x, y=y, text=text, mode="text", hoverinfo="skip", textfont={"color": ["white" if one > 0.5 else "#2d3748" for one in shade]})
    made.update_xaxes(title=across, type="category", constrain="domain", automargin=True)
    made.update_yaxes(title=down, type="category", automargin=True, autorange="reversed", scaleanchor="x")
    return made


def exchange(run):
    """Draws the number of individuals that were born on each island and moved or copied to each other island."""
    births = run.individuals[["id_number", "island"]].set_index("id_number").island
    for table, what in ((run.homes, "moved to"), (run.memberships, "copied to")):
        if len(table):
            islands = int(max(run.individuals.island.max(), table.island.max())) + 1
            counts = np.zeros((islands, islands), int)
            np.add.at(counts, (table.individual.map(births), table.island), 1)
            return counts_by(counts, counts, [f"island {number}" for number in range(islands)], what, "born on", "individuals")
    return "Nothing was exchanged between islands."


def confusion(run):
    if "test/confusion" not in run.best:
        return "models/best.h5 has no results on a test set."
    counts = np.asarray(run.best["test/confusion"])
    share = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    return counts_by(share, counts, [html.escape(run.class_text(number), quote=False) for number in range(len(counts))], "guess", "truth", "share of<br>the class")
