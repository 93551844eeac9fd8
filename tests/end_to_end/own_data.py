"""Checks data of a user: HDF5 files of float images with numeric targets or labels, a separate validation set, and no
test set. Networks train on these data with two ranks and resume after USR2. Finch refuses data that do not fit, and
names the key or file."""
import subprocess
import sys

import h5py
import numpy as np
from PIL import Image

from harness import SOURCE, Folder, check, curves, individuals, outcome_words, passed, set_of, stop_in_training, write_hdf5

CONFIG = """
name: own
data: {kind: hdf5, path: own.h5, validation: own, normalize: {mean: 2, deviation: 3}}
model: [{conv: {channels: 4, kernel: 3, activation: relu}}, {max_pool: {kernel: 2}}, flatten, linear]
training: {epochs: 3, batch_size: 16, optimizer: adam, learning_rate: $lr, loss: mean_squared_error}
workers: {ranks: 2, threads: 1}
search: {propagator: random, budget: {evaluations: 4}, space: {lr: {real: [0.001, 0.01], scale: log}}}
checkpoint: {archive_seconds: 0.2, training_seconds: 0.2}
"""


def samples(count, generator):
    """Returns images (count, 10, 10) of float32 with one blob each over noise, and targets (count, 3): row, column,
    height."""
    row, column, height = generator.uniform(2, 8, count), generator.uniform(2, 8, count), generator.uniform(2, 9, count)
    rows, columns = np.mgrid[:10, :10]
    distance = (rows - row[:, None, None]) ** 2 + (columns - column[:, None, None]) ** 2
    images = height[:, None, None] * np.exp(-distance / 4) + generator.normal(0, 0.1, (count, 10, 10))
    return images.astype(np.float32), np.stack([row, column, height], axis=1)


def stopped_and_resumed(folder, run):
    stop_in_training(folder, run, "own.yaml", "--set", "training.epochs=300")
    folder.run(2, "evolve", "own.yaml", "--run", run, "--set", "training.epochs=300")


