"""Checks `finch export`, tools/export.py and `finch show` of a real run: their output must agree with population.h5. If
Optuna is installed, it reads the exported journal. Chromium cannot check a trace file here, so the
test checks the rules of the format itself."""
import csv
import io
import json
import subprocess
import sys
import warnings
import xml.etree.ElementTree

import networkx

from harness import SOURCE, TINY, Folder, check, individuals, outcome_words, passed, wait_for

PRUNED = ["--set", "search.pruning=halving", "--set", "training.epochs=4", "--set", "workers.ranks=1", "--set", "search.budget.evaluations=24"]
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


def id_text(number):
    number = int(number)
    return f"{number >> 52}.{number >> 32 & 0xFFFFF}.{number & 0xFFFFFFFF}"


def export(run, kind, output, expect=0):
    """Runs tools/export.py; returns the text of the file, or its one error line if `expect` is not 0."""
    ended = subprocess.run([sys.executable, SOURCE / "tools/export.py", run, "--format", kind, "-o", output], capture_output=True, text=True, check=False)
    check(ended.returncode == expect, f"export.py --format {kind}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    check(expect == 0 or ended.stderr.count("\n") == 1, f"not one line: {ended.stderr}")
    return output.read_text() if expect == 0 else ended.stderr


def check_trace(text, rows):
    """Checks that slices of a lane nest or do not overlap, that none begins before the run, and that each evaluation
    has one."""
    events = json.loads(text)["traceEvents"]
    lanes = {}
    for event in events:
        check(event["ph"] in "MXi" and isinstance(event["pid"], int), f"trace: {event}")
        if event["ph"] == "X":
            check(event["ts"] >= 0 and event["dur"] >= 0, f"trace: {event}")
            lanes.setdefault((event["pid"], event["tid"]), []).append((event["ts"], -event["dur"], event["cat"]))
    for lane, slices in lanes.items():
        open_ends = []
        for begin, length, category in sorted(slices):
            while open_ends and open_ends[-1] <= begin + 1:  # tolerance 1 microsecond: sums of seconds are rounded
                open_ends.pop()
            check(not open_ends or begin - length <= open_ends[-1] + 1, f"trace: slices of lane {lane} cross at {begin}")
            check(not open_ends or category == "epoch", f"trace: a slice of {category} within another")
            open_ends.append(begin - length)
    names = {event["name"] for event in events if event["ph"] == "X"}
    check({id_text(number) for number in rows} <= names, "trace: an evaluation has no slice")


def check_graphml(text, rows):
    graph = xml.etree.ElementTree.fromstring(text).find(f"{GRAPHML}graph")
    nodes = {node.get("id") for node in graph.iter(f"{GRAPHML}node")}
    check(nodes == {id_text(number) for number in rows}, "graphml: the nodes are not the individuals")
    edges = sorted((edge.get("source"), edge.get("target")) for edge in graph.iter(f"{GRAPHML}edge"))
    expected = sorted((id_text(row[parent]), id_text(row["id"])) for row in rows.values() for parent in ("parent_1", "parent_2") if row[parent])
    check(edges == expected and edges, f"graphml: edges {edges}, expected {expected}")
    read = networkx.read_graphml(io.StringIO(text), force_multigraph=True)
    check(read.number_of_nodes() == len(rows) and networkx.is_directed_acyclic_graph(read), "networkx reads something else")
    losses = {id_text(row["id"]): row["loss"] for row in rows.values()}
    check(all(loss == losses[name] for name, loss in read.nodes(data="loss")), "graphml: another loss")


def load_study(run, output, name):
    """Exports the run to Optuna and loads the study. Returns None if Optuna is not installed. A warning of Optuna is an
    error: Optuna warns if it changes a value that it reads."""
    try:
        import optuna
    except ModuleNotFoundError:
        print("Optuna is not installed: its export is not tested here")
        check("pip install optuna" in export(run, "optuna", output, expect=1), "a missing package is not named")
        return None
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    export(run, "optuna", output)
    warnings.simplefilter("error", UserWarning)
    return optuna.load_study(study_name=name, storage=JournalStorage(JournalFileBackend(str(output))))


def check_optuna(run, output, rows, words):
    study = load_study(run, output, "tiny")
    if study is None:
        return
    best = min((row for row in rows.values() if words[row["outcome"]] == "evaluated"), key=lambda row: row["loss"])
    check(study.best_value == best["loss"] and study.best_trial.user_attrs["id"] == id_text(best["id"]), "Optuna's best trial is another")
    check(study.best_params["lr"] == best["lr"] and study.best_params["layers"] == best["layers"], "Optuna reads other genes")
    states = [trial.state.name for trial in study.trials]
    check(states.count("PRUNED") == sum(words[row["outcome"]] == "pruned" for row in rows.values()), f"Optuna: {states}")


def check_measures(folder):
    """Checks that the study has the minimised measure for each epoch, and parameters that an Optuna program can
    suggest."""
    genes = TINY.replace("layers: {int: [1, 3]}", "layers: {choice: [1, 3]}").replace("lr: {real: [0.1, 1.0], scale: log}", "lr: {real: [0.1, 1], step: 0.4}")
    folder.write("error.yaml", genes.replace("validation_loss", "validation_error").replace("name: tiny", "name: error"))
    folder.run(2, "evolve", "error.yaml", "--set", "search.budget.evaluations=6", "--set", "workers.ranks=1")
    study = load_study(folder.path / "runs/error", folder.path / "error.log", "error")
    if study is None:
        return
    check(study.metric_names == ["validation error (share of images)"], f"Optuna: the metric is called {study.metric_names}")
    for trial in study.trials:
        check(trial.value == min(trial.intermediate_values.values()), f"Optuna: {trial.value} of the epochs {trial.intermediate_values}")
        check(trial.params["layers"] in (1, 3) and trial.params["lr"] in (0.1, 0.5, 0.9), f"Optuna: {trial.params}")
    again = study.ask()
    again.suggest_categorical("layers", [1, 3])
    again.suggest_float("lr", 0.1, 0.9, step=0.4)
    study.tell(again, 0.5)
    passed("Optuna reads the measure, and can continue the study")


def main():
    with Folder() as folder:
        check_measures(folder)
        folder.write("tiny.yaml", TINY)
        folder.run(4, "evolve", "tiny.yaml", *PRUNED)
        run = folder.path / "runs" / "tiny"
        rows, words = individuals(run), outcome_words(run)

        def exported(what):
            return folder.run(0, "export", run, "--format", what)

        table = list(csv.DictReader(io.StringIO(exported("csv"))))
        check({row["id"] for row in table} == {id_text(number) for number in rows}, "csv: the rows are not the individuals")
        check(exported("csv") == folder.run(0, "show", run, "--csv"), "csv: export and show differ")
        read = json.loads(exported("json"))["individuals"]
        check({one["id"]: one["loss"] for one in read} == {id_text(row["id"]): row["loss"] for row in rows.values()}, "json: the losses are not the archive's")
        check(all(len(one["curve"]) == one["epochs"] for one in read), "json: an individual lacks a part of its curve")
        folder.run(0, "export", run, "--format", "json", "-o", "run.json")
        check((folder.path / "run.json").read_text() == exported("json"), "json: file and standard output differ")
        check_trace(export(run, "trace", folder.path / "run.trace"), rows)
        check_graphml(export(run, "graphml", folder.path / "run.graphml"), rows)
        check_optuna(run, folder.path / "study.log", rows, words)
        passed("csv, json, trace, graphml and optuna hold what the archive does")

        other = folder.start(4, "evolve", "tiny.yaml", "--set", "name=other", "--set", "search.budget.evaluations=16")
        archive = folder.path / "runs" / "other" / "population.h5"
        wait_for(lambda: archive.exists() or other.poll() is not None, "no archive")
        followed = folder.run(0, "show", "runs/other", "--follow").splitlines()
        other.wait()
        check("complete: runs/other, 16 of 16 evaluations" in followed[-1], f"--follow ends with {followed}")
        read = json.loads(folder.run(0, "show", "runs/tiny", "--json"))
        check(read["state"] == "complete" and read["evaluations"] == 24, f"--json: {read}")
        passed("show follows a run to its end, and prints JSON")

        check("accepted: csv, json" in folder.run(0, "export", run, "--format", "xls", expect=2), "a format that is not there")
        check("there is no run here" in folder.run(0, "export", folder.path, "--format", "csv", expect=2), "a folder without a run")
        check("cannot be written: No such file or directory" in folder.run(0, "export", run, "--format", "csv", "-o", "nowhere/x.csv", expect=2), "no place to write to")
        check("expected the directory of a run" in export(folder.path, "trace", folder.path / "x", expect=1), "export.py: a folder without a run")
        check("cannot be written" in export(run, "trace", folder.path / "nowhere/x", expect=1), "export.py: no place to write to")
        passed("what cannot be exported is said in one line")


if __name__ == "__main__":
    sys.exit(main())
