"""Kills (SIGKILL) a random rank, mpirun or the whole job, at random times of one run. The layout changes between
starts. No recorded result is lost, repeated or changed, and no process remains. For a long manual test set
FINCH_TEST_KILLS=500."""
import os
import pathlib
import random
import signal
import subprocess
import time

from harness import IS_NIGHT, TINY, Folder, check, end, environment, individuals, outcome_words, passed, ranks_of, wait_for

KILLS = int(os.environ.get("FINCH_TEST_KILLS", "12" if IS_NIGHT else "3"))
FIRST_BUDGET, MORE = 30, 10   # evaluations; MORE is added to the budget if the run completes before the last kill
CONFIG = (TINY.replace("evaluations: 12", f"evaluations: {FIRST_BUDGET}").replace("samples: 600", "samples: 3000")
          .replace("epochs: 3", "epochs: 45"))
SEED = int(os.environ.get("FINCH_TEST_SEED", "20"))
dice = random.Random(SEED)


def alive(pid):
    """True if the process exists and is not a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def kill_some(process, ranks):
    """Kills one rank (probability 1/2), only mpirun, or all processes, and waits until all ranks have ended."""
    kind = dice.choice(("rank", "rank", "mpirun", "job"))
    for pid in {"rank": [dice.choice(ranks)], "mpirun": [process.pid], "job": [process.pid, *ranks]}[kind]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    end(process)
    wait_for(lambda: not any(alive(pid) for pid in ranks), f"the end of the ranks after a kill of {kind}")
    kinds[kind] = kinds.get(kind, 0) + 1


def shown(run):
    """Returns a row for each individual in the archive and the journals, from `finch show --csv`."""
    out = subprocess.run(folder.command(0, "show", str(run), "--csv"), cwd=folder.path, env=environment(), text=True,
                         stdout=subprocess.PIPE, check=True).stdout.splitlines()
    header = out[0].split(",")
    rows = [dict(zip(header, line.split(","))) for line in out[1:]]
    ids = [row["id"] for row in rows]
    check(len(set(ids)) == len(ids), "an id stands twice")
    return rows


def finished(run):
    return {row["id"]: (row["outcome"], row["loss"], row["epochs"]) for row in shown(run) if row["outcome"] != "unfinished"}


def unfinished_trainings(run, since=0):
    """Returns the ids of individuals without a known result that have a snapshot newer than `since` (ns)."""
    found = set()
    for path in (run / "state").glob("training-*.h5"):
        try:
            if path.stat().st_mtime_ns > since:
                found.add(path.stem[len("training-"):])
        except OSError:
            pass  # the training has ended and deleted its snapshot
    return found - known.keys()


with Folder() as folder:
    folder.write("tiny.yaml", CONFIG)
    run = folder.path / "runs/tiny"
    known = {}
    kills, kinds = 0, {}
    budget = FIRST_BUDGET
    layouts = [(4, []), (2, ["--set", "workers.islands=1"]), (3, ["--set", "workers.ranks=1", "--set", "workers.islands=3"])]
    while kills < KILLS or not unfinished_trainings(run):  # the last start must have a training to resume
        ranks, settings = layouts[kills % 3] if kills % 5 == 4 else layouts[0]
        since = time.time_ns()
        process = folder.start(ranks, "evolve", "tiny.yaml", *settings, "--set", f"search.budget.evaluations={budget}")
        if kills % 2 == 0:  # waits for a new snapshot; the other kills come at any moment of a start
            wait_for(lambda: unfinished_trainings(run, since) or process.poll() is not None, "a snapshot")
        time.sleep(dice.uniform(0.3, 2.5))
        wait_for(lambda: ranks_of(process) or process.poll() is not None, "a rank")
        victims = ranks_of(process)
        if process.poll() is not None or not victims:
            check(end(process) == 0, f"finch ended by itself with {process.returncode}\n{folder.output()[-3000:]}")
            budget += MORE
            continue
        if (run / "population.h5").exists():
            living = subprocess.run(["h5dump", "-d", "/individuals", str(run / "population.h5")], env=environment(),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            check(living.returncode == 0, f"h5dump during the run: {living.stdout[-500:]}")
        kill_some(process, victims)
        kills += 1
        if not (run / "population.h5").exists():
            continue
        dumped = subprocess.run(["h5dump", "-d", "/individuals", str(run / "population.h5")], env=environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(dumped.returncode == 0, f"h5dump after kill {kills}: {dumped.stdout[-500:]}")
        now = finished(run)
        for key, value in known.items():
            check(now.get(key) == value, f"kill {kills}: {key} was {value}, is {now.get(key)}")
        known = now
    budget = min(budget, len(shown(run)) + 4)  # a few more evaluations show if the budget is exact
    last = folder.run(4, "evolve", "tiny.yaml", "--set", f"search.budget.evaluations={budget}", "--set", "log.ranks=workers")
    rows = individuals(run)
    words = outcome_words(run)
    final = finished(run)
    for key, value in known.items():
        check(final.get(key) == value, f"at the end {key} was {value}, is {final.get(key)}")
    check(len(rows) == budget and "unfinished" not in {words[row["outcome"]] for row in rows.values()},
          f"the budget of {budget} was not used exactly: {len(rows)}")
    passed(f"{kills} kills {kinds}, {len(known)} results known before the last start, {budget} at the end, none lost, changed or repeated")
    continued = last.count("resumes from its snapshot")
    check(continued > 0, f"no training went on from its snapshot\n{last}")
    passed(f"{continued} trainings of the last start went on from their snapshots")
