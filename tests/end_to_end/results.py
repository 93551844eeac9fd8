"""Checks the reported results of a run: the best model after every kind of stop, consistent tables, and a separate run
for each `finch train` with other genes."""
import csv
import io
import os
import re
import shutil
import signal
import subprocess

import h5py

from harness import FINCH, TINY, Folder, check, end, end_of_short_form, environment, individuals, outcome_words, passed, ranks_of, wait_for

STOPPED = 75
# The run has so many trainings that the stop comes before its end. The run writes no periodic archive or snapshot: the
# stop writes all that exists.
LONG = (TINY.replace("evaluations: 12", "evaluations: 4000").replace("samples: 600", "samples: 3000").replace("epochs: 3,", "epochs: 20,")
        .replace("archive_seconds: 0.2, training_seconds: 0.5", "archive_seconds: 1000, training_seconds: 1000")
        .replace("ranks: 2, islands: 2", "ranks: 1, islands: 2"))
SPHERE = """
name: sphere
search:
  objective: {function: sphere}
  propagator: {genetic: {population: 8}}
  exchange: {kind: pollination, probability: 0.5}
  budget: {evaluations: 400}
workers: {islands: 2}
"""


def finished(folder):
    """Returns the number of result lines in the output of all runs; world rank 0 writes them."""
    return len(re.findall(r" I \d+\.\d+\.\d+: ", folder.output())) if (folder.path / "output").exists() else 0


def best_of(run):
    """Returns the id of the best individual: the smallest loss, then the smallest id."""
    words = outcome_words(run)
    return min((row["loss"], row["id"]) for row in individuals(run).values() if words[row["outcome"]] == "evaluated")[1]


def published(run):
    with h5py.File(run / "models/best.h5", "r") as file:
        restart, worker, sequence = (int(part) for part in file.attrs["id"].split("."))
        return restart << 52 | worker << 32 | sequence, "test" in file


def check_snapshots(folder, name):
    """Checks that every interrupted training has a snapshot. Asks `finch show`, because the last result of a worker may
    be only in its journal."""
    rows = list(csv.DictReader(io.StringIO(folder.run(0, "show", f"runs/{name}", "--csv"))))
    unfinished = [row["id"] for row in rows if row["outcome"] == "unfinished"]
    check(unfinished, f"{name}: no training was broken off")
    for id in unfinished:
        check((folder.path / f"runs/{name}/state/training-{id}.h5").exists(), f"{name}: no snapshot of {id}\n{folder.output()}")


def check_commands(folder, name):
    """Checks that the next steps name the program as the shell finds it."""
    shutil.copy(FINCH, folder.path / "finch")
    for program, path, expected in ((FINCH, "/usr/bin", FINCH), ("./finch", "/usr/bin", "./finch"), ("finch", f"{folder.path}:/usr/bin", "finch")):
        shown = subprocess.run([program, "show", f"runs/{name}"], cwd=folder.path, env=dict(environment(), PATH=path), text=True,
                               stdout=subprocess.PIPE, check=True).stdout
        command = f"  resume it: mpirun -n 2 {expected} evolve runs/{name}/config.yaml --run runs/{name}\n"
        shown = re.sub("(mpirun -n 2)(?: --oversubscribe| --allow-run-as-root)+", r"\1", shown)  # depend on the machine and the user
        check(command in shown, f"{program}: the summary has no\n{command}\n{shown}")


def stopped_at_once(folder, name, stop):
    """Ends a run by `stop` during its trainings. Checks the files of the run, then resumes it."""
    run = folder.path / "runs" / name
    before = finished(folder)
    os.environ["FINCH_TEST_SNAPSHOT_DELAY"] = "1:3"  # delays snapshots of rank 1 by 3 s: rank 0 ends long before rank 1
    process = folder.start(2, "evolve", "long.yaml", "--run", f"runs/{name}")
    del os.environ["FINCH_TEST_SNAPSHOT_DELAY"]
    wait_for(lambda: finished(folder) >= before + 3 or process.poll() is not None, "three results")
    stop(process)
    end(process)
    output = folder.output()
    check_snapshots(folder, name)
    check((run / "models/best.h5").exists(), f"{name}: no models/best.h5\n{output}")
    check("stopped early, to be resumed" in output, f"{name}: no closing line\n{output}")
    check_commands(folder, name)
    with h5py.File(run / "population.h5", "r") as file:
        events = [str(row["text"]) for row in file["events"][:]]
    check(any("asked to stop at once" in text for text in events), f"{name}: no event of the stop: {events}")
    folder.run(0, "status", f"runs/{name}", expect=STOPPED)
    check(published(run)[0] == best_of(run), f"{name}: models/best.h5 is not the best of population.h5\n{output}")

    folder.run(2, "evolve", "long.yaml", "--run", f"runs/{name}", "--set", "search.budget.evaluations=12")
    check(published(run) == (best_of(run), True), f"{name}: models/best.h5 is not the best after the resume")
    passed(f"{name}: models/best.h5, a closing line and an event are there, and it is the best after the resume")


def term_all(process):
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGTERM)


