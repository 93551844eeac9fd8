"""Searches a space of ten trainings with a larger budget: no training repeats before all are known. With `duplicates:
reuse`, repeated genes reuse the known result."""
from harness import Folder, check, individuals, passed

SMALL = """
name: small
seed: 5
data: {kind: generated, samples: 300, size: 8, validation_samples: 100}
model:
  - conv: {channels: 2, kernel: 3, activation: $activation, repeat: $layers}
  - flatten
  - linear
training: {epochs: 1, batch_size: 50, optimizer: sgd, learning_rate: 0.1}
search:
  space:
    layers: {int: [0, 3]}
    activation: {choice: [relu, sigmoid, tanh]}
  propagator: {genetic: {population: 4}}
  budget: {evaluations: 40}
workers: {islands: 1}
"""
TRAININGS = 10  # 1 to 3 layers x 3 activations = 9, and a network without layers: it has no activation


def genome(row):
    return int(row["layers"]), int(row["activation"])


def text(number):
    number = int(number)
    return f"{number >> 52}.{(number >> 32) & 0xFFFFF}.{number & 0xFFFFFFFF}"


with Folder() as folder:
    folder.write("small.yaml", SMALL)

    folder.run(2, "evolve", "small.yaml")
    rows = sorted(individuals(folder.path / "runs/small").values(), key=lambda row: row["born"])
    genomes = [genome(row) for row in rows]
    last_new = max(genomes.index(one) for one in set(genomes))
    check(len(rows) == 40, f"40 evaluations were asked for, {len(rows)} are there")
    check(len(set(genomes)) == TRAININGS, f"{len(set(genomes))} genomes in place of {TRAININGS}: {sorted(set(genomes))}")
    check(last_new < TRAININGS + 2, f"{last_new + 1} evaluations until all {TRAININGS} genomes were known: {genomes}")
    check(all(row["reused_from"] == 0 for row in rows), "a result was taken over")
    passed("a small space is searched without a needless repeat, and the search ends")

    folder.run(2, "evolve", "small.yaml", "--run", "runs/reuse", "--set", "search.duplicates=reuse", "--set",
               "search.budget.evaluations=13")
    rows = individuals(folder.path / "runs/reuse")
    trained = [row for row in rows.values() if row["reused_from"] == 0]
    reused = [row for row in rows.values() if row["reused_from"] != 0]
    check(len(trained) == 13, f"13 evaluations were asked for, {len(trained)} are there")
    check(len({genome(row) for row in trained}) == TRAININGS, "not every genome was trained")
    check(len(reused) >= 99, f"{len(reused)} results were taken over")
    for row in reused:
        twin = rows[row["reused_from"]]
        check(genome(row) == genome(twin) and row["loss"] == twin["loss"] and twin["reused_from"] == 0,
              f"{text(row['id'])} has not the result of {text(twin['id'])}")
    passed("a known result takes none of the budget")

    shown = folder.run(0, "show", "runs/reuse", "--top", "1000")
    check(f"13 of 13 evaluations, {len(reused)} reused, 0 unfinished" in shown, shown[:500])
    check("13 of 13 evaluations" in folder.run(0, "status", "runs/reuse"), "finch status counts what was taken over")
    one = reused[0]
    check(f"as {text(one['reused_from'])}" in shown, "finch show does not say whose result an individual has")
    check(f",{text(one['reused_from'])}," in folder.run(0, "show", "runs/reuse", "--csv"), "finch show --csv neither")
    told = folder.run(1, "replay", "runs/reuse", text(one["id"]), expect=2)
    check(f"finch replay runs/reuse {text(one['reused_from'])}" in told, told)
    check("equal to the last bit" in folder.run(1, "replay", "runs/reuse", text(one["reused_from"])), "replay differs")
    passed("show says whose result it is, and replay which individual to train again")

    folder.run(1, "evolve", "small.yaml", "--run", "runs/reuse", "--set", "search.duplicates=reuse", "--set",
               "search.budget.evaluations=15")
    after = individuals(folder.path / "runs/reuse")
    check(sum(row["reused_from"] == 0 for row in after.values()) == 15, "a resumed run did not use its budget exactly")
    check(all(after[key].tobytes() == row.tobytes() for key, row in rows.items()), "a resume changed an individual")
    passed("a run with results that were taken over is resumed")
