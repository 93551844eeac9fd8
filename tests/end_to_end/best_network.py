"""Checks `finch test` of a run's best network. It prints the recorded figures on 1, 2 and 3 ranks, and writes a table
of predictions. It also tests other data. If the input does not fit, Finch refuses it with one sentence."""
import csv
import gzip
import re
import shutil

import h5py
import numpy as np

from harness import SOURCE, TINY, Folder, check, end_of_short_form, passed

SMALL = ["--set", "data.validation_samples=203", "--set", "data.training_samples=300", "--set", "training.epochs=1", "--set",
         "search.space.lr={real: [0.1, 1.0], scale: log}", "--set", "search.budget.evaluations=3", "--set", "workers.islands=1"]


def read_idx(path, dimensions):
    with gzip.open(path, "rb") as file:
        data = file.read()
    sizes = np.frombuffer(data, dtype=">u4", count=dimensions, offset=4)
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(sizes)


def read_images(folder, which):
    return read_idx(folder / f"{which}-images-idx3-ubyte.gz", 3)[..., None], read_idx(folder / f"{which}-labels-idx1-ubyte.gz", 1)


def naive_figures(truth, guess, scores):
    """Computes accuracy, top 5 and macro F1 with plain loops over samples and classes."""
    accuracy = np.mean([one == other for one, other in zip(truth, guess)])
    top_5 = np.mean([sum(score > row[one] for score in row) < 5 for one, row in zip(truth, scores)])
    f1 = []
    for label in sorted(set(truth) | set(guess)):
        hits = sum(one == label == other for one, other in zip(truth, guess))
        f1.append(2 * hits / (np.sum(truth == label) + np.sum(guess == label)))
    return accuracy, top_5, np.mean(f1)


def check_table(results, labels, name):
    """Checks a table in models/best.h5: labels must agree with the data files, and the figures with the rows."""
    index, truth, guess, scores = (results[column][()] for column in ("index", "truth", "predictions", "scores"))
    check((labels[index] == truth).all(), f"{name}: the truths are not those of the images with these indices")
    check(len(set(index.tolist())) == len(index) == len(guess) == len(scores), f"{name}: an image counts twice, or never")
    check(scores.shape[1] == 10 and scores.dtype == np.float32 and np.allclose(scores.sum(1), 1, atol=1e-5), f"{name}: scores of no softmax")
    check((scores.argmax(1) == guess).mean() > 0.99, f"{name}: the guess has not the largest score")
    check(abs(-np.log(scores[np.arange(len(truth)), truth]).mean() - results["loss"][()]) < 1e-4, f"{name}: the loss is another")
    confusion = np.zeros((10, 10), dtype=np.int64)
    np.add.at(confusion, (truth, guess), 1)
    check((confusion == results["confusion"][()]).all(), f"{name}: the confusion matrix is another")
    found = [results[figure][()] for figure in ("accuracy", "top_5", "macro_f1")]
    check(np.allclose(found, naive_figures(truth, guess, scores), atol=1e-12), f"{name}: {found}, but {naive_figures(truth, guess, scores)}")


def check_classes(results, name):
    """Compares recall and calibration error with their definitions, computed from the tables."""
    truth, guess, scores = (results[column][()] for column in ("truth", "predictions", "scores"))
    for label, recall in enumerate(results["recall"][()]):
        mine = truth == label
        check(np.isnan(recall) if not mine.any() else abs(recall - (guess[mine] == label).mean()) < 1e-12, f"{name}: the recall of {label} is {recall}")
    largest = scores[np.arange(len(guess)), guess].astype(np.float64)
    error = 0
    for low in range(15):
        inside = (largest > low / 15) & (largest <= (low + 1) / 15)
        error += inside.mean() * abs((guess == truth)[inside].mean() - largest[inside].mean()) if inside.any() else 0
    check(abs(results["calibration_error"][()] - error) < 1e-9, f"{name}: the calibration error is {results['calibration_error'][()]}, not {error}")


