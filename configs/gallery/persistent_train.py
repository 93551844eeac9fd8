"""Separates two noisy spirals by ridge regression on random Fourier features (Rahimi and Recht 2007).

The program makes its data once. Then it evaluates one individual after the other until Finch ends it. Needs NumPy.
"""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import finch_objective as finch  # noqa: E402


def spirals(count, generator):
    side = generator.integers(0, 2, count) * 2 - 1
    turn = generator.uniform(1, 10, count)
    points = side * turn * np.array([np.cos(turn), np.sin(turn)]) + generator.normal(0, 0.5, (2, count))
    return points.T, side


def error(training, validation, seed, features, scale, ridge):
    """Returns the share of wrong signs on the validation set."""
    generator = np.random.default_rng(seed)
    directions, phases = generator.normal(0, scale, (2, features)), generator.uniform(0, 2 * np.pi, features)

    def transformed(points):
        return np.cos(points @ directions + phases)

    matrix = transformed(training[0])
    weights = np.linalg.solve(matrix.T @ matrix + ridge * np.eye(features), matrix.T @ training[1])
    return np.mean(np.sign(transformed(validation[0]) @ weights) != validation[1])


DATA = np.random.default_rng(1)
TRAINING, VALIDATION = spirals(600, DATA), spirals(1000, DATA)
for individual in finch.individuals():
    finch.report(loss=error(TRAINING, VALIDATION, individual.seed, **individual.genes))
