"""Checks runs that reuse results of an earlier run: of a function and of networks, on 1 and 4 ranks, also after a
stop."""
import os
import shutil
import signal

import h5py

from harness import Folder, check, end, end_of_short_form, individuals, outcome_words, passed, ranks_of, wait_for

FUNCTION = """
name: function
seed: 5
search:
  objective: {function: rastrigin, dimensions: 3}
  propagator: {genetic: {population: 6}}
  budget: {evaluations: 30}
workers: {islands: 1}
"""
NETWORKS = """
name: networks
seed: 5
data: {kind: generated, samples: 300, size: 8, validation_samples: 100}
model:
  - conv: {channels: $channels, kernel: 3, activation: $activation}
  - flatten
  - linear
training: {epochs: 300, batch_size: 50, optimizer: sgd, learning_rate: 0.1}
search:
  space:
    channels: {int: [1, 6]}
    activation: {choice: [relu, sigmoid, tanh]}
  propagator: {genetic: {population: 4}}
  budget: {evaluations: 12}
  duplicates: reuse
workers: {islands: 1}
checkpoint: {archive_seconds: 0.1}
"""
# The space is wider in `channels` and narrower in `activation`.
NARROWED = NETWORKS.replace("[relu, sigmoid, tanh]", "[tanh]").replace("[1, 6]", "[1, 9]").replace("networks", "narrowed")


def genes(row, names):
    return tuple(row[name].item() for name in names)


def run_number(run):
    with h5py.File(run / "population.h5") as file:
        return int(file.attrs["run"])


def has_reused(run):
    """True if the archive has a result of another run. Returns False if the file cannot be read because Finch is
    replacing it."""
    try:
        return any(row["reused_run"] != 0 for row in individuals(run).values())
    except OSError:
        return False


def check_reused(run, earlier, names, budget, activation=None):
    """Checks and returns the rows that `run` reused from `earlier`: their losses must be bitwise equal."""
    rows, before = individuals(run), individuals(earlier)
    words = outcome_words(run)
    trained = [row for row in rows.values() if row["reused_from"] == 0]
    others = [row for row in rows.values() if row["reused_run"] != 0]
    check(len(trained) == budget, f"{run}: {budget} evaluations were asked for, {len(trained)} are there")
    check(others, f"{run}: nothing was taken over")
    for row in others:
        origin = before[row["reused_from"]]
        check(row["reused_run"] == run_number(earlier), f"{run}: a result is of the run {row['reused_run']}")
        check(genes(row, names) == genes(origin, names), f"{run}: {row['id']} has other genes than {origin['id']}")
        check(activation is None or origin["activation"] == activation, f"{run}: another activation")
        check(row["loss"].tobytes() == origin["loss"].tobytes() and words[row["outcome"]] == "evaluated",
              f"{run}: {row['id']} has another loss than {origin['id']}")
        check(row["started"] == 0 and row["training_seconds"] == 0 and row["joules"] == 0, f"{run}: {row['id']} was trained")
    with h5py.File(run / "population.h5") as file:
        where = {int(row["run"]): row["directory"].decode() for row in file["reused_runs"][:]}
    check(where == {run_number(earlier): str(earlier.resolve())}, f"{run}: /reused_runs is {where}")
    return others