with Folder() as folder:
    folder.write("tiny.yaml", TINY)
    folder.write("long.yaml", LONG)
    folder.write("sphere.yaml", SPHERE)

    stopped_at_once(folder, "TERM", term_all)
    output = folder.run(4, "evolve", "sphere.yaml")
    shown = folder.run(0, "show", "runs/sphere")
    check("island 0:" not in shown, f"under pollination there is one list of the best\n{shown}")
    tables = shown[shown.index("best of all:"):shown.index("\nworkers of")].strip()
    check(tables in output, f"finch show and the closing table differ:\n{tables}\n{output[-2000:]}")
    summary = (folder.path / "runs/sphere/summary.txt").read_text()
    check(summary.startswith("summary\n  - The best value is "), f"summary.txt: {summary}")
    look = re.search(r"\nnext\n(?:.*\n)*  look at it: (\S+) runs/sphere\n", summary)
    check(look and (folder.path / look[1]).exists(), f"no next steps, or a program that is not there: {summary}")
    check(output.endswith("\n" + summary), f"evolve does not end with the summary:\n{summary}\n{output[-2000:]}")
    check(shown.endswith("\n" + summary), f"finch show does not end with the summary:\n{summary}\n{shown[-2000:]}")
    rows = list(csv.DictReader(io.StringIO(folder.run(0, "show", "runs/sphere", "--csv"))))
    listed = re.findall(r"^ +(\d+\.\d+\.\d+)", tables, re.M)
    best = sorted((float(row["loss"]), row["id"]) for row in rows)[:3]
    check(set(listed) == {id for _, id in best}, f"--csv has {best}, the list {listed}")
    tables = folder.run(0, "show", "runs/sphere", "--islands")
    check(any(len(row["islands"].split()) > 1 for row in rows), "no copy has travelled: this shows nothing")
    for island in ("0", "1"):
        members = sorted((float(row["loss"]), row["id"]) for row in rows if island in row["islands"].split())
        part = tables[tables.index(f"island {island}:"):]
        top = re.findall(r"^ +(\d+\.\d+\.\d+)", part, re.M)[:3]
        check({id for _, id in members[:3]} == set(top), f"island {island}: --csv has {members[:3]}, the table {top}")
    passed("show, the closing table and --csv agree under pollination")

    with h5py.File(folder.path / "runs/sphere/population.h5", "r") as file:
        table = file["individuals"][:]
    check(all(table.dtype[name].shape == () for name in table.dtype.names), "a column of /individuals is no single value")
    try:
        import pandas
    except ImportError:
        print("skipped: pandas is not installed", flush=True)
    else:
        frame = pandas.DataFrame(table)
        check(len(frame) == 400 and (frame["parent_2"] > 0).any(), "pandas does not show the parents")
        passed("pandas.DataFrame takes /individuals as it is")

    wrong = folder.run(4, "evolve", "tiny.yaml", "--run", "runs/error", "--set", "search.objective=validation_error", "--set",
                       "search.budget.evaluations=4")
    check(re.search(r"\d: (new best )?error 0\.\d", wrong) and re.search(r"best error 0\.\d", wrong), f"no error is named\n{wrong}")
    check(" loss 0" not in re.sub(r"test loss 0", "", wrong), f"an error is called a loss\n{wrong}")
    check(re.search(r"^ +id +error ", wrong, re.M), f"the table does not name the error\n{wrong}")
    told = {what: folder.run(0, *what.split(), "runs/error") for what in ("status", "show", "show --json", "export --format json")}
    for what, text in told.items():
        check("error" in text and not re.search(r"\b(best|\d,) loss\b", text), f"{what} does not name the error\n{text}")
    check(re.search(r"best error 0\.\d+ \(", told["status"]), told["status"])
    check("minimises validation error (share of images)\n" in told["show"], told["show"])
    check("loss.measure" in folder.run(0, "export", "runs/error", "--format", "csv").splitlines()[0], "csv does not say what its losses are")
    check("minimises value of sphere\n" in shown and re.search(r"^ +id +value ", output, re.M), f"the value of a function is called otherwise\n{shown}")
    passed("log, tables, status and exports name the objective")
    end_of_short_form()

    # The seconds that mpirun waits after Ctrl-C before it sends TERM to its ranks, and then before KILL. The default is
    # 1 s.
    os.environ["OMPI_MCA_odls_base_sigkill_timeout"] = "12"
    (folder.path / "output").write_text("")
    stopped_at_once(folder, "Ctrl-C", lambda process: process.send_signal(signal.SIGINT))

    for what, code in (("status runs/error", 1), ("show runs/error", 1), ("export runs/error --format csv", 1), ("show nowhere", 2), ("nonsense", 2)):
        with open("/dev/full", "w") as full:
            done = subprocess.run([FINCH, *what.split()], cwd=folder.path, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True)
            muted = subprocess.run([FINCH, *what.split()], cwd=folder.path, env=environment(), stdout=subprocess.DEVNULL, stderr=full)
        check(done.returncode == code and done.stderr, f"{what} on a full disk: exit code {done.returncode}, {done.stderr}")
        check(muted.returncode == (0 if code == 1 else 2), f"{what} with standard error on a full disk: exit code {muted.returncode}")
    passed("an answer that a full disk cuts is a fault")

    genes = ["--gene", "layers=1", "--gene", "activation=tanh"]
    for rate in ("0.1", "0.5", "0.5"):
        folder.run(2, "train", "tiny.yaml", *genes, "--gene", f"lr={rate}")
    trained = {next(iter(individuals(run).values()))["lr"] for run in (folder.path / "runs").glob("tiny-train-*")}
    check(trained == {0.1, 0.5}, f"two trainings with other genes gave {trained}")
    run = next((folder.path / "runs").glob("tiny-train-*"))
    refused = folder.run(2, "train", "tiny.yaml", *genes, "--gene", "lr=0.25", "--run", run, expect=2)
    check("lr: 0." in refused and "→ 0.25" in refused and refused.count("finch: ") == 1, f"other genes: {refused}")
    passed("a training with other genes is another training")
