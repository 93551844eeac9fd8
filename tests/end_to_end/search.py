"""Runs a whole search on 4 ranks = 2 islands x 1 worker x 2 ranks. Checks files, verbs, a new start of a finished run,
and other layouts."""
import subprocess

from harness import TINY, Folder, check, environment, individuals, outcome_words, passed

OTHER_BATCHES = "training.batch_size_per_rank with other ranks"


def dump(folder, *arguments):
    return subprocess.run(["h5dump", *arguments, "runs/tiny/population.h5"], cwd=folder.path, env=environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


with Folder() as folder:
    folder.write("tiny.yaml", TINY)

    output = folder.run(4, "evolve", "tiny.yaml")
    rows = individuals(folder.path / "runs/tiny")
    words = outcome_words(folder.path / "runs/tiny")
    check(len(rows) == 12, f"12 individuals were asked for, {len(rows)} are there\n{output}")
    check({words[row["outcome"]] for row in rows.values()} == {"evaluated"}, "not all individuals were evaluated")
    check({row["island"] for row in rows.values()} == {0, 1}, "an island bred nothing")
    check(all(row["ranks"] == 2 for row in rows.values()), "a worker did not have 2 ranks")
    passed("a search uses its budget exactly on both islands")

    text = dump(folder, "-d", "/individuals")
    for word in ("layers", "activation", "lr", "relu", "evaluated"):
        check(word in text, f"h5dump -d /individuals does not print '{word}'\n{text[:2000]}")
    for name in ("/curves", "/workers", "/events", "/memberships"):
        check("DATASET" in dump(folder, "-d", name), f"h5dump finds no {name}")
    check((folder.path / "runs/tiny/models/best.h5").exists(), "there is no models/best.h5")
    check((folder.path / "runs/tiny/config.yaml").exists(), "there is no config.yaml")
    check(all(journal.stat().st_size == 0 for journal in (folder.path / "runs/tiny/state").glob("*.journal")),
          "a journal is not empty after an orderly end")
    check(not list((folder.path / "runs/tiny/state").glob("training-*")), "a snapshot was left over")
    passed("h5dump shows gene names and choices, and the run directory is as documented")

    check("complete" in folder.run(0, "status", "runs/tiny"), "finch status does not say complete")
    shown = folder.run(0, "show", "runs/tiny", "--top", "2", "--islands")
    check("island 0" in shown.lower() and "island 1" in shown.lower(), f"finch show names no islands\n{shown}")
    check(len(folder.run(0, "show", "runs/tiny", "--csv").splitlines()) == 13, "finch show --csv has not 12 rows and a header")
    passed("status, show and show --csv read a finished run")

    before = {key: row.tobytes() for key, row in rows.items()}
    folder.run(4, "evolve", "tiny.yaml")
    after = {key: row.tobytes() for key, row in individuals(folder.path / "runs/tiny").items()}
    check(before == after, "starting a finished run again changed its individuals")
    passed("a finished run that is started again changes nothing")

    output = folder.run(3, "evolve", "tiny.yaml", "--set", "workers.ranks=1", "--set", "workers.islands=3", "--set",
                        "search.budget.evaluations=18", "--set", "search.exchange.kind=migration")
    check(OTHER_BATCHES not in output, f"the batch is the whole worker's, and still there is a warning\n{output}")
    rows = individuals(folder.path / "runs/tiny")
    check(len(rows) == 18, f"the larger budget of 18 was not used exactly: {len(rows)}")
    check(all(rows[key].tobytes() == value for key, value in before.items()), "a later start changed an earlier individual")
    passed("a run goes on with another number of ranks, workers and islands and a larger budget")

    folder.write("shares.yaml", TINY.replace("batch_size: 16", "batch_size_per_rank: 8").replace("epochs: 3", "epochs: 1")
                 .replace("islands: 2}", "islands: 1}"))
    for evaluations, ranks in ((2, 2), (4, 2), (6, 1)):
        output = folder.run(ranks, "evolve", "shares.yaml", "--run", "runs/shares", "--set", f"workers.ranks={ranks}", "--set",
                            f"search.budget.evaluations={evaluations}")
        check((OTHER_BATCHES in output) == (ranks == 1), f"{ranks} ranks, {evaluations} evaluations: the warning of other batches\n{output}")
    batches = sorted(row["batch_size"] for row in individuals(folder.path / "runs/shares").values())
    check(batches == [8] * 2 + [16] * 4, "the batches are not 8 samples per rank")
    passed("batch_size_per_rank on other ranks: the start says that losses are of another global batch")

    refused = folder.run(4, "evolve", "tiny.yaml", "--set", "training.batch_size=32", expect=2)
    check(refused.count("batch_size") >= 1 and refused.count("finch: ") == 1, f"a changed batch size: {refused}")
    passed("a changed training section is refused with the difference, once")

    best = min((row for row in rows.values()), key=lambda row: row["loss"])
    number = int(best["id"])
    name = f"{number >> 52}.{(number >> 32) & 0xFFFFF}.{number & 0xFFFFFFFF}"
    check("equal to the last bit" in folder.run(int(best["ranks"]), "replay", "runs/tiny", name), "replay differs")
    passed("the best individual can be replayed to the same bits")
    other = 3 - int(best["ranks"])
    said = folder.run(other, "replay", "runs/tiny", name, expect=1)
    check(f"{name} was begun by {best['ranks']} ranks, now by {other}: the last bits will differ" in said, f"no warning of other ranks: {said}")
    passed("a replay by another number of ranks says beforehand that the last bits will differ")

    trained = folder.run(2, "train", "tiny.yaml", "--gene", "layers=2", "--gene", "activation=tanh", "--gene", "lr=0.5")
    one = individuals(next((folder.path / "runs").glob("tiny-train-*")))
    check(len(one) == 1 and abs(next(iter(one.values()))["lr"] - 0.5) < 1e-12, f"finch train: {trained}")
    check("use its network" in trained and "continue it" not in trained, f"continued as a search: {trained}")
    passed("finch train trains one individual with the genes that it is given")

    folder.run(4, "evolve", "tiny.yaml", "--fresh", "--set", "search.budget.evaluations=4")
    check(len(individuals(folder.path / "runs/tiny")) == 4, "--fresh did not begin anew")
    check(len(individuals(folder.path / "runs/tiny.1")) == 18, "--fresh did not keep the old run")
    passed("--fresh begins anew and keeps the old run")

    table = folder.run(0, "status", "runs/tiny", "runs/none", "runs/tiny.1", expect=2)
    check([line.split()[:3] for line in table.splitlines()[1:4]] ==
          [["runs/tiny", "complete", "4/4"], ["runs/none", "unreadable", "-"], ["runs/tiny.1", "complete", "18/18"]] and
          "runs/none: there is no run here" in table, f"status of several runs: {table}")
    folder.run(0, "status", "runs/tiny", "runs/tiny.1", expect=0)
    folder.run(0, "status", "runs/tiny", "runs/tiny.1", "--progress", expect=2)
    passed("the status of several runs is a table, and its exit code that of the worst")
