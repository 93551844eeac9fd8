"""Damaged files after a kill: each is named and set aside, and no result that was recorded is lost."""
import os
import signal
import time

from harness import TINY, Folder, check, end, individuals, passed, ranks_of, wait_for

CONFIG = TINY.replace("samples: 600", "samples: 2000").replace("epochs: 3", "epochs: 30").replace("evaluations: 12", "evaluations: 24")


def flip(path, share):
    """Turns one byte round, at `share` of the file's length."""
    with open(path, "r+b") as file:
        file.seek(0, os.SEEK_END)
        place = int(file.tell() * share)
        file.seek(place)
        old = file.read(1)
        file.seek(place)
        file.write(bytes([old[0] ^ 0x55]))


def finished(folder):
    """Outcome and loss by id, from everything that the run directory holds."""
    lines = folder.run(0, "show", "runs/tiny", "--csv").splitlines()
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("id,")):]
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","))) for line in lines[1:]]
    return {row["id"]: row["loss"] for row in rows if row["outcome"] not in ("unfinished", "")}


def kill_in_the_middle(folder):
    process = folder.start(4, "evolve", "tiny.yaml")
    wait_for(lambda: (folder.path / "runs/tiny/population.h5").exists() and len(ranks_of(process)) == 4, 30, "the start")
    time.sleep(1.2)
    wait_for(lambda: list((folder.path / "runs/tiny/state").glob("training-*.h5")), 30, "a snapshot")
    os.kill(ranks_of(process)[0], signal.SIGKILL)
    end(process, 30)


with Folder() as folder:
    folder.write("tiny.yaml", CONFIG)
    run = folder.path / "runs/tiny"
    for share in (0.02, 0.5, 0.97):
        kill_in_the_middle(folder)
        known = finished(folder)
        check(known, "nothing was finished when the rank was killed: let it run longer")
        flip(run / "population.h5", share)
        after = finished(folder)
        check(all(after.get(key) == loss for key, loss in known.items()), f"a damaged archive lost {set(known) - set(after)}")
        check((run / "population.h5.damaged").exists(), "the damaged archive was not set aside")
    passed("with its newest archive damaged, a killed run still knows every result")

    snapshots = list((run / "state").glob("training-*.h5"))
    check(snapshots, "there is no snapshot to damage")
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
