"""Checks pruning on workers of 2 ranks: trainings end at rungs, complete trainings are ranked first, and a replay ends
at the same epoch."""
import math

from harness import TINY, Folder, check, curves, individuals, outcome_words, passed

PRUNED = (TINY.replace("epochs: 3", "epochs: 10").replace("islands: 2", "slots: 2")
          .replace("samples: 600", "samples: 300")
          .replace("  objective:", "  pruning: halving\n  objective:"))
RUN = "runs/tiny"


def name_of(number):
    number = int(number)
    return f"{number >> 52}.{(number >> 32) & 0xFFFFF}.{number & 0xFFFFFFFF}"


with Folder() as folder:
    folder.write("tiny.yaml", PRUNED)
    output = folder.run(2, "evolve", "tiny.yaml")
    rows, words, curve = individuals(folder.path / RUN), outcome_words(folder.path / RUN), curves(folder.path / RUN)
    pruned = [row for row in rows.values() if words[row["outcome"]] == "pruned"]
    complete = [row for row in rows.values() if words[row["outcome"]] == "evaluated"]
    check(len(pruned) >= 4 and complete, f"{len(pruned)} were pruned and {len(complete)} complete\n{output}")
    for row in pruned:
        rung = (1, 3, 9).index(row["epochs"]) + 1
        check(row["rung"] == rung and row["loss"] > row["pruning_threshold"], f"a pruned row: {row}")
        check(len(curve[row["id"]]) == row["epochs"], f"the curve of {name_of(row['id'])}")
    for row in rows.values():
        for rung, epoch in enumerate((1, 3, 9), 1):
            losses = [line[3] for line in curve[row["id"]][:epoch]]
            told = row[f"rung_loss_{rung}"]
            check(told == min(losses) if len(losses) == epoch else math.isnan(told), f"losses at rungs: {row}")
    passed("on a worker of 2 ranks halving ends trainings at epochs 1, 3 and 9, and records why")

    best = min(complete, key=lambda row: row["loss"])
    shown = folder.run(0, "show", RUN, "--top", "1")
    check(name_of(best["id"]) in shown and f"{len(pruned)} pruned" in shown, f"show: {shown}")
    check((folder.path / RUN / "models/best.h5").exists(), "there is no models/best.h5")
    passed("the best is a complete training")

    for row in (pruned[0], best):
        again = folder.run(2, "replay", RUN, name_of(row["id"]))
        check("equal to the last bit" in again, f"a replay of {name_of(row['id'])} differs\n{again}")
    passed("a replay ends where the training did, to the same bits")

    before = {key: row.tobytes() for key, row in rows.items()}
    folder.run(1, "evolve", "tiny.yaml", "--set", "workers.ranks=1", "--set", "search.budget={epochs: 120}")
    rows = individuals(folder.path / RUN)
    check(all(rows[key].tobytes() == value for key, value in before.items()), "a later start changed an earlier individual")
    epochs = sum(int(row["epochs"]) for row in rows.values())
    check(120 <= epochs < 120 + 2 * 10, f"{epochs} epochs were trained, of 120")
    counted = f"{epochs} epochs (budget 120)" if epochs > 120 else "120 of 120 epochs"
    check(counted in folder.run(0, "status", RUN), "status does not name the epochs")
    later = [row for key, row in rows.items() if key not in before and words[row["outcome"]] == "pruned"]
    check(later, "nothing was pruned after a resume")
    losses = [row["rung_loss_1"] for row in rows.values() if not math.isnan(row["rung_loss_1"])]
    first = [row for row in later if row["rung"] == 1]
    check(all(sum(loss < row["loss"] for loss in losses) >= 4 for row in first),
          "after the resume a training was compared with those of the later start alone")
    passed("a budget of epochs ends a run that goes on, which compares with all that was trained before")

    refused = folder.run(1, "evolve", "tiny.yaml", "--set", "workers.ranks=1", "--set", "search.pruning=median", expect=2)
    check("search.pruning" in refused, f"another rule for the same run: {refused}")
    passed("a run keeps its rule")

INHERITED = TINY.replace("epochs: 3,", "epochs: 3, inherit: true, average: 0.9,").replace("islands: 2", "slots: 2")

with Folder() as folder:
    folder.write("tiny.yaml", INHERITED)
    folder.run(2, "evolve", "tiny.yaml", "--set", "search.budget.evaluations=16")
    rows = individuals(folder.path / RUN)
    heirs = [row for row in rows.values() if row["inherited_from"] != 0]
    check(heirs and all(row["inherited_from"] == row["parent_1"] for row in heirs), f"heirs: {heirs}")
    check(all(rows[row["inherited_from"]]["layers"] == row["layers"] for row in heirs), "an heir of another shape")
    kept = len(list((folder.path / RUN / "state").glob("weights-*.h5")))
    check(0 < kept <= 8, f"the weights of {kept} are kept")
    again = folder.run(2, "replay", RUN, name_of(heirs[-1]["id"]))
    check("equal to the last bit" in again, f"a replay of {name_of(heirs[-1]['id'])} differs\n{again}")
    passed("children of equal shape begin with their parents' weights, and a replay trains these first")
