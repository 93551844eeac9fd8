"""Population-based training of programs: heirs continue copies of their parents' checkpoints, a kill changes no result, a
replay runs the whole ancestry to the same bits, and programs without checkpoints have no heirs."""
import contextlib
import hashlib
import io
import math
import os
import pathlib
import signal
import sys

from harness import (SOURCE, Folder, check, curves, end, end_of_short_form, individuals, kill, outcome_words, passed, ranks_of,
                     search_with_kills, wait_for, words_of)

PARENTS = 2
EPOCHS = 9
RUN = "runs/heirs"

# The state of a program is a chain of hashes, so a loss depends on each epoch of each ancestor. After an epoch the program destroys
# its checkpoint of the epoch before in place, which must not change Finch's copy. A program that resumes reports the epoch of its
# checkpoint again, because Finch may have been killed before it read this report.
PROGRAM = r"""
import hashlib, json, math, os, pathlib, sys, time

sys.stdin.readline()
kind = sys.argv[1]
lr, width, name = repr(float(os.environ["FINCH_GENE_lr"])), os.environ["FINCH_GENE_width"], os.environ["FINCH_ID"]
folder = pathlib.Path(os.environ["FINCH_CHECKPOINT_DIR"])

def report(epoch, loss):
    print(f"finch loss={loss!r} epoch={epoch}" + ("" if kind == "silent" else f" checkpoint=epoch-{epoch}"), flush=True)
    print("finch stop?", flush=True)
    if sys.stdin.readline().strip() == "stop":
        sys.exit()

state, epoch = "", 0
own = sorted(folder.glob("epoch-*"))
parent = os.environ.get("FINCH_PARENT_CHECKPOINT_DIR")
if own:
    state, epoch, loss = json.loads((own[-1] / "state.json").read_text())
    report(epoch, loss)
elif parent and kind == "failing":
    sys.exit(3)
elif parent and kind != "ignorant":
    state, epoch, _ = json.loads((pathlib.Path(parent) / "state.json").read_text())
    assert epoch == int(os.environ["FINCH_PARENT_EPOCH"]), epoch
while epoch < 9:
    epoch += 1
    state = hashlib.sha256(f"{state} {lr} {width} {name} {epoch}".encode()).hexdigest()
    loss = (abs(math.log(float(lr) / 0.1)) + 1 + int(state[:8], 16) / 2**34) / epoch
    time.sleep(0.01)
    (folder / "new").mkdir(exist_ok=True)
    (folder / "new/state.json").write_text(json.dumps([state, epoch, loss]))
    (folder / "new").rename(folder / f"epoch-{epoch}")
    for earlier in folder.glob(f"epoch-{epoch - 1}/state.json"):
        earlier.write_text("destroyed")
    report(epoch, loss)
"""

CONFIG = f"""
name: heirs
search:
  objective: {{command: '{sys.executable} program.py good', launch: leader, interactive: true, epochs: {EPOCHS}}}
  space:
    lr: {{real: [0.001, 1], scale: log}}
    width: {{int: [1, 100]}}
  propagator: random
  pruning: halving
  inherit: {{population: 4, parents: {PARENTS}, move: [lr]}}
  budget: {{evaluations: 20}}
workers: {{ranks: 2, islands: 1}}
checkpoint: {{archive_seconds: 0.2}}
"""


def name_of(number):
    number = int(number)
    return f"{number >> 52}.{(number >> 32) & 0xFFFFF}.{number & 0xFFFFFFFF}"


def start_of(number):
    return int(number) >> 52


def lineage(rows, row):
    """Returns the ancestors of `row`, oldest first, and `row`."""
    return (lineage(rows, rows[row["inherited_from"]]) if row["inherited_epochs"] else []) + [row]


def losses(rows, row):
    """Returns the losses of all epochs of `row`, computed from its ancestors' genes."""
    found, state, line = [], "", lineage(rows, row)
    for epoch in range(1, row["epochs"] + 1):
        one = next(one for one, heir in zip(line, [*line[1:], None]) if heir is None or epoch <= heir["inherited_epochs"])
        lr = float(one["lr"])
        state = hashlib.sha256(f"{state} {lr!r} {one['width']} {name_of(one['id'])} {epoch}".encode()).hexdigest()
        found.append((abs(math.log(lr / 0.1)) + 1 + int(state[:8], 16) / 2**34) / epoch)
    return found