with Folder() as folder:
    runs = folder.path / "runs"
    folder.write("function.yaml", FUNCTION)
    folder.write("networks.yaml", NETWORKS)
    folder.write("narrowed.yaml", NARROWED)
    for ranks in 1, 4:
        names = ["x0", "x1", "x2"]
        earlier, later = runs / f"function-{ranks}", runs / f"function-{ranks}-later"
        folder.run(ranks, "evolve", "function.yaml", "--run", earlier)
        folder.run(ranks, "evolve", "function.yaml", "--run", later, "--reuse", earlier)
        check_reused(later, earlier, names, 30)
        before = individuals(later)
        shutil.rmtree(earlier)
        told = folder.run(ranks, "evolve", "function.yaml", "--run", later, "--reuse", earlier, "--set",
                          "search.budget.evaluations=40")
        check("there is no run here" in told and "what was taken over from it stays" in told, told)
        after = individuals(later)
        check(all(after[key].tobytes() == row.tobytes() for key, row in before.items()), "a resume changed an individual")
        check(sum(row["reused_from"] == 0 for row in after.values()) == 40, "a resumed run did not use its budget exactly")
        passed(f"{ranks} ranks: a function's results are taken over, and stay when the earlier run is gone")
        end_of_short_form()

        earlier, later = runs / f"networks-{ranks}", runs / f"networks-{ranks}-later"
        folder.run(ranks, "evolve", "networks.yaml", "--run", earlier)
        process = folder.start(ranks, "evolve", "narrowed.yaml", "--run", later, "--reuse", earlier)
        wait_for(lambda: has_reused(later) or process.poll() is not None, "a result that is taken over")
        for pid in ranks_of(process):
            os.kill(pid, signal.SIGUSR2)
        stopped = end(process)
        check(stopped in (0, 75), f"exit code {stopped}\n{folder.output()}")
        before = individuals(later)
        check(has_reused(later), folder.output())
        folder.run(ranks, "evolve", "narrowed.yaml", "--run", later, "--reuse", earlier)
        after = individuals(later)
        check(all(after[key].tobytes() == row.tobytes() for key, row in before.items() if row["reused_run"] != 0),
              "a resume changed what was taken over")
        others = check_reused(later, earlier, ["channels"], 12, activation=2)
        known = {genes(row, ["channels"]) for row in individuals(earlier).values() if row["activation"] == 2}
        check({genes(row, ["channels"]) for row in others} == known, "not all that fits was taken over")
        trained = {genes(row, ["channels"]) for row in after.values() if row["reused_from"] == 0}
        check(len(trained | known) == 9, "not all of the space is known")
        with h5py.File(later / "models/best.h5") as file:
            published = file.attrs["id"]
        trained = min((row for row in individuals(later).values() if row["reused_from"] == 0), key=lambda row: row["loss"])
        number = int(trained["id"])
        check(published == f"{number >> 52}.{(number >> 32) & 0xFFFFF}.{number & 0xFFFFFFFF}",
              f"models/best.h5 has {published}, not the best that was trained here, {number}")
        passed(f"{ranks} ranks: networks of a wider space take results over, stopped (exit code {stopped}) and resumed")

    best = min(individuals(runs / "networks-1").values(), key=lambda row: row["loss"])

    # If a run reuses all its results, its best individual has no weights in this run.
    same = runs / "same"
    told = folder.run(2, "evolve", "networks.yaml", "--run", same, "--reuse", runs / "networks-1", "--set",
                      f"search.budget={{target_loss: {best['loss'] * 1.0000001}}}")
    rows = individuals(same)
    if not any(row["reused_from"] == 0 and row["loss"] == row["loss"] for row in rows.values()):
        check("there is no models/best.h5" in told and not (same / "models/best.h5").exists(), told)
    one = next(row for row in rows.values() if row["reused_run"] != 0)
    number = int(one["id"])
    name = f"{number >> 52}.{(number >> 32) & 0xFFFFF}.{number & 0xFFFFFFFF}"
    origin = int(one["reused_from"])
    text = f"{origin >> 52}.{(origin >> 32) & 0xFFFFF}.{origin & 0xFFFFFFFF}"
    check(f"not trained: this is the result of {text} of {runs / 'networks-1'}" in folder.run(0, "show", same, name), "show")
    check(f",{int(one['reused_run'])}," in folder.run(0, "show", same, "--csv"), "finch show --csv does not say the run")
    told = folder.run(1, "replay", same, name, expect=2)
    check(f"finch replay {runs / 'networks-1'} {text}" in told, told)
    check("equal to the last bit" in folder.run(1, "replay", runs / "networks-1", text), "the replay there differs")
    passed("show and replay say whose result it is, in which run")

    # A final choice trains the best individuals again, so their weights exist.
    final = runs / "final"
    told = folder.run(2, "evolve", "networks.yaml", "--run", final, "--reuse", runs / "networks-1", "--set",
                      "search.budget.evaluations=3", "--set", "search.final={candidates: 1, repeats: 1}")
    with h5py.File(final / "models/best.h5") as file:
        check(file.attrs["operator"] == "repeat" and file.attrs["reused_from"] == "", dict(file.attrs))
    check("has the result of" not in told, told)
    passed("a final choice trains the best again, whoever's result it has")

    for setting, expected in [("seed=6", "other data"), ("data.samples=301", "other data"),
                              ("training.epochs=3", "training.epochs: 300 → 3"),
                              ("search.objective=validation_error", "objective: validation_loss → validation_error"),
                              ("search.space.channels={int: [20, 30]}", "has genes of this space")]:
        new = runs / "refused"
        told = folder.run(2, "evolve", "networks.yaml", "--run", new, "--reuse", runs / "networks-1", "--set", setting, expect=2)
        check(f"search.reuse: {runs / 'networks-1'}: " in told and expected in told, told)
        check(not new.exists(), "a refused run left a directory")
        told = folder.run(0, "plan", "networks.yaml", "--nodes", 1, "--reuse", runs / "networks-1", "--set", setting, expect=2)
        check(expected in told, told)
    damaged = runs / "damaged"
    shutil.copytree(runs / "networks-1", damaged)
    for path in damaged.glob("population.h5*"):
        path.write_bytes(path.read_bytes()[:3000])
    for run, expected in [("runs/nowhere", "there is no run here"), (damaged, "its archive cannot be read")]:
        told = folder.run(1, "evolve", "networks.yaml", "--run", runs / "refused", "--reuse", runs / "networks-1",
                          "--reuse", run, expect=2)
        check(f"search.reuse: {run}: " in told and expected in told, told)
    told = folder.run(1, "evolve", "networks.yaml", "--run", runs / "networks-1", "--reuse", runs / "networks-1", expect=2)
    check("this is the run itself" in told, told)
    with h5py.File(runs / "networks-1" / "population.h5") as file:
        old = file.attrs["program_version"]
    passed(f"archives that do not fit are refused, each with what differs (Finch {old.decode() if isinstance(old, bytes) else old})")
