"""The figure of the norms that `training.watch` records."""
import h5py

from .axes import value_axis
from .drawing import RUN_COLOURS, figure
from .run import read_table

KINDS = {"weight_norm.": "weights", "grad_norm.": "gradient"}


def norms(run):
    """Returns the rows of /metrics that are norms of the best individual, with the columns kind and layer."""
    with h5py.File(run.path / "population.h5") as file:
        rows = read_table(file, "metrics")
    if rows.empty or run.complete.empty:
        return rows.iloc[:0]
    rows = rows[(rows.individual == run.ranked.id_number.iloc[0]) & rows.name.str.startswith(tuple(KINDS))]
    parts = rows.name.str.split(".", n=1)
    return rows.assign(kind=(parts.str[0] + ".").map(KINDS), layer=parts.str[1]).sort_values("epoch", kind="stable")


def layer_norms(rows):
    """Draws the norms of weights and gradients of each layer of the best network, by epoch. `rows`: of norms()."""
    made = figure(1, 2, 380, {"t": 40}, subplot_titles=list(KINDS.values()), horizontal_spacing=0.08)
    for column, kind in enumerate(KINDS.values(), 1):
        part = rows[rows.kind == kind]
        for place, layer in enumerate(dict.fromkeys(rows.layer)):
            line = part[part.layer == layer]
            made.add_scatter(x=line.epoch.tolist(), y=line.value.tolist(), mode="lines+markers", name=layer, legendgroup=layer, showlegend=column == 1,
                             line={"color": RUN_COLOURS[place % len(RUN_COLOURS)]}, row=1, col=column)
        made.update_xaxes(title="epoch", row=1, col=column)
        made.update_yaxes(**value_axis(part.value), row=1, col=column)
    made.update_yaxes(title="Euclidean norm of the layer", row=1, col=1)
    return made


def add_norms(page, run):
    """Adds the figure if the run recorded norms."""
    rows = norms(run)
    if len(rows):
        page.section("Norms of the layers", "Of the best network; the gradient is that of the epoch's last step.")
        page.figure(layer_norms(rows))
