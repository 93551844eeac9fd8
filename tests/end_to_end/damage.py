"""Damages files after a kill: Finch names each damaged file and renames it, and no recorded result is lost."""
import os
import shutil
import signal

from harness import TINY, Folder, check, end, end_of_short_form, individuals, passed, ranks_of, wait_for

CONFIG = TINY.replace("samples: 600", "samples: 2000").replace("epochs: 3", "epochs: 30").replace("evaluations: 12", "evaluations: 24")

SPHERE = """
name: sphere
search:
  objective: {function: sphere, seconds: 0.01}
  budget: {evaluations: 1000}
workers: {islands: 2}
checkpoint: {archive_seconds: 0.2}
"""


def flip(path, share):
    """Changes one byte of the file. `share`: its position as a fraction of the file's length."""
    with open(path, "r+b") as file:
        file.seek(0, os.SEEK_END)
        place = int(file.tell() * share)
        file.seek(place)
        old = file.read(1)
        file.seek(place)
        file.write(bytes([old[0] ^ 0x55]))


def finished(folder):
    """Returns {id: loss} of the finished individuals, from `finch show --csv`."""
    if not any((folder.path / "runs/tiny" / name).exists() for name in ("population.h5", "population.h5.previous")):
        return {}
    lines = folder.run(0, "show", "runs/tiny", "--csv").splitlines()
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("id,")):]
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","))) for line in lines[1:]]
    return {row["id"]: row["loss"] for row in rows if row["outcome"] not in ("unfinished", "")}


def kill_in_the_middle(folder, at_least):
    """Starts the run and kills all ranks once `at_least` individuals are finished and a snapshot of a training
    exists."""
    process = folder.start(4, "evolve", "tiny.yaml")
    run = folder.path / "runs/tiny"
    wait_for(lambda: process.poll() is not None or len(ranks_of(process)) == 4 and (run / "lock").exists()
             and (run / "lock").stat().st_size > 0 and len(finished(folder)) >= at_least
             and list((run / "state").glob("training-*.h5")), f"{at_least} results and a snapshot")
    check(process.poll() is None, f"finch ended by itself\n{folder.output()[-3000:]}")
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGKILL)
    end(process)


with Folder() as folder:
    folder.write("tiny.yaml", CONFIG)
    run = folder.path / "runs/tiny"
    for number, share in enumerate((0.02, 0.5, 0.97)):
        kill_in_the_middle(folder, 2 + 3 * number)
        known = finished(folder)
        if number > 0:
            check((run / "population.h5.damaged").exists(), "the next start did not set the damaged archive aside")
            (run / "population.h5.damaged").unlink()
        flip(run / "population.h5", share)
        after = finished(folder)
        check(all(after.get(key) == loss for key, loss in known.items()), f"a damaged archive lost {set(known) - set(after)}")
        folder.run(0, "status", "runs/tiny", expect=76)
        check(not (run / "population.h5.damaged").exists() and (run / "population.h5").exists(),
              "finch show or status renamed the damaged archive")
    passed("a damaged archive is renamed by the next start, never by finch show or status")
    passed("with its newest archive damaged, a killed run still knows every result")
    end_of_short_form()

    # Kills further starts until a snapshot remains: a training that ends just before the kill deletes its snapshot.
    while not (snapshots := list((run / "state").glob("training-*.h5"))):
        kill_in_the_middle(folder, 0)
    for snapshot in snapshots:
        flip(snapshot, 0.5)
        previous = snapshot.with_name(snapshot.name + ".previous")
        if previous.exists():
            previous.write_bytes(b"not HDF5 at all")
    for journal in (run / "state").glob("*.journal"):
        with open(journal, "ab") as file:
            file.write(b"torn")
    output = folder.run(4, "evolve", "tiny.yaml")
    rows = individuals(run)
    check(len(rows) == 24, f"the budget of 24 was not used exactly: {len(rows)}")
    check("checksum" in output or "damaged" in output, f"nothing is said of the damaged snapshots\n{output}")
    passed("damaged snapshots are named, and their trainings begin anew")

    flip(run / "population.h5", 0.6)
    check(len(finished(folder)) == 24, "a damaged archive after an orderly end lost results")
    folder.run(4, "evolve", "tiny.yaml")
    check(len(individuals(run)) == 24, "after a damaged archive the finished run trained again")
    passed("a damaged archive of a finished run costs nothing")

with Folder() as folder:
    folder.write("sphere.yaml", SPHERE)
    run = folder.path / "runs/sphere"
    process = folder.start(2, "evolve", "sphere.yaml")
    wait_for(lambda: process.poll() is not None or sum(path.stat().st_size > 0 for path in (run / "state").glob("*.journal")) == 2, "results of two workers")
    run.rename(folder.path / "gone")  # atomic: no rank can write into the run directory while it is removed
    shutil.rmtree(folder.path / "gone")
    code = end(process)
    output = folder.output()
    check(code not in (0, 2), f"with its run directory removed finch ended with {code}\n{output}")
    check("complete" not in output and "runs/sphere" in output, f"nothing names the run directory, or it is called complete\n{output}")
    check("no result of" not in output and "nor are its results" in output, f"results that are gone are called kept\n{output}")
    passed("a run whose directory is removed stops, names it, and is not complete")