def check_heirs(path):
    """Checks the heirs of a run, and returns its rows and heirs."""
    rows, curve, operators = individuals(path), curves(path), words_of(path, "operator")
    heirs = [row for row in rows.values() if row["inherited_epochs"]]
    for row in rows.values():
        check([epoch[3] for epoch in curve[row["id"]]] == losses(rows, row), f"the losses of {row}: {curve[row['id']]}, not {losses(rows, row)}")
    for row in heirs:
        parent = rows[row["inherited_from"]]
        check(row["parent_1"] == parent["id"] and operators[row["operator"]] == "perturbation", f"the parent of {row}")
        check(row["inherited_epochs"] in (1, 3) and row["epochs"] > row["inherited_epochs"], f"the epochs of {row}")
        check(row["width"] == parent["width"], f"another width than the parent's: {row}")
    kept = [one.name for one in (path / "state").glob("epoch-*")]
    check(kept and all(sum(one.startswith(f"epoch-{epoch}-") for one in kept) <= PARENTS for epoch in (1, 3)), f"the copies at rungs: {kept}")
    check(not list((path / "evaluations").glob("*/*")), "files of ended programs stay")
    return rows, heirs


def reported(checkpoint):
    """Returns the line that finch_objective.report() prints, or the name of its exception."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            finch_objective.report(loss=1, epoch=2, checkpoint=checkpoint)
        except ValueError as error:
            return type(error).__name__
    return said.getvalue()


sys.path.insert(0, str(SOURCE / "tools/python"))
import finch_objective  # noqa: E402

for good in ("epoch-2", "checkpoints/epoch-2", "checkpoints/epoch-2/", pathlib.Path("/tmp/checkpoints/epoch-2")):
    check(reported(good) == "finch loss=1.0 epoch=2 checkpoint=epoch-2\n", f"{good!r}: {reported(good)}")
for bad in ("", "/", ".", "my epoch", "epoch-2\n", pathlib.Path("a/my epoch")):
    check(reported(bad) == "ValueError", f"{bad!r}: {reported(bad)}")
passed("the Python module reports the name of a checkpoint's folder")

with Folder() as folder:
    path = folder.path / RUN
    folder.write("program.py", PROGRAM)
    folder.write("heirs.yaml", CONFIG)
    folder.run(2, "evolve", "heirs.yaml")
    rows, heirs = check_heirs(path)
    check(any(row["lr"] != rows[row["inherited_from"]]["lr"] for row in heirs), "no heir has another learning rate")
    passed(f"{len(heirs)} of {len(rows)} programs continue the checkpoint of their parent with its width")

    deepest = max(heirs, key=lambda row: (len(lineage(rows, row)), row["epochs"]))
    count = len(lineage(rows, deepest))
    again = folder.run(2, "replay", RUN, name_of(deepest["id"]))
    check(count >= 2 and "equal to the last bit" in again, f"a replay of {count} generations differs\n{again}")
    shown = folder.run(0, "show", RUN, name_of(deepest["id"]))
    check(f"from {name_of(deepest['inherited_from'])}, continues it after epoch {deepest['inherited_epochs']}" in shown
          and f"finch replay {RUN} {name_of(deepest['id'])}" in shown, f"show: {shown}")
    words = outcome_words(path)
    pruned = next(row for row in rows.values() if words[row["outcome"]] == "pruned")
    again = folder.run(2, "replay", RUN, name_of(pruned["id"]))
    check("equal to the last bit" in again, f"a replay of a pruned program differs\n{again}")
    folder.write("program.py", PROGRAM.replace("loss = (", "loss = (1e-12 + "))
    check("not equal" in folder.run(2, "replay", RUN, name_of(deepest["id"]), expect=1), "a replay of another program is equal")
    folder.write("program.py", PROGRAM)
    passed(f"a replay runs {count} generations of ancestors, and has the same bits")
    end_of_short_form()

    folder.write("program.py", PROGRAM.replace("time.sleep(0.01)", "time.sleep(1000)"))
    process = folder.start(2, "replay", RUN + "/", name_of(deepest["id"]))
    wait_for(lambda: list(path.parent.glob(".replay-*/evaluations/*/*")) or process.poll() is not None, "a program that is replayed")
    os.kill(ranks_of(process)[-1], signal.SIGTERM)
    process.wait()
    check("replay was stopped by a signal" in folder.output() and list(path.parent.iterdir()) == [path],
          f"after a signal: {list(path.parent.iterdir())}\n{folder.output()}")
    folder.write("program.py", PROGRAM)
    (folder.path / "output").unlink()
    passed("a replay that is stopped by a signal removes its temporary folder")

    search_with_kills(folder, "heirs.yaml", "killed")
    killed, _ = check_heirs(folder.path / "killed")
    words = outcome_words(folder.path / "killed")
    check(len(killed) == 20 and "unfinished" not in {words[row["outcome"]] for row in killed.values()}, f"{len(killed)} individuals after the kills")
    bits = ("width", "lr", "loss", "epochs", "inherited_from", "inherited_epochs")
    first_start = [key for key in killed if start_of(key) == 0]
    for key in first_start:
        check(all(killed[key][name] == rows[key][name] for name in bits), f"{killed[key]} was {rows[key]} without a kill")
    last = max((row for row in killed.values() if row["inherited_epochs"]), key=lambda row: row["id"])
    again = folder.run(2, "replay", "killed", name_of(last["id"]))
    check("equal to the last bit" in again, f"a replay after three kills differs\n{again}")
    passed(f"after three kills in heirs, the {len(first_start)} individuals of the first start are those of a run without kills")

    said = folder.run(2, "evolve", "heirs.yaml", "--run", "silent", "--set", f"search.objective.command='{sys.executable} program.py silent'")
    check(said.count("no heir can continue it after epoch 1: the report names no checkpoint") == 1, f"the warning\n{said}")
    check(not any(row["inherited_epochs"] for row in individuals(folder.path / "silent").values()), "an heir without a checkpoint")
    folder.run(2, "evolve", "heirs.yaml", "--run", "ignorant", "--set", f"search.objective.command='{sys.executable} program.py ignorant'")
    words, rows = outcome_words(folder.path / "ignorant"), individuals(folder.path / "ignorant")
    heirs = [row for row in rows.values() if row["inherited_epochs"]]
    check(heirs and {words[row["outcome"]] for row in heirs} == {"failed"}, f"heirs that begin at epoch 1: {heirs}")
    shown = folder.run(0, "show", "ignorant", name_of(heirs[0]["id"]))
    check("are those of its parent, whose checkpoint it must continue (FINCH_PARENT_CHECKPOINT_DIR)" in shown, shown)
    passed("a program without checkpoints has no heirs and a warning, and heirs that begin at epoch 1 fail")

    said = folder.run(1, "evolve", "heirs.yaml", "--run", "failing", "--set", f"search.objective.command='{sys.executable} program.py failing'",
                      "--set", "workers.ranks=1", "--set", "search.retries=1", "--set", "search.objective.keep=failed")
    words, rows = outcome_words(folder.path / "failing"), individuals(folder.path / "failing")
    heirs = [row for row in rows.values() if row["inherited_epochs"]]
    check(heirs and {words[row["outcome"]] for row in heirs} == {"failed"}, f"heirs that exit with 3: {heirs}")
    check(all(math.isnan(row["loss"]) for row in heirs), f"heirs without a report have the loss of their parent: {heirs}")
    again = [row for row in rows.values() if row["retry_of"]]
    check(again and all(row[name] == rows[row["retry_of"]][name] for row in again for name in ("lr", "width", "inherited_from", "inherited_epochs")),
          f"the retries {again}")
    check(not list((folder.path / "failing/evaluations").glob("*/*.parent*")), "checkpoints of parents stay beside the folders of failed heirs")
    passed("the retry of a failed heir continues the same checkpoint, and an heir without a report has no loss")

# A pruned program that ends slowly. After its resume it reports the epoch after the rung.
SLOW = r"""
import os, pathlib, signal, sys, time

