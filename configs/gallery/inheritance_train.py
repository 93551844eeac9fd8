"""Trains a network with one hidden layer on two noisy spirals. Needs NumPy.

After each epoch the program writes a checkpoint and names it in its report. It continues its own newest checkpoint, or
else that of its parent, if it has any.
"""
import os
import pathlib

import numpy as np

lr, decay, width = (float(os.environ["FINCH_GENE_" + name]) for name in ("lr", "decay", "width"))
folder = pathlib.Path(os.environ["FINCH_CHECKPOINT_DIR"])


def spirals(count, generator):
    side, turn = generator.integers(0, 2, count) * 2 - 1, generator.uniform(1, 7, count)
    points = side * turn * np.array([np.cos(turn), np.sin(turn)]) + generator.normal(0, 0.3, (2, count))
    return points.T / 4, side


def gradients(weights, points, side):
    """Returns the mean squared error and its gradients."""
    hidden = np.tanh(points @ weights["in"] + weights["bias"])
    wrong = hidden @ weights["out"] - side
    back = np.outer(wrong, weights["out"]) * (1 - hidden**2) * 2 / len(side)
    return np.mean(wrong**2), {"in": points.T @ back, "bias": back.sum(0), "out": hidden.T @ wrong * 2 / len(side)}


def report():
    print(f"finch loss={gradients(weights, *validation)[0]} epoch={epoch} checkpoint=epoch-{epoch}", flush=True)


training, validation = (spirals(1000, np.random.default_rng(number)) for number in (1, 2))
own = sorted(folder.glob("epoch-*"), key=lambda path: int(path.name[len("epoch-"):]))
begin = own[-1] if own else os.environ.get("FINCH_PARENT_CHECKPOINT_DIR")
if begin:
    weights = dict(np.load(pathlib.Path(begin) / "weights.npz"))
    epoch = int(weights.pop("epoch"))
else:
    generator, shape = np.random.default_rng(int(os.environ["FINCH_SEED"])), (2, int(width))
    weights = {"in": generator.normal(0, 2, shape), "bias": generator.normal(0, 1, shape[1]), "out": np.zeros(shape[1])}
    epoch = 0
if own:
    report()  # again: Finch may not have received this report
for epoch in range(epoch + 1, 28):
    order = np.random.default_rng(epoch).permutation(1000).reshape(-1, 20)
    for batch in order:
        for name, gradient in gradients(weights, training[0][batch], training[1][batch])[1].items():
            weights[name] -= lr * (gradient + decay * weights[name])
    new = folder / "new"
    new.mkdir(exist_ok=True)
    np.savez(new / "weights.npz", epoch=epoch, **weights)
    new.rename(folder / f"epoch-{epoch}")
    report()  # Finch removes the folder with all checkpoints when the program has ended
