#!/usr/bin/env python3
"""pruning.py FINCH [-o FILE.svg] [--keep FOLDER]: draws the figure of docs/search.md about pruned trainings.

Evolves small networks on generated digits four times: without pruning, and with each pruning rule. The seed, the search
space and the number of networks are the same. Draws the learning curve of every network, with a dot at the end of each
pruned training. --keep keeps the runs in FOLDER, and draws runs that already exist there without repeating them.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from chart import COLOURS, chart

RULES = ["none", "halving", "median", "curve"]
CONFIG = """
name: figure
seed: 5
data: {kind: generated, samples: 1500, size: 14, validation_samples: 500}
model:
  - conv: {channels: $channels, kernel: 3, activation: $activation}
  - max_pool: {kernel: 2}
  - flatten
  - linear: {units: classes}
training: {epochs: 27, batch_size: 32, optimizer: {sgd: {momentum: 0.9}}, learning_rate: $lr}
search:
  space:
    channels: {int: [1, 12]}
    activation: {choice: [relu, tanh]}
    lr: {real: [1.0e-4, 0.3], scale: log}
  propagator: random
  final: none
  budget: {evaluations: 60}
workers: {ranks: 1, islands: 1, threads: 1}
log: {level: warning}
"""


def evolve(finch, folder, rule):
    run = folder / rule
    if not run.exists():
        (folder / "figure.yaml").write_text(CONFIG)
        done = subprocess.run([finch, "evolve", "figure.yaml", "--run", rule, "--set", f"search.pruning={rule}"], cwd=folder, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
    return run


def panel(run, rule):
    with h5py.File(run / "population.h5") as file:
        individuals, curves = file["individuals"][:], file["curves"][:]
        words = {number: word for word, number in h5py.check_enum_dtype(file["individuals"].dtype["outcome"]).items()}
    epochs = int(individuals["epochs"].sum())
    lines, pruned = [], 0
    complete = [one for one in individuals if words[one["outcome"]] == "evaluated"]
    best = complete[np.nanargmin([one["loss"] for one in complete])]["id"]
    for one in individuals:
        rows = np.sort(curves[curves["individual"] == one["id"]], order="epoch")
        points = [(int(row["epoch"]), float(row["validation_loss"])) for row in rows if 0 < row["validation_loss"] < 3]
        if not points:
            continue
        is_pruned = words[one["outcome"]] == "pruned"
        pruned += is_pruned
        if one["id"] == best:
            lines.append({"points": points, "colour": COLOURS[1], "width": 3})
        else:
            lines.append({"points": points, "colour": "#718096" if is_pruned else COLOURS[0], "width": 1, "opacity": 0.75, "mark": is_pruned})
    lines.sort(key=lambda line: line["width"])
    return {"title": rule, "lines": lines, "note": f"{len(individuals)} networks, {pruned} of them pruned; {epochs} epochs in all"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("finch")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("docs/search-pruning.svg"))
    parser.add_argument("--keep", type=pathlib.Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        panels = [panel(evolve(os.path.abspath(given.finch), folder, rule), rule) for rule in RULES]
    legend = {"trained to its end": COLOURS[0], "pruned": "#718096", "the best": COLOURS[1]}
    given.output.write_text(chart(panels, legend, "epoch", "validation loss", log_x=True, log_y=True, columns=2), encoding="utf-8")


if __name__ == "__main__":
    main()