with Folder() as folder:
    generator = np.random.default_rng(4)
    images, targets = samples(600, generator)
    others, other_targets = samples(120, generator)
    own = {**set_of("training", images, targets), **set_of("validation", others, other_targets)}
    write_hdf5(folder.path / "own.h5", own)
    folder.write("own.yaml", CONFIG)

    plan = folder.run(0, "plan", "own.yaml", "--nodes", "1", "--ranks-per-node", "2")
    check("with targets of size 3: 600 train, 120 validate; there is no test set" in plan, f"plan says\n{plan}")
    folder.run(4, "evolve", "own.yaml")
    rows = individuals(folder.path / "runs/own")
    words = outcome_words(folder.path / "runs/own")
    check(len(rows) == 4 and all(words[row["outcome"]] == "evaluated" for row in rows.values()), "not all were evaluated")
    check(all(np.isnan(row["accuracy"]) for row in rows.values()), "a regression has no accuracy")
    best = min(row["loss"] for row in rows.values())
    check(best < 0.5 * other_targets.var(axis=0).mean(), f"a loss of {best} was found")
    with h5py.File(folder.path / "runs/own/models/best.h5", "r") as model:
        found, truth = model["validation/predictions"][:], model["validation/truth"][:]
        check(np.array_equal(truth, other_targets.astype(np.float32)), "the truths are not those of the user's validation set")
        check(abs(((found - truth) ** 2).mean() - best) < 1e-3 * best and abs(model["validation/loss"][()] - best) < 1e-3 * best,
              "the predictions are not those of the best loss")
        check("test" not in model, "there is no test set, but results on one")
    check("nan" not in (shown := folder.run(0, "show", "runs/own", "0.0.1")) and "accuracy 0" not in shown, f"what show says of accuracies\n{shown}")
    passed("networks learn numbers from images of floats, validated on the user's own set; best.h5 has what they predict")

    check("have no test set" in folder.run(0, "test", "runs/own", expect=2), "finch test without a test set")
    write_hdf5(folder.path / "more.h5", set_of("test", others[:50], other_targets[:50]))
    text = folder.run(2, "test", "runs/own", "--data", "more.h5", "--csv", "more.csv")
    lines = (folder.path / "more.csv").read_text().splitlines()
    check("50 images" in text and len(lines) == 51 and lines[0] == "index,truth_0,truth_1,truth_2,guess_0,guess_1,guess_2", f"{text}\n{lines[0]}")
    guesses = np.array([[float(cell) for cell in line.split(",")[4:]] for line in lines[1:]])
    check(np.allclose(guesses, found[:50], rtol=1e-4, atol=1e-4), "finch test predicts otherwise than the run")
    write_hdf5(folder.path / "more.h5", set_of("test", np.clip(others, 0, 255).astype(np.uint8), other_targets))
    check("the data's pixels are bytes" in (said := folder.run(0, "test", "runs/own", "--data", "more.h5", expect=2)), said)
    passed("finch test measures other data with targets, and writes what was predicted; pixels of another kind are refused")

    stopped_and_resumed(folder, "runs/stopped")
    folder.run(2, "evolve", "own.yaml", "--run", "runs/whole", "--set", "training.epochs=300")
    stopped, whole = (curves(folder.path / f"runs/{name}") for name in ("stopped", "whole"))
    both = sorted(stopped.keys() & whole.keys())  # individuals of later starts have other ids in the two runs
    check(both and all(str(stopped[one]) == str(whole[one]) for one in both), "a regression that was stopped ends otherwise")
    passed("regressions stop in mid-epoch and go on to the same bits")

    write_hdf5(folder.path / "apart.h5", set_of("training", others, other_targets))
    folder.run(2, "evolve", "own.yaml", "--run", "runs/moved", "--set", "data.validation={own: {path: apart.h5}}")
    (folder.path / "apart.h5").rename(folder.path / "elsewhere.h5")
    folder.run(2, "evolve", "own.yaml", "--run", "runs/moved", "--set", "data.validation={own: {path: elsewhere.h5}}", "--set", "search.budget.evaluations=5")
    check(len(individuals(folder.path / "runs/moved")) == 5, "a run did not go on when its validation set had moved")
    said = folder.run(2, "evolve", "own.yaml", "--run", "runs/moved", "--set", "data.validation={own: {path: own.h5}}", expect=2)
    check("checksum" in said, said)
    passed("a validation set may move; another one is another run")

    site = generator.integers(0, 4, 600)
    labels = (targets[:, 2] > 5).astype(float) + (targets[:, 2] > 8)
    write_hdf5(folder.path / "own.h5", {**set_of("training", images, labels), "training/site": site})
    folder.write("own.yaml", CONFIG.replace("validation: own", "validation: {column: {name: site, values: [1, 3]}}")
                 .replace("loss: mean_squared_error", "balanced_classes: true"))
    plan = folder.run(0, "plan", "own.yaml", "--nodes", "1", "--ranks-per-node", "2")
    apart = int(np.isin(site, [1, 3]).sum())
    check(f"in 3 classes: {600 - apart} train, {apart} validate" in plan, f"plan says\n{plan}")
    check("no training image" not in plan, f"plan says\n{plan}")
    unseen = folder.run(0, "plan", "own.yaml", "--nodes", "1", "--ranks-per-node", "2", "--set", "training.balanced_classes=false",
                        "--set", "data.validation={column: {name: labels, values: [2]}}")
    check("no training image has label 2, only the validation set" in unseen, f"plan says\n{unseen}")
    folder.run(2, "evolve", "own.yaml", "--run", "runs/sites")
    with h5py.File(folder.path / "runs/sites/models/best.h5", "r") as model:
        check(np.array_equal(model["validation/index"][:], np.flatnonzero(np.isin(site, [1, 3]))), "others validated than the column says")
        check(model["validation/accuracy"][()] > 0.6, f"an accuracy of {model['validation/accuracy'][()]}")
    passed("a column of the file says who validates; labels are floats, their classes balanced")

    def refused(text, *settings):
        said = folder.run(0, "plan", "own.yaml", "--nodes", "1", "--ranks-per-node", "2", *(word for setting in settings for word in ("--set", setting)), expect=2)
        check(text in said, f"'{text}' is not in\n{said}")

    refused("training/site is 9 for no image", "data.validation={column: {name: site, values: [9]}}")
    refused("has no validation set", "data.validation=own")
    refused("data.validation.own.path: ", "data.validation={own: {path: nowhere.h5}}")
    refused("data.validation.column: ", "data.validation={column: {name: sites}}")
    refused("training.class_weights: has 2 weights for 3 classes", "training.balanced_classes=false", "training.class_weights=[1, 2]")
    refused("cannot be combined with class_weights", "training.class_weights=[1, 2, 3]")
    refused("is of classes, but training.loss is mean_squared_error", "training.loss=mean_squared_error")
    refused("accepted: cross_entropy, or data of kind hdf5", "training={loss: mean_squared_error, balanced_classes: false}", "data={kind: generated}")
    refused("validation_error counts wrong classes", "training={loss: mean_absolute_error}", "search.objective=validation_error")
    passed("what does not fit is refused by name")

    colours = {"blue": (10, 20, 200), "red": (200, 20, 10)}
    for group, count in (("training", 40), ("validation", 10)):
        for name, colour in colours.items():
            (folder.path / "images" / group / name).mkdir(parents=True)
            for number in range(count):
                pixels = np.clip(np.array(colour) + generator.normal(0, 30, (9, 7, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(folder.path / f"images/{group}/{name}/{number:02}.png")

    def convert(*words):
        return subprocess.run([sys.executable, SOURCE / "tools/images_to_hdf5.py", folder.path / "images", folder.path / "own.h5", *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    done = convert()
    check(done.returncode == 0, done.stdout)
    with h5py.File(folder.path / "own.h5") as file:
        row = 40 + 3
        check(file["training/files"][row].decode() == "red/03.png", "the names are in another order")
        check(np.array_equal(file["training/images"][row], np.asarray(Image.open(folder.path / "images/training/red/03.png"))), "another image")
        check(file["training/labels"][:].tolist() == [0] * 40 + [1] * 40, "other labels")
    folder.write("own.yaml", CONFIG.replace("loss: mean_squared_error", "loss: cross_entropy").replace("normalize: {mean: 2, deviation: 3}", "normalize: {mean: 0.3, deviation: 0.3}"))
    plan = folder.run(0, "plan", "own.yaml", "--nodes", "1", "--ranks-per-node", "2")
    check("9 x 7 x 3 in 2 classes: 80 train, 20 validate" in plan, f"plan says\n{plan}")
    folder.run(2, "evolve", "own.yaml", "--run", "runs/colours")
    with h5py.File(folder.path / "runs/colours/models/best.h5") as model:
        check(model["validation/accuracy"][()] > 0.9, "red and blue are not told apart")
    Image.new("RGB", (8, 8)).save(folder.path / "images/training/red/99.png")
    done = convert()
    check(done.returncode != 0 and "give --size HEIGHT WIDTH" in done.stdout, done.stdout)
    check(convert("--size", "6", "5", "--grey").returncode == 0, "images of several sizes")
    with h5py.File(folder.path / "own.h5") as file:
        check(file["training/images"].shape == (81, 6, 5, 1), f"images of {file['training/images'].shape}")
    (folder.path / "images/validation/green").mkdir()
    done = convert("--size", "6", "5")
    check(done.returncode != 0 and "images/validation/green: is a class without images in" in done.stdout, done.stdout)
    (folder.path / "images/training/green").mkdir()
    done = convert("--size", "6", "5")
    check(done.returncode != 0 and "images/training/green: holds no images" in done.stdout, done.stdout)
    Image.new("RGB", (8, 8)).save(folder.path / "images/training/green/0.png")
    done = convert("--size", "6", "5")
    check(done.returncode == 0 and "validation: no images of green" in done.stdout, done.stdout)
    passed("tools/images_to_hdf5.py makes a data set of folders of images, on which networks learn")
