"""Searches with programs of random behaviour, and kills the whole run (SIGKILL). The programs report losses nan, inf or
none, end with exit codes or signals, stay silent, print very much, or are pruned at each rung. No result is lost or
changed, the budget is exact, and each result has an explanation. For a long manual test set FINCH_TEST_PROGRAMS=200
FINCH_TEST_KILLS=20."""
import collections
import csv
import io
import math
import os
import random
import signal
import subprocess
import time

from harness import Folder, check, end, environment, kill, passed, ranks_of, wait_for

PROGRAMS = int(os.environ.get("FINCH_TEST_PROGRAMS", "24"))
KILLS = int(os.environ.get("FINCH_TEST_KILLS", "3"))
dice = random.Random(int(os.environ.get("FINCH_TEST_SEED", "20")))

PROGRAM = r"""
import json, os, signal, sys, time
genes = json.loads(sys.stdin.readline())["genes"]
x, kind = genes["x"], genes["kind"]

def report(epoch, loss):
    print(f"finch loss={loss} epoch={epoch}", flush=True)

def curve(loss_after, pause=0.02):
    for epoch in range(1, 28):
        report(epoch, loss_after(epoch))
        time.sleep(pause)

curves = {"good": lambda epoch: x / epoch, "bad": lambda epoch: 100 + x, "flat_3": lambda epoch: 0.5, "flat_9": lambda epoch: 0.15,
          "nan_first": lambda epoch: "nan" if epoch == 1 else 100 + x, "nan_last": lambda epoch: "nan" if epoch == 27 else x / epoch,
          "nan": lambda epoch: "nan", "inf": lambda epoch: "inf", "minus_inf": lambda epoch: "-inf", "huge": lambda epoch: 1e308}
if kind in curves:
    curve(curves[kind], 0.005 if kind == "good" else 0.02)
elif kind == "exit":
    report(1, x)
    sys.exit("no more memory")
elif kind.startswith("SIG"):
    report(1, x)
    os.kill(os.getpid(), getattr(signal, kind))
    time.sleep(60)
elif kind == "silence":
    time.sleep(60)
elif kind == "flood":
    for _ in range(20000):
        print("a line of a hundred letters".ljust(100, "x"))
    print("y" * 1000000, end="", flush=True)
    print()
    report(27, x / 27)
elif kind == "bytes":
    sys.stdout.buffer.write(bytes(range(256)) * 50 + b"\n")
    sys.stderr.buffer.write(bytes(range(256)) * 50 + b"\n")
    report(27, x / 27)
elif kind == "unreadable":
    print("finch loss=abc", flush=True)
"""
TRAINS = {"evaluated", "pruned"}
# The possible outcomes of each kind of program, if it has enough time.
KINDS = {"good": TRAINS, "bad": TRAINS, "flat_3": TRAINS, "flat_9": TRAINS, "nan_first": TRAINS, "nan_last": {"diverged", "pruned"}, "nan": {"diverged", "pruned"},
         "inf": {"diverged", "pruned"}, "minus_inf": {"diverged", "pruned"}, "huge": TRAINS, "exit": {"failed", "pruned"}, "SIGKILL": {"failed", "pruned"}, "SIGSEGV": {"failed", "pruned"},
         "SIGTERM": {"failed", "pruned"}, "silence": {"failed"}, "flood": {"evaluated"}, "bytes": {"evaluated"}, "unreadable": {"failed"}, "none": {"failed"}}
TOO_LATE = ("did not end within", "died")  # possible on a busy machine, or after several kills

CONFIG = f"""
name: random
search:
  objective: {{command: "python3 program.py", epochs: 27, grace_seconds: 0.5, timeout_seconds: 6}}
  space:
    x: {{real: [0.6, 1]}}
    kind: {{choice: [{", ".join(KINDS)}]}}
  first: [{", ".join(f"{{kind: {kind}}}" for kind in KINDS)}]
  propagator: random
  pruning: {{median: {{first_epoch: 1, factor: 3, least: 3}}}}
  budget: {{evaluations: {PROGRAMS}}}
workers: {{ranks: 1, islands: 1, slots: 2}}
checkpoint: {{archive_seconds: 0.2}}
"""


