#!/usr/bin/env python3
"""Compares population-based training (search.inherit) with halving alone at equal budgets of epochs.

    tools/bench/inheritance.py [FINCH] [--seeds N] [--epochs N] [--propagators random,screened]
                              [--inherit '{population: 60}'] [--keep FOLDER]

Evolves networks on generated images of 32 x 32 pixels, with each propagator and seed, once with `pruning: halving` and
once with `inherit` in addition. Prints the smallest validation loss and error of complete trainings for each run, their
medians and quartiles, and for how many seeds `inherit` was better. One worker of one rank, so the runs are repeatable.
Runs that already exist in FOLDER are not repeated.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np

CONFIG = """
name: inheritance
data: {{kind: generated, samples: 900, size: 32, validation_samples: 400}}
model:
  - conv: {{channels: $channels, kernel: 3, stride: 2, activation: relu}}
  - conv: {{channels: 8, kernel: 3, stride: 2, activation: relu}}
  - max_pool: {{kernel: 2}}
  - flatten
  - dropout: {{rate: $dropout}}
  - linear: {{units: classes}}
training:
  epochs: 27
  batch_size: $batch
  optimizer: {{sgd: {{momentum: $momentum, weight_decay: $decay}}}}
  learning_rate: $lr
search:
  space:
    channels: {{int: [4, 12]}}
    dropout: {{real: [0, 0.5]}}
    batch: {{int: [8, 64], scale: log}}
    momentum: {{real: [0.5, 0.99]}}
    decay: {{real: [1.0e-6, 1.0e-2], scale: log}}
    lr: {{real: [1.0e-4, 0.3], scale: log}}
  objective: validation_loss
  propagator: {propagator}
  pruning: halving
  inherit: {inherit}
  budget: {{evaluations: null, epochs: {epochs}}}
workers: {{ranks: 1, islands: 1, threads: 1}}
log: {{level: warning}}
"""
RULES = ("halving", "inherit")


def evolve(arguments, folder, propagator, rule, seed):
    """Returns the smallest loss and error of complete trainings, and the numbers of individuals and of heirs."""
    run = folder / f"{propagator}-{rule}-{seed}"
    if not (run / "summary.txt").exists():
        (folder / "bench.yaml").write_text(CONFIG.format(propagator=propagator, inherit=arguments.inherit if rule == "inherit" else "none", epochs=arguments.epochs))
        done = subprocess.run([os.path.abspath(arguments.finch), "evolve", "bench.yaml", "--run", run, "--set", f"seed={seed}"],
                              cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
    with h5py.File(run / "population.h5") as file:
        rows = file["individuals"][:]
        words = {number: word for word, number in h5py.check_enum_dtype(rows.dtype["outcome"]).items()}
    complete = rows[[words[outcome] == "evaluated" for outcome in rows["outcome"]]]
    return complete["loss"].min(), 1 - complete["accuracy"].max(), len(rows), int((rows["inherited_epochs"] > 0).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("finch", nargs="?", default="build/finch")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--propagators", default="random")
    parser.add_argument("--inherit", default="{}")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for propagator in arguments.propagators.split(","):
            results = {rule: [] for rule in RULES}
            for seed in range(1, arguments.seeds + 1):
                for rule in RULES:
                    results[rule].append(evolve(arguments, folder, propagator, rule, seed))
                    loss, error, count, heirs = results[rule][-1]
                    print(f"{propagator:9} {rule:8} seed {seed:2}: loss {loss:.4f}, error {100 * error:.2f} %, "
                          f"{count} individuals, {heirs} heirs", flush=True)
            for rule, values in results.items():
                for name, column in (("loss", 0), ("error", 1)):
                    low, middle, high = np.percentile([value[column] for value in values], (25, 50, 75))
                    print(f"{propagator:9} {rule:8} {name:5}: median {middle:.4f}, quartiles {low:.4f} to {high:.4f}")
            for name, column in (("loss", 0), ("error", 1)):
                pairs = [(a[column], b[column]) for a, b in zip(results["halving"], results["inherit"])]
                print(f"{propagator:9} {name:5}: inherit is better for {sum(b < a for a, b in pairs)} of {len(pairs)} "
                      f"seeds, worse for {sum(b > a for a, b in pairs)}; median ratio {np.median([b / max(a, 1e-9) for a, b in pairs]):.3f}")


main()
