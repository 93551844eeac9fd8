#!/usr/bin/env python3
"""Trains every genome of a small search space several times, as data for `bench_search … trainings:FOLDER …`.

    tools/bench/trainings.py FOLDER [FINCH] [REPEATS]

All genes of the space are choices, so it has 3 888 genomes. A training takes less than 50 ms. The script makes REPEATS
(6) runs, FOLDER/0, FOLDER/1, …, which train all genomes in different orders. So a genome is a different individual in
each run, with different random numbers.
"""
import itertools
import os
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(sys.argv[1]).resolve()
FINCH = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "build/finch")
REPEATS = int(sys.argv[3]) if len(sys.argv) > 3 else 6
CONFIG = """
name: trainings
seed: 7
data: {{kind: generated, samples: 600, size: 10, validation_samples: 150}}
model:
  - conv: {{channels: $channels, kernel: 3, activation: $activation}}
  - max_pool: {{kernel: 2}}
  - conv: {{channels: $channels, kernel: $kernel, activation: $activation, repeat: $more_layers}}
  - flatten
  - dropout: {{rate: $dropout}}
  - linear: {{units: classes}}
training:
  epochs: 9
  batch_size: $batch
  optimizer: {{$optimizer: {{sgd: {{momentum: $momentum}}, adam: {{weight_decay: $decay}}}}}}
  learning_rate: $rate
search:
  space:
    optimizer: {{choice: [sgd, adam]}}
    momentum: {{choice: [0, 0.9], when: {{optimizer: [sgd]}}}}
    decay: {{choice: [0, 0.01], when: {{optimizer: [adam]}}}}
    rate: {{choice: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3], ordered: true}}
    batch: {{choice: [8, 16, 32], ordered: true}}
    channels: {{choice: [2, 4, 8], ordered: true}}
    activation: {{choice: [relu, tanh, sigmoid]}}
    more_layers: {{choice: [0, 1], ordered: true}}
    kernel: {{choice: [1, 3], when: {{more_layers: [1]}}}}
    dropout: {{choice: [0, 0.25], ordered: true}}
  objective: validation_loss
  propagator: random
  duplicates: train
  final: none
  budget: {{evaluations: {evaluations}}}
  first: [{first}]
workers: {{ranks: 1, slots: 1, threads: 1}}
log: {{level: warning}}
"""


def genomes():
    optimizers = ["optimizer: sgd, momentum: 0", "optimizer: sgd, momentum: 0.9", "optimizer: adam, decay: 0", "optimizer: adam, decay: 0.01"]
    layers = ["more_layers: 0", "more_layers: 1, kernel: 1", "more_layers: 1, kernel: 3"]
    others = {"rate": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3), "batch": (8, 16, 32), "channels": (2, 4, 8), "activation": ("relu", "tanh", "sigmoid"),
              "dropout": (0, 0.25)}
    for optimizer, layer, *values in itertools.product(optimizers, layers, *others.values()):
        rest = ", ".join(f"{name}: {value}" for name, value in zip(others, values))
        yield f"{{{optimizer}, {layer}, {rest}}}"


every = list(genomes())
environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
for repeat in range(REPEATS):
    begin = repeat * len(every) // REPEATS
    config = FOLDER / f"{repeat}.yaml"
    FOLDER.mkdir(parents=True, exist_ok=True)
    config.write_text(CONFIG.format(evaluations=len(every), first=", ".join(every[begin:] + every[:begin])))
    subprocess.run([FINCH, "evolve", config, "--run", FOLDER / str(repeat)], env=environment, check=True, stdout=subprocess.DEVNULL)