def shown(run):
    """Returns {id: row} of the individuals in archive and journals, from `finch show --csv`."""
    out = subprocess.run(folder.command(0, "show", str(run), "--csv"), cwd=folder.path, env=environment(), text=True, errors="replace",
                         stdout=subprocess.PIPE, check=True).stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    by_id = {row["id"]: row for row in rows}
    check(len(by_id) == len(rows), "an id stands twice")
    return by_id


def finished(run):
    return {name: (row["outcome"], row["loss"], row["epochs"], row["problem"]) for name, row in shown(run).items() if row["outcome"] != "unfinished"}


def journaled(run):
    return sum(path.stat().st_size for path in (run / "state").glob("*.journal"))


def explanation(row):
    """Returns the reason of the individual's outcome in one line."""
    if row["problem"]:
        return row["problem"].splitlines()[0]
    if row["outcome"] == "pruned":
        return f"loss {row['loss']} at rung {row['rung']}, where {row['pruning_threshold']} was allowed"
    return f"loss {row['loss']}" if row["outcome"] == "evaluated" else ""


with Folder() as folder:
    folder.write("program.py", PROGRAM)
    folder.write("random.yaml", CONFIG)
    run = folder.path / "run"
    known = {}
    kills = 0
    while kills < KILLS:
        process = folder.start(2, "evolve", "random.yaml", "--run", "run")
        wait_for(lambda: len(ranks_of(process)) == 2 or process.poll() is not None, "two ranks")
        begun = journaled(run) if run.exists() else 0
        wait_for(lambda: process.poll() is not None or journaled(run) not in (0, begun), "a record")
        time.sleep(dice.uniform(0, 3))
        if process.poll() is not None:
            check(process.returncode == 0, f"finch ended with {process.returncode}\n{folder.output()[-3000:]}")
            break  # the run was complete before this kill
        kill(process)
        end(process)
        kills += 1
        now = finished(run)
        for name, value in known.items():
            check(now.get(name) == value, f"kill {kills}: {name} was {value}, is {now.get(name)}")
        known = now
    check(kills > 0, "all was done before the first kill")
    last = folder.run(2, "evolve", "random.yaml", "--run", "run")
    check("skipped" not in last + folder.output(), f"records are skipped\n{last}\n{folder.output()}")
    rows, final = shown(run), finished(run)
    for name, value in known.items():
        check(final.get(name) == value, f"at the end {name} was {value}, is {final.get(name)}")
    check(len(rows) == len(final) == PROGRAMS, f"{len(final)} of {len(rows)} have ended, the budget is {PROGRAMS}")
    outcomes = collections.Counter(row["outcome"] for row in rows.values())
    passed(f"{kills} kills of all, {len(known)} results known before the last start, {PROGRAMS} at the end, none lost or changed: {dict(outcomes)}")

    reasons = collections.Counter()
    for name, row in rows.items():
        reason = explanation(row)
        check(reason, f"{name}, {row['kind']}, is {row['outcome']} without an explanation")
        has_loss = math.isfinite(float(row["loss"]))
        check(has_loss or row["outcome"] != "evaluated", f"{name} is evaluated with the loss {row['loss']}")
        check(has_loss or row["problem"], f"{name} is {row['outcome']} with the loss {row['loss']} and without a reason")
        too_late = row["outcome"] == "failed" and any(words in reason for words in TOO_LATE)
        check(row["outcome"] in KINDS[row["kind"]] or too_late, f"{name}, {row['kind']}, is {row['outcome']}: {reason}")
        reasons[row["kind"], row["outcome"], row["problem"] and reason] += 1
    rungs = {row["rung"] for row in rows.values() if row["outcome"] == "pruned"}
    check(PROGRAMS < 200 or rungs == {"1", "2", "3"}, f"pruned at the rungs {rungs}")
    for (kind, outcome, reason), count in sorted(reasons.items()):
        print(f"  {count} x {kind}: {outcome} {reason}", flush=True)
    passed("each of them has an outcome that its program explains, and an explanation in one line")
