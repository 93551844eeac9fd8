"""Shows, resumes and replays a run directory of each earlier format."""
import csv
import io
import pathlib
import shutil
import subprocess
import sys

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "end_to_end"))
from harness import Folder, check, environment, individuals, outcome_words, passed  # noqa: E402

TOLERANCE = 1e-4  # relative difference of losses: instruction sets round differently
INTERRUPTED = 76


def rows(text):
    return {row["id"]: row for row in csv.DictReader(io.StringIO(text))}


def replayed_losses(text):
    """Returns (recorded loss, replayed loss) per epoch, from the table that finch replay prints."""
    lines = [line.split() for line in text.splitlines()]
    return [(float(line[1]), float(line[2])) for line in lines if len(line) >= 4 and line[0].isdigit() and "." in line[1]]


def examine(name, source, folder):
    shutil.copytree(source, folder.path / name)
    run = folder.path / name / "run"

    before = rows((source / "show.csv").read_text())
    now = rows(folder.run(0, "show", run, "--csv"))
    check(set(before) <= set(now), f"{name}: individuals are missing: {set(before) - set(now)}")
    finished = [id for id, row in before.items() if row["outcome"] != "unfinished"]
    for id in finished:
        both = set(before[id]) & set(now[id])
        different = {column: (before[id][column], now[id][column]) for column in both if before[id][column] != now[id][column]}
        check(not different, f"{name}: {id} reads otherwise now: {different}")
    check("best of all" in folder.run(0, "show", run), f"{name}: finch show does not read it")
    folder.run(0, "status", run, expect=INTERRUPTED)
    check("macro F1" in folder.run(2, "test", run), f"{name}: finch test does not measure its best network")
    passed(f"{name}: {len(finished)} finished individuals read as they were recorded")

    unfinished = len(before) - len(finished)
    budget = len(before) + 1
    output = folder.run(2, "evolve", folder.path / name / "tiny.yaml", "--run", run, "--set", f"search.budget.evaluations={budget}")
    check("begins anew" not in output, f"{name}: a training did not go on from its snapshot\n{output}")
    check("resumes from its snapshot" in output, f"{name}: world rank 0 tells of no training that went on\n{output}")
    words = outcome_words(run)
    after = individuals(run)
    check(len(after) == budget and {words[row["outcome"]] for row in after.values()} == {"evaluated"},
          f"{name}: not {budget} evaluated individuals after the resume\n{output}")
    kept = rows(folder.run(0, "show", run, "--csv"))
    changed = {(id, column): (before[id][column], kept[id][column]) for id in finished
               for column in set(before[id]) & set(kept[id]) - {"islands"}  # the resumed search may change on which islands it is active
               if kept[id][column] != before[id][column]}
    check(not changed, f"{name}: the resume changed a finished individual: {changed}")
    with h5py.File(run / "models/best.h5", "r") as best:
        check(best["test/scores"].shape[0] == len(best["test/index"]), f"{name}: models/best.h5 has no table of predictions")
    passed(f"{name}: resumed to its end, {unfinished} trainings from their snapshots")

    one = next(id for id in finished if before[id]["outcome"] == "evaluated")
    replay = subprocess.run(folder.command(1, "replay", run, one), env=environment(), text=True, timeout=300,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    losses = replayed_losses(replay.stdout)
    check(len(losses) == int(before[one]["epochs"]), f"{name}: replay of {one} has {len(losses)} epochs\n{replay.stdout}")
    apart = max(abs(now / recorded - 1) for recorded, now in losses)
    check(apart <= TOLERANCE, f"{name}: the replay of {one} is {apart} apart\n{replay.stdout}")
    check(replay.returncode == (0 if "\nequal to the last bit" in replay.stdout else 1), f"{name}: {replay.stdout}")
    passed(f"{name}: {one} was replayed, at most {apart:.1g} apart in a loss")


with Folder() as folder:
    sources = sorted(path.parent for path in pathlib.Path(__file__).resolve().parent.glob("*/show.csv"))
    check(sources, "there is no run directory")
    for source in sources:
        examine(source.name, source, folder)
