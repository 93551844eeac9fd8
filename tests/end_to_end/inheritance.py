"""Population-based training on a worker of 2 ranks: heirs continue the snapshots of the best trainings at a rung, a kill
changes no result, and a replay trains the whole ancestry to the same bits."""
from harness import TINY, Folder, check, curves, individuals, outcome_words, passed, search_with_kills, words_of

PARENTS = 2
INHERIT = (TINY.replace("islands: 2", "islands: 1").replace("epochs: 3", "epochs: 9").replace("samples: 600", "samples: 400")
           .replace("archive_seconds: 0.2, training_seconds: 0.5", "archive_seconds: 0.2, training_seconds: 0.05")
           .replace("evaluations: 12", "evaluations: 20")
           .replace("  objective:", f"  pruning: halving\n  inherit: {{population: 4, parents: {PARENTS}}}\n  objective:"))
RUN = "runs/tiny"


def name_of(number):
    number = int(number)
    return f"{number >> 52}.{(number >> 32) & 0xFFFFF}.{number & 0xFFFFFFFF}"


def start_of(number):
    return int(number) >> 52


def generations(rows, row):
    return 1 + generations(rows, rows[row["inherited_from"]]) if row["inherited_epochs"] else 0


def check_heirs(path):
    """Checks the heirs of a run, and returns its rows and heirs."""
    rows, curve, operators = individuals(path), curves(path), words_of(path, "operator")
    heirs = [row for row in rows.values() if row["inherited_epochs"]]
    for row in heirs:
        parent, epochs = rows[row["inherited_from"]], row["inherited_epochs"]
        check(row["parent_1"] == parent["id"] and operators[row["operator"]] == "perturbation", f"the parent of {row}")
        check(epochs in (1, 3) and curve[row["id"]][:epochs] == curve[parent["id"]][:epochs], f"the first epochs of {row}")
        check(curve[row["id"]][epochs] != curve[parent["id"]][epochs], f"the epoch after the rung of {row}")
        check(row["layers"] == parent["layers"], f"other layers than the parent's: {row}")
        check(len(curve[row["id"]]) == row["epochs"] > epochs, f"the epochs of {row}")
    kept = list((path / "state").glob("epoch-*.h5"))
    check(kept and all(sum(one.name.startswith(f"epoch-{epoch}-") for one in kept) <= PARENTS for epoch in (1, 3)),
          f"the snapshots at rungs: {kept}")
    return rows, heirs


with Folder() as folder:
    path = folder.path / RUN
    folder.write("tiny.yaml", INHERIT)
    folder.run(2, "evolve", "tiny.yaml")
    rows, heirs = check_heirs(path)
    check(any(row["lr"] != rows[row["inherited_from"]]["lr"] for row in heirs), "no heir has another learning rate")
    passed(f"{len(heirs)} of {len(rows)} individuals continue the curve of their parent with its layers")

    own = sum(int(row["epochs"]) - int(row["inherited_epochs"]) for row in rows.values())
    more = folder.run(2, "evolve", "tiny.yaml", "--set", f"search.budget={{epochs: {own + 25}}}")
    now, heirs = check_heirs(path)
    used = sum(int(row["epochs"]) - int(row["inherited_epochs"]) for row in now.values())
    check(own + 25 <= used < own + 25 + 9, f"{used} epochs of a budget of {own + 25}")
    counted = f"{used} epochs (budget {own + 25})" if used > own + 25 else f"{used} of {own + 25} epochs"
    check(counted in folder.run(0, "status", RUN), "status counts other epochs")
    check(any(start_of(row["id"]) == 1 and start_of(row["inherited_from"]) == 0 for row in heirs), f"no heir of an earlier start\n{more}")
    passed("a budget of epochs counts those after the rung, and a later start continues trainings of the first")

    deepest = max(heirs, key=lambda row: (generations(now, row), row["epochs"]))
    count = generations(now, deepest)
    again = folder.run(2, "replay", RUN, name_of(deepest["id"]))
    check(count >= 2 and "equal to the last bit" in again, f"a replay of {count} generations differs\n{again}")
    shown = folder.run(0, "show", RUN, name_of(deepest["id"]))
    parent = name_of(deepest["inherited_from"])
    check(f"from {parent}, continues it after epoch {deepest['inherited_epochs']}" in shown, f"show: {shown}")
    passed(f"a replay trains {count} generations of ancestors, and has the same bits")

    search_with_kills(folder, "tiny.yaml", "killed")
    killed, _ = check_heirs(folder.path / "killed")
    words = outcome_words(folder.path / "killed")
    check(len(killed) == 20 and "unfinished" not in {words[row["outcome"]] for row in killed.values()},
          f"{len(killed)} individuals after the kills")
    bits = ("layers", "lr", "loss", "epochs", "inherited_from", "inherited_epochs")
    first_start = [key for key in killed if start_of(key) == 0]
    for key in first_start:
        check(all(killed[key][name] == rows[key][name] for name in bits), f"{killed[key]} was {rows[key]} without a kill")
    last = max((row for row in killed.values() if row["inherited_epochs"]), key=lambda row: row["id"])
    again = folder.run(2, "replay", "killed", name_of(last["id"]))
    check("equal to the last bit" in again, f"a replay after three kills differs\n{again}")
    passed(f"after three kills in heirs, the {len(first_start)} individuals of the first start are those of a run "
           "without kills")

    refused = folder.run(1, "plan", "tiny.yaml", "--set", "search.pruning=none", expect=2)
    check("search.inherit: replaces trainings that end at a rung" in refused, f"without rungs: {refused}")