def check_mistakes(results, images, name):
    """Compares the recorded mistakes with the full table of predictions and with the images in the data files."""
    index, truth, guess, scores = (results[column][()] for column in ("index", "truth", "predictions", "scores"))
    wrong = [row for row in range(len(index)) if truth[row] != guess[row]]
    surest = sorted(wrong, key=lambda row: -scores[row, guess[row]])[:64]  # sorted() is stable: ties keep their order
    mistakes = results["mistakes"]
    check(surest and mistakes["index"][()].tolist() == index[surest].tolist(), f"{name}: other mistakes than the surest")
    check(mistakes["truth"][()].tolist() == truth[surest].tolist() and mistakes["guess"][()].tolist() == guess[surest].tolist(), f"{name}: mistakes")
    check((mistakes["score"][()] == scores[surest, guess[surest]]).all(), f"{name}: the scores of mistakes")
    check((mistakes["images"][()] == images[index[surest]]).all(), f"{name}: the images of mistakes are others")
    sample = results["sample"]
    places = {number: row for row, number in enumerate(index)}
    rows = np.array([places[number] for number in sample["index"][()]])
    check(len(rows) == 25 and (np.diff(rows) > 0).all(), f"{name}: no sample of 25 different images")
    check((sample["truth"][()] == truth[rows]).all() and (sample["guess"][()] == guess[rows]).all(), f"{name}: other answers in the sample")
    check((sample["score"][()] == scores[rows, guess[rows]]).all(), f"{name}: the scores of the sample")
    check((sample["images"][()] == images[sample["index"][()]]).all(), f"{name}: the images of the sample are others")


def figures_of(text):
    return re.search(r"loss .*", text).group(0), text[text.index("confusion"):]


