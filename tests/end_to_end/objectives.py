"""Searches with two objectives, loss and number of parameters: `finch show` must print the front that brute force
finds."""
import csv
import io

import h5py

from harness import TINY, Folder, check, passed

TWO = (TINY.replace("objective: validation_loss", "objective: [validation_loss, parameters]").replace("evaluations: 12", "evaluations: 24")
       .replace("channels: 4", "channels: $channels").replace("  space:\n", "  space:\n    channels: {int: [1, 8]}\n"))


def table(folder, run):
    return list(csv.DictReader(io.StringIO(folder.run(0, "show", run, "--csv"))))


def parameters_of(row):
    """Returns the number of parameters: `layers` padded 3x3 convolutions with `channels` filters each, on one channel
    of 12 x 12, then pooling to 6 x 6 and a linear layer to 10 classes."""
    channels, layers = int(row["channels"]), int(row["layers"])
    weights = 9 * channels + channels + (layers - 1) * (9 * channels * channels + channels)
    return weights + 10 * (6 * 6 * channels + 1)


def front_of(rows):
    """Returns the ids of the front: no other individual is at least as good in both objectives and better in one."""
    points = [(float(row["loss"]), int(row["parameters"]), row["id"]) for row in rows if row["outcome"] == "evaluated"]
    return {mine[2] for mine in points
            if not any(other[0] <= mine[0] and other[1] <= mine[1] and other[:2] != mine[:2] for other in points)}


def shown_front(text):
    lines = text[text.index("the front:"):].splitlines()
    check("loss and parameters" in lines[0], lines[0])
    names = lines[1].split()
    check(names[:3] == ["id", "loss", "parameters"], f"the front's columns are {names}")
    rows = []
    for line in lines[2:]:
        if not line.strip():
            break
        rows.append(line.split()[:3])
    return rows


with Folder() as folder:
    folder.write("two.yaml", TWO)
    output = folder.run(4, "evolve", "two.yaml", "--set", "search.budget.evaluations=13")
    folder.run(3, "evolve", "two.yaml", "--set", "workers.ranks=1")
    rows = table(folder, "runs/tiny")
    check(len(rows) == 24, f"{len(rows)} of 24 evaluations")
    for row in rows:
        if row["outcome"] == "evaluated":
            check(int(row["parameters"]) == parameters_of(row), f"{row['id']}: {row['parameters']} parameters, not {parameters_of(row)}")
    passed("the number of parameters is that of the layers")

    shown = shown_front(folder.run(0, "show", "runs/tiny"))
    expected = front_of(rows)
    check({row[0] for row in shown} == expected and len(shown) == len(expected), f"shown: {shown}, by brute force: {expected}")
    losses = [float(row[1]) for row in shown]
    check(losses == sorted(losses) and len(shown) > 1, f"the front is not in the order of losses: {shown}")
    check("the front:" in output, "the summary of a run has no front")
    passed(f"the front of {len(shown)} is what brute force over --csv finds, after a resume on another layout")

    best = min((row for row in rows if row["outcome"] == "evaluated"), key=lambda row: (float(row["loss"]), row["id"]))
    with h5py.File(folder.path / "runs/tiny/models/best.h5") as file:
        check(int(file.attrs["parameters"]) == int(best["parameters"]) and float(file.attrs["loss"]) == float(best["loss"]),
              "best.h5 does not hold the smallest loss")
        count = sum(file[name].size for name in file if name.endswith((".weight", ".bias")))
        check(count == int(best["parameters"]), f"best.h5 holds {count} numbers, recorded are {best['parameters']}")
    passed("best.h5 holds the smallest loss, and as many numbers as were recorded")

    refused = folder.run(4, "evolve", "two.yaml", "--run", "runs/other", "--set", "search.propagator=auto", expect=2)
    check("search.propagator" in refused and "accepted: genetic" in refused, refused)
    passed("what knows one objective refuses")
