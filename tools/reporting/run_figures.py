"""The figures of how a run went: outcomes, workers, islands, ancestors. Each function returns a plotly figure, or a
sentence that explains its absence."""
import numpy as np
import pandas

from . import analysis
from .axes import round_numbers
from .drawing import BLUE, INK, MOST_BARS, OUTCOME_COLOURS, PALE, PAPER, RANKS, RED, describe, figure, numbers
from .figures import NONE_TRAINED, counts_by

MOST_LABELS = 40


def outcomes(run):
    """Draws the counts of outcomes, by the operator that bred the individuals."""
    if run.individuals.empty:
        return "No evaluation has begun."
    counts = pandas.crosstab(run.individuals.operator.astype(str), run.individuals.outcome.astype(str))
    made = figure(height=110 + 34 * len(counts), margin={"l": 170}, layout={"barmode": "stack", "showlegend": True})
    for outcome in counts.columns:
        made.add_bar(y=list(counts.index), x=[int(count) for count in counts[outcome]], name=outcome, orientation="h",
                     marker_color=OUTCOME_COLOURS.get(outcome, PALE))
    marks = round_numbers(0, int(counts.sum(axis=1).max()), whole=True)
    made.update_xaxes(title="individuals", tickvals=marks)
    return made


def family_tree(run):
    """Draws the ancestors of the best individual: generations from left to right, the best at the right."""
    if run.complete.empty:
        return NONE_TRAINED
    best = run.ranked.index[0]
    depth, edges = analysis.ancestors(run, best)
    if len(depth) == 1:
        return f"{best} has no parents: it came to its genes by the operator {run.individuals.operator[best]}."
    levels, widest, place = max(depth.values()), 1, {}
    for level in range(levels + 1):
        names = sorted((name for name in depth if depth[name] == level), key=lambda name: run.individuals.born[name])
        widest = max(widest, len(names))
        place |= {name: (-level, (number + 0.5) / len(names)) for number, name in enumerate(names)}
    x, y = [], []
    for parent, child in edges:
        x += [place[parent][0], place[child][0], None]
        y += [place[parent][1], place[child][1], None]
    made = figure(height=min(900, 130 + 44 * widest), layout={"showlegend": False})
    made.add_scatter(x=x, y=y, mode="lines", line={"color": PALE, "width": 1}, hoverinfo="skip")
    rows = run.individuals.loc[list(place)]
    has_labels = len(rows) < MOST_LABELS and levels <= 14
    made.add_scatter(x=[place[name][0] for name in rows.index], y=[place[name][1] for name in rows.index],
                     text=[name if has_labels or name == best else "" for name in rows.index], mode="markers+text", textposition="top center",
                     customdata=describe(run, rows), hovertemplate="%{customdata}<extra></extra>",
                     marker={"size": 12, "color": numbers(rows.loss.rank(pct=True)), "colorscale": RANKS,
                             "line": {"width": [3 if name == best else 1 for name in rows.index], "color": [RED if name == best else INK for name in rows.index]}})
    marks = round_numbers(0, levels, whole=True, most=20)
    made.update_xaxes(title="generations before it", tickvals=[-mark for mark in marks], ticktext=[f"{mark:g}" for mark in marks], showgrid=False)
    made.update_yaxes(visible=False, range=[-0.1, 1.1 + 0.4 / widest])
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
    unit, length = ("seconds", 1) if edges[-1] - began < 180 else ("minutes", 60) if edges[-1] - began < 3 * 3600 else ("hours", 3600)
    bars = parts.assign(seconds=parts.end - parts.begin).nlargest(MOST_BARS, "seconds")
    names = sorted(bars.last_worker.unique(), reverse=True)
    made = figure(2, height=min(1500, 240 + 26 * len(names)), margin={"l": 90}, layout={"barmode": "overlay"}, shared_xaxes=True,
                  row_heights=[0.75, 0.25] if len(names) > 4 else [0.6, 0.4], vertical_spacing=0.04)
    for outcome, rows in bars.groupby(bars.outcome.astype(str)):
        made.add_bar(y=[f"worker {number}" for number in rows.last_worker], x=numbers((rows.end - rows.begin) / length), base=numbers((rows.begin - began) / length),
                     orientation="h", name=outcome, marker={"color": OUTCOME_COLOURS.get(outcome, PALE), "line": {"width": 0.5, "color": PAPER}},
                     text=describe(run, rows), textposition="none", hovertemplate="%{text}<extra></extra>", row=1, col=1)
    made.add_scatter(x=numbers((edges[:-1] - began) / length), y=numbers(100 * utilisation), fill="tozeroy", mode="lines", line={"shape": "hv", "color": BLUE},
                     name="busy", row=2, col=1)
    made.update_yaxes(categoryorder="array", categoryarray=[f"worker {number}" for number in names], row=1, col=1)
    made.update_yaxes(title="% busy", range=[0, 105], tickvals=[0, 50, 100], row=2, col=1)
    made.update_xaxes(title=f"{unit} since the first start", row=2, col=1)
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
