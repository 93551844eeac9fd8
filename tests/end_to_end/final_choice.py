"""Checks the final choice: the best individuals train again. The number of repeats is exact even after a kill. The file
models/best.h5 holds the best repeat of the winner."""
import os
import signal

import h5py

from harness import NOISY, TINY, Folder, check, end, individuals, passed, ranks_of, wait_for

REPEAT = 6  # the number of `repeat` in the enum of column `operator`; checked below
FINAL = TINY.replace("budget: {evaluations: 12}", "budget: {evaluations: 16}\n  final: {candidates: 3, repeats: 2}")


def split(rows):
    bred = {key: row for key, row in rows.items() if row["operator"] != REPEAT}
    return bred, {key: row for key, row in rows.items() if row["operator"] == REPEAT}


def check_choice(run, evaluations, text):
    rows = individuals(run)
    check(len(rows) == evaluations, f"{text}: {len(rows)} of {evaluations} evaluations")
    bred, repeats = split(rows)
    check(len(repeats) == 6, f"{text}: {len(repeats)} repeats, not 6")
    genes = ("layers", "activation", "lr")
    best, seen = [], set()
    for row in sorted(bred.values(), key=lambda one: (one["loss"], one["id"])):
        if tuple(row[gene] for gene in genes) not in seen and len(best) < 3:
            seen.add(tuple(row[gene] for gene in genes))
            best.append(row)
    means = {}
    for row in best:
        mine = [one for one in repeats.values() if one["parent_1"] == row["id"]]
        check(len(mine) == 2, f"{text}: {row['id']} has {len(mine)} repeats")
        check(all(one[gene] == row[gene] for one in mine for gene in genes), f"{text}: a repeat has other genes")
        check(len({one["loss"] for one in mine} | {row["loss"]}) == 3, f"{text}: a repeat is no other training")
        means[row["id"]] = sum(one["loss"] for one in mine) / 2
    winner = min(best, key=lambda row: means[row["id"]])
    expected = min((one for one in repeats.values() if one["parent_1"] == winner["id"]), key=lambda one: one["loss"])
    with h5py.File(run / "models/best.h5") as file:
        name = f"{expected['restart']}.{expected['worker']}.{expected['sequence']}"
        check(file.attrs["id"] in (name, name.encode()), f"{text}: best.h5 holds {file.attrs['id']}, not {name}")
        check("test/loss" in file or "test" in file, f"{text}: best.h5 has no results on the test set")
    left = list((run / "state").glob("repeat-*.h5"))
    check(len(left) == 3, f"{text}: the weights of {len(left)} repeats are left, not one of each candidate")
    return winner, means[winner["id"]]


with Folder() as folder:
    folder.write("final.yaml", FINAL)
    output = folder.run(4, "evolve", "final.yaml", "--run", "runs/whole")
    run = folder.path / "runs/whole"
    with h5py.File(run / "population.h5") as file:
        check(h5py.check_enum_dtype(file["individuals"].dtype["operator"])["repeat"] == REPEAT, "operator repeat has another number")
    winner, mean = check_choice(run, 16, "in one go")
    shown = folder.run(0, "show", "runs/whole")
    for text in (output, shown):
        check("final choice: the best 3 again with other seeds; " in text and f"{mean:.6g}" in text, f"the choice is not shown:\n{text}")
    passed("the best are trained again within the budget, and the winner's best repeat is published")

    process = folder.start(4, "evolve", "final.yaml", "--run", "runs/killed")
    wait_for(lambda: "final choice" in folder.output() or "again, " in folder.output(), "the final choice")
    for rank in ranks_of(process):
        os.kill(rank, signal.SIGKILL)
    end(process)
    folder.run(3, "evolve", "final.yaml", "--run", "runs/killed", "--set", "workers.ranks=1")
    check_choice(folder.path / "runs/killed", 16, "killed within the choice")
    passed("killed within the final choice and gone on with on other workers: the same number of repeats of the same")

    folder.run(4, "evolve", "final.yaml", "--run", "runs/whole", "--set", "search.budget.evaluations=30")
    bred, repeats = split(individuals(run))
    check(len(bred) == 18 and len(repeats) == 12, f"a raised budget gave {len(bred)} bred, {len(repeats)} repeats")
    passed("a raised budget searches on and ends with repeats of its own")

    folder.write("noisy.yaml", f"name: noisy\nsearch: {{{NOISY}, budget: {{evaluations: 300}}, final: {{candidates: 4, repeats: 5}}}}\n"
                               "workers: {islands: 2, ranks: 1}\n")
    shown = folder.run(4, "evolve", "noisy.yaml")
    bred, repeats = split(individuals(folder.path / "runs/noisy"))
    check(len(bred) == 280 and len(repeats) == 20, f"a noisy program: {len(bred)} bred, {len(repeats)} repeats")
    check(len({row["loss"] for row in repeats.values()}) == 20, "two repeats of a noisy program have the same value")
    check("the best 4 again with other seeds; " in shown and " wins" in shown, shown)
    passed("a noisy program is evaluated again where that is asked for")

    refused = folder.run(4, "evolve", "final.yaml", "--run", "runs/other", "--set", "search.budget.hours=1", expect=2)
    check("search.final" in refused and "accepted: none" in refused, refused)
    refused = folder.run(4, "evolve", "final.yaml", "--run", "runs/other", "--set", "search.budget.evaluations=6", expect=2)
    check("search.final: 3 candidates" in refused, refused)
    passed("a choice that has no place in its budget is refused in a sentence")
