"""Colours, sizes and texts of the figures. page.js replaces these colours on a dark page."""
import html

import plotly.graph_objects as go
import plotly.io
from plotly.subplots import make_subplots

plotly.io.templates.default = None  # page.js sets the template of the page's theme
MOST_POINTS, MOST_CURVES, MOST_BARS = 2000, 200, 4000
PAPER, INK, MUTED, PALE = "#ffffff", "#1a202c", "#4a5568", "#a0aec0"
BLUE, RED, ORANGE = "#2b6cb0", "#c53030", "#dd8a1d"
OUTCOME_COLOURS = {"evaluated": BLUE, "pruned": ORANGE, "stopped": "#8a8a8a", "diverged": RED, "out_of_memory": "#97266d",
                   "failed": "#702459", "unfinished": PALE}
RUN_COLOURS = [BLUE, "#c05621", "#2f855a", "#6b46c1", "#b83280", "#2c7a7b", "#975a16", MUTED]


def scale(*colours):
    return [[place / (len(colours) - 1), colour] for place, colour in enumerate(colours)]


AMOUNTS = scale("#edf4fb", "#9ecae1", "#4292c6", "#08519c", "#08306b")
RANKS = scale("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725")  # 0 is the best


def figure(rows=0, columns=1, height=430, margin=None, layout=None, **subplots):
    """Returns an empty figure; with `rows` it has subplots."""
    made = make_subplots(rows, columns, **subplots) if rows else go.Figure()
    made.update_layout(height=height, margin={"l": 70, "r": 30, "t": 30, "b": 55, **(margin or {})}, hovermode="closest", **(layout or {}))
    return made


def numbers(values):
    return [float(value) for value in values]


def describe(run, rows):
    """Returns a text for each individual: its id, its loss and its genes."""
    def text(value):
        return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))
    measure = run.measure
    return [f"{name}, {measure.name} {measure.text(row.loss)}<br>" + "<br>".join(f"{gene.name} = {text(row[gene.name])}" for gene in run.active_genes(row))
            for name, row in rows.iterrows()]


def star(x, y, run, best, **error):
    """Returns a marker of the best individual, with its id."""
    return {"x": [float(x)], "y": [float(y)], "mode": "markers+text", "name": "best", "text": [best.name], "textposition": "top center",
            "textfont": {"color": RED}, "customdata": describe(run, best.to_frame().T), "hovertemplate": "%{customdata}<extra></extra>",
            "marker": {"symbol": "star", "size": 15, "color": RED, "line": {"width": 1, "color": PAPER}}, **error}