resumes, number = "FINCH_RESUME" in os.environ, int(os.environ["FINCH_ID"].split(".")[2])

def end(*_):
    pathlib.Path(os.environ["FINCH_FOLDER"], "ending").touch()
    resumes and sys.exit()

signal.signal(signal.SIGTERM, end)
for epoch in range(2 if resumes else 1, 10):
    print(f"finch loss={number} epoch={epoch}", flush=True)
    time.sleep(1000 if number > 1 else 0.01)
"""

with Folder() as folder:
    folder.write("program.py", SLOW)
    for run in ("stopped", "killed"):
        folder.write("slow.yaml", CONFIG.replace("program.py good", "program.py").replace("interactive: true", "grace_seconds: 600")
                     .replace("evaluations: 20", "evaluations: 2").replace("ranks: 2", "ranks: 1"))
        process = folder.start(1, "evolve", "slow.yaml", "--run", run)
        wait_for(lambda: list((folder.path / run).glob("evaluations/*/*/ending")) or process.poll() is not None, "a program that is pruned")
        if run == "killed":
            kill(process)
            end(process)
        else:
            for pid in ranks_of(process):
                os.kill(pid, signal.SIGUSR2)
            check(end(process) == 75, f"a stop\n{folder.output()}")
        folder.run(1, "evolve", "slow.yaml", "--run", run)
        words = outcome_words(folder.path / run)
        found = [(words[row["outcome"]], row["rung"], row["epochs"]) for _, row in sorted(individuals(folder.path / run).items())]
        check(found[1] == ("pruned", 1, 2), f"a pruned program that was {run} before its end: {found}")
    passed("a stop or a kill while a pruned program ends does not cancel its pruning")