with Folder() as folder:
    shutil.copy(SOURCE / "configs/mnist.yaml", folder.path)
    folder.run(0, "data", "generate", "data/mnist", "--samples", 600)
    said = folder.run(2, "evolve", "mnist.yaml", *SMALL)
    training, training_labels = read_images(folder.path / "data/mnist", "train")
    test, test_labels = read_images(folder.path / "data/mnist", "t10k")
    with h5py.File(folder.path / "runs/mnist/models/best.h5") as best:
        check_table(best["test"], test_labels, "test")
        check_table(best["validation"], training_labels, "validation")
        for name in ("test", "validation"):
            check_classes(best[name], name)
        check_mistakes(best["test"], test, "test")
        check_mistakes(best["validation"], training, "validation")
        check(len(best["validation/index"]) == 203 and len(best["test/index"]) == 100, "100 images test, 203 validate")
        accuracy, f1 = best["test/accuracy"][()], best["test/macro_f1"][()]
        check(abs(best.attrs["accuracy"] - best["validation/accuracy"][()]) < 0.5 / 203, "the validation set is another than the search's")
        predictions, recorded_scores = best["test/predictions"][()], best["test/scores"][()]
        confusion, recall = best["test/confusion"][()], best["test/recall"][()]
        calibration = best["test/calibration_error"][()]
    check(f"test accuracy {100 * accuracy:.2f} %" in said and f"macro F1 {f1:.4f}" in said, f"the closing line lacks the figures\n{said}")
    passed("best.h5 has the tables of the test and the validation set; accuracy, top 5, F1 and confusions are those of a naive count, and the surest mistakes")

    alone = folder.run(0, "test", "runs/mnist", "--csv", "predictions.csv")
    check(f"accuracy {100 * accuracy:.2f} %" in alone and f"macro F1 {f1:.4f}" in alone and "100 images" in alone, alone)
    check(alone.startswith("best individual "), f"other text in front of the result\n{alone}")
    rows = [line.split() for line in alone[alone.index("truth"):].splitlines()[1:11]]
    check([[int(cell) for cell in row[1:11]] for row in rows] == confusion.tolist(), f"the matrix that is printed is another\n{alone}")
    check([row[11:] for row in rows] == [[f"{sum(row)}", f"{one:.4f}"] for row, one in zip(confusion, recall)], f"another recall is printed\n{alone}")
    check(f"\nexpected calibration error {calibration:.4f} (15 bins of equal width, Guo et al. 2017)\n" in alone, alone)
    table = list(csv.DictReader(open(folder.path / "predictions.csv")))
    check([int(row["guess"]) for row in table] == predictions.tolist() and [int(row["truth"]) for row in table] == test_labels.tolist()
          and [int(row["index"]) for row in table] == list(range(100)), "the table of predictions is another")
    written = np.array([[float(row[f"score_{c}"]) for c in range(10)] for row in table], dtype=np.float32)
    check(np.abs(written - recorded_scores).max() < 1e-6, "the scores of the table are others")
    for ranks in (2, 3):
        check(figures_of(folder.run(ranks, "test", "runs/mnist", "--csv", f"{ranks}.csv")) == figures_of(alone), f"{ranks} ranks find other figures")
        check((folder.path / f"{ranks}.csv").read_text() == (folder.path / "predictions.csv").read_text(), f"{ranks} ranks predict otherwise")
    passed("finch test finds on 1, 2 and 3 ranks what was recorded, and writes the predictions")
    end_of_short_form()

    # Makes a file with only a test set: the training images of the first five classes.
    some = training_labels < 5
    with h5py.File(folder.path / "some.h5", "w") as file:
        file["test/images"], file["test/labels"] = training[some][..., 0], training_labels[some]
    other = folder.run(2, "test", "runs/mnist", "--data", "some.h5", "--set", "data.kind=hdf5")
    check(f"{some.sum()} images" in other and "other data" in other, other)
    rows = [[int(cell) for cell in line.split()[1:11]] for line in other[other.index("truth"):].splitlines()[1:11]]
    check([sum(row) for row in rows] == np.bincount(training_labels[some], minlength=10).tolist(), f"some classes are missing\n{other}")
    folder.write("drawn.yaml", TINY)
    folder.run(4, "evolve", "drawn.yaml", "--set", "search.budget.evaluations=2", "--set", "data.size=28", "--set", "name=drawn")
    drawn = folder.run(0, "test", "runs/drawn", "--data", "some.h5", "--set", "data.kind=hdf5")
    check(f"{some.sum()} images" in drawn, drawn)
    passed("other data need no training set, and may lack classes")

    def refused(what, *arguments, ranks=2):
        text = folder.run(ranks, "test", *arguments, expect=2)
        check(text.count("finch: ") == 1 and what in text, f"expected one sentence with {what!r}:\n{text}")

    folder.run(0, "data", "generate", "small", "--samples", 60, "--size", 14)
    refused("images of (14, 14, 1)", "runs/mnist", "--data", "small")
    with h5py.File(folder.path / "many.h5", "w") as file:
        file["test/images"], file["test/labels"] = test[:12, ..., 0], np.arange(12, dtype=np.uint8)
    refused("with 12 classes", "runs/mnist", "--data", "many.h5", "--set", "data.kind=hdf5")
    refused("there is no such folder", "runs/mnist", "--data", "nowhere")
    refused("accepted: keys of data and of workers", "runs/mnist", "--set", "training.epochs=3")
    refused("there is no run here", "runs/nobody")
    refused("cannot be written: No such file or directory", "runs/mnist", "--csv", "nowhere/predictions.csv")
    (folder.path / "data/mnist").rename(folder.path / "data/kept")
    folder.run(0, "data", "generate", "data/mnist", "--samples", 600, "--seed", 2)
    refused("the data are others than the run's", "runs/mnist")
    said = folder.run(2, "test", "runs/mnist", "--data", "data/mnist")
    check("other data, data/mnist\n" in said and "(100 images)" in said, f"other data of the same path\n{said}")
    folder.write("sphere.yaml", "name: sphere\nsearch:\n  objective: {function: sphere}\n  budget: {evaluations: 20}\n")
    folder.run(0, "evolve", "sphere.yaml")
    refused("objective is a function or a program", "runs/sphere")
    folder.write("tiny.yaml", TINY)
    folder.run(2, "evolve", "tiny.yaml", "--set", "search.budget.evaluations=2", "--set", "workers.islands=1")
    refused("this run's data are generated", "runs/tiny", "--data", "data/mnist")
    for path in (folder.path / "runs/tiny/models").iterdir():
        path.unlink()
    refused("the run has no trained network yet", "runs/tiny")
    passed("what does not fit is told in one sentence")
