"""Searches with two objectives and with limits on results: `finch show` must print the front that brute force
finds."""
import csv
import io
import json
import re

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
        if not line.strip() or line.startswith("hypervolume:"):
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

    refused = folder.run(4, "evolve", "two.yaml", "--run", "runs/other", "--set", "search.propagator=cmaes", expect=2)
    check("search.propagator" in refused and "accepted: auto, " in refused, refused)
    passed("what supports one objective refuses")

    folder.run(4, "evolve", "two.yaml", "--run", "runs/f1", "--set", "search.objective=[validation_loss, -f1]", "--set", "search.propagator=auto", "--set", "search.pruning=median",
               "--set", "training.epochs=4")
    rows = [row for row in table(folder, "runs/f1") if row["outcome"] == "evaluated"]
    for row in rows:
        curve = json.loads(folder.run(0, "show", "runs/f1", row["id"], "--json"))["curve"]
        f1 = curve[int(row["best_epoch"]) - 1]["validation_f1"]
        check(0 < f1 <= 1 and f1 == float(row["objective_metric_1"]), f"{row['id']}: F1 {f1}, as an objective {row['objective_metric_1']}")
    shown = folder.run(0, "show", "runs/f1")
    front = shown[shown.index("the front:"):].splitlines()
    check(front[1].split()[:3] == ["id", "loss", "f1"], front[:2])
    share = json.loads(folder.run(0, "show", "runs/f1", "--json"))["hypervolume"]
    said = re.search(r"hypervolume: ([0-9.]+)", shown)
    check((share is None) == (said is None) and (said is None or abs(share["share"] - float(said[1])) < 1e-4), f"{share} {said}")
    check("macro F1" in folder.run(0, "show", "runs/f1", rows[0]["id"]), "the learning curve has no F1")
    passed(f"macro F1 of {len(rows)} networks is an objective and a column of the curve")


PROGRAM = """
name: program
search:
  objective:
    command: python3 program.py {x}
    objectives: [loss, -metric.f1]
  limits: [metric.latency <= 5]
  space: {x: {real: [0, 10]}}
  propagator: {genetic: {population: 4}}
  budget: {evaluations: 24}
"""
# The latency is x, so half of the space breaks the limit; f1 grows with the loss, and is NaN for the smallest losses.
SCRIPT = """
import sys
x = float(sys.argv[1])
print(f"finch loss={x} latency={x} f1={x * x / 100 if x > 1 else 'nan'}")
"""

with Folder() as folder:
    folder.write("program.py", SCRIPT)
    text = PROGRAM.replace("program.py", str(folder.path / "program.py"))
    folder.write("program.yaml", text)
    output = folder.run(2, "evolve", "program.yaml")
    rows = table(folder, "runs/program")
    for row in rows:
        violation = max(0.0, (float(row["loss"]) - 5) / 5)
        check(abs(float(row["violation"]) - violation) < 1e-12, f"{row['id']}: violation {row['violation']}, not {violation}")
        f1 = str(float(row["loss"]) * float(row["loss"]) / 100) if float(row["loss"]) > 1 else "nan"
        check(row["objective_metric_1"] == f1, f"{row['id']}: {row['objective_metric_1']}, not {f1}")
    broken = sum(float(row["violation"]) > 0 for row in rows)
    unknown = sum(row["objective_metric_1"] == "nan" for row in rows)
    shown = folder.run(0, "show", "runs/program")
    check(unknown > 0 and broken > 0 and f"; {broken} break search.limits" in shown, f"{broken} break limits\n{shown}")
    check(f"{broken} of 24 results break search.limits" in output, output)
    front = shown[shown.index("the front:"):].splitlines()
    check(f"the front: {24 - broken - unknown} of 24 individuals" in front[0] and front[1].split()[:3] == ["id", "loss", "metric.f1"], front[:2])
    check("hypervolume: " in shown, shown)
    passed("limits and objectives of reported metrics: no member of the front breaks a limit or has an objective that is NaN")

    output = folder.run(1, "evolve", "program.yaml", "--run", "runs/missing", "--set", "search.limits=[metric.latancy <= 5]",
                        "--set", "search.give_up_after=2", expect=75)
    check("it reported no metric 'latancy'" in output and "did you mean 'latency'?" in output, output)
    passed("a metric that a program does not report fails the evaluation, and names the metrics that it reports")

    text = TWO.replace("  budget:", "  limits: [parameters <= 2500]\n  pruning: {halving: {factor: 2}}\n  budget:")
    folder.write("limited.yaml", text.replace("validation_loss,", "validation_error,").replace("epochs: 3", "epochs: 5").replace("islands: 2", "islands: 1"))
    folder.run(2, "evolve", "limited.yaml", "--run", "runs/limited")
    rows = table(folder, "runs/limited")
    check(all(parameters_of(row) <= 2500 for row in rows), "a network with too many parameters was trained")
    pruned = [row for row in rows if row["outcome"] == "pruned"]
    check(pruned and all(float(row["rung_cost_1_1"]) == parameters_of(row) for row in pruned), f"pruned: {pruned}")
    shown = {row[0] for row in shown_front(folder.run(0, "show", "runs/limited").replace("error", "loss"))}
    check(shown == front_of(rows), f"shown: {shown}, by brute force: {front_of(rows)}")
    refused = folder.run(2, "evolve", "limited.yaml", "--run", "runs/small", "--set", "search.limits=[parameters <= 10]", expect=2)
    check("is broken by all" in refused and "the smallest has" in refused, refused)
    passed("networks with too many parameters are not trained, and pruning with two objectives keeps pruned ones off the front")
