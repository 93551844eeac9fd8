"""Checks ranks that hang. A rank that is suspended or never arrives ends the job with a message that names rank and
node, and the next start resumes the run. A signal to only one rank, or very early in a start, stops the whole run in
order."""
import contextlib
import csv
import io
import os
import signal
import socket
import time

from harness import TINY, Folder, check, end, end_of_short_form, has_handled, individuals, listens, passed, ranks_of, wait_for

CONFIG = (TINY.replace("evaluations: 12", "evaluations: 6").replace("samples: 600", "samples: 4000").replace("size: 12", "size: 20")
          .replace("epochs: 3", "epochs: 6").replace("islands: 2}", "islands: 2, timeout_seconds: 10}"))
HOST = socket.gethostname()


def rank_of(pid):
    """Returns the world rank of a process that mpirun started."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        return next(int(entry.split(b"=")[1]) for entry in file.read().split(b"\0") if entry.startswith(b"OMPI_COMM_WORLD_RANK="))


def by_rank(process):
    return {rank_of(pid): pid for pid in ranks_of(process)}


def started(folder, ranks, *arguments):
    """Starts a run on `ranks` ranks and waits for its first snapshots. Returns its process and {rank: process id}."""
    process = folder.start(ranks, "evolve", "tiny.yaml", *arguments)
    wait_for(lambda: len(ranks_of(process)) == ranks and (folder.path / "runs/tiny/population.h5").exists(), "the start")
    wait_for(lambda: all((folder.path / f"runs/tiny/state/worker-0000{worker}.journal").exists() for worker in range(2)), "the journals")
    wait_for(lambda: len(list((folder.path / "runs/tiny/state").glob("training-*.h5"))) > 1, "the first snapshots")
    time.sleep(0.5)
    return process, by_rank(process)


def rows_of(folder):
    return list(csv.DictReader(io.StringIO(folder.run(0, "show", "runs/tiny", "--csv"))))


def stop_one(ranks, victim, named, *arguments):
    """Sends SIGSTOP to rank `victim`. The job must end by itself with the text `named` in its output, and the next
    start must use the budget exactly."""
    with Folder() as folder:
        folder.write("tiny.yaml", CONFIG)
        process, pids = started(folder, ranks, *arguments, "--set", "search.budget.evaluations=100000")
        os.kill(pids[victim], signal.SIGSTOP)
        try:
            code = end(process)
        finally:
            try:
                os.kill(pids[victim], signal.SIGKILL)
            except ProcessLookupError:
                pass
        check(code not in (0, 2, 75), f"a job with a stopped rank ended with {code}\n{folder.output()}")
        check(named in folder.output() and "workers.timeout_seconds" in folder.output(), f"nothing says '{named}'\n{folder.output()}")
        budget = 1 + len(rows_of(folder))
        folder.run(ranks, "evolve", "tiny.yaml", *arguments, "--set", "workers.timeout_seconds=120", "--set", f"search.budget.evaluations={budget}")
        check(len(individuals(folder.path / "runs/tiny")) == budget, "the budget was not used exactly after a stopped rank")


stop_one(4, 1, f"rank 1 on {HOST}")
passed("a stopped follower ends the job, and is named; the next start goes on and uses the budget exactly")
end_of_short_form()
stop_one(2, 1, f"worker 1 (rank 1 on {HOST})", "--set", "workers.ranks=1")
passed("a stopped leader of a worker of one rank does, too")
stop_one(2, 0, f"worker 0 (rank 0 on {HOST})", "--set", "workers.ranks=1")
passed("a stopped world rank 0 does, too")


def start_hanging(folder, where, seconds, *settings):
    """Starts two ranks; rank 1 hangs in phase `where`. Only this phase has the deadline of `seconds`, because a busy
    machine may need long for the other phases."""
    os.environ.update(FINCH_TEST_HANG=f"1:{where}:{seconds}")
    process = folder.start(2, "evolve", "tiny.yaml", *(settings or ("--set", "workers.islands=1")))
    del os.environ["FINCH_TEST_HANG"]
    return process


def is_in_mpi(process, rank):
    """True if the rank has entered MPI_Init and MPI has opened its sockets: mpirun may hang if a rank ends while it
    connects."""
    try:
        folder = f"/proc/{by_rank(process)[rank]}/fd"
        return sum(os.readlink(f"{folder}/{file}").startswith("socket") for file in os.listdir(folder)) > 2
    except (OSError, KeyError, StopIteration):
        return False


MISSING = f"1 of 2 ranks did not come: rank 1 on {HOST}"
LEADERS = ("--set", "workers.ranks=1", "--set", "search.budget.evaluations=2", "--set", "training.epochs=1")
with contextlib.ExitStack() as folders:  # all in parallel: they wait most of the time
    hanging = []
    for where, seconds, words, settings in (("init", 20, "2 ranks were expected", ()),
                                            ("the roll call", 3, "the roll call did not end within 3 s: " + MISSING, ()),
                                            ("reading the configuration", 3, MISSING, ()),
                                            ("forming the groups", 3, MISSING, ()),
                                            ("opening the run directory", 3, MISSING, ()),
                                            ("handing out the run", 3, f"on {HOST}: handing out the run did not end within", LEADERS),
                                            ("recording the start", 3, MISSING, LEADERS),
                                            ("the end of the ", 3, f"on {HOST}: the end of the ", LEADERS)):
        folder = folders.enter_context(Folder())
        folder.write("tiny.yaml", CONFIG)
        process = start_hanging(folder, where, seconds, *settings)
        hanging.append((where, words, folder, process))
        wait_for(lambda: process.poll() is not None or is_in_mpi(process, 0), "the start")
    for where, words, folder, process in hanging:
        code = end(process)
        check(code not in (0, 2, 75) and words in folder.output(), f"hanging at {where}: ended with {code}\n{folder.output()}")
        passed(f"a rank that hangs at '{where}' ends the job: {words}")

with Folder() as folder:
    folder.write("tiny.yaml", CONFIG.replace("epochs: 6", "epochs: 200"))
    process, pids = started(folder, 4)
    os.kill(pids[3], signal.SIGUSR2)
    check(end(process) == 75, f"USR2 to a follower alone ended with {process.returncode}\n{folder.output()}")
    check("a signal asked to stop" in folder.output(), f"nothing says why\n{folder.output()}")
passed("USR2 to one follower alone stops the whole run in order")

with Folder() as folder:
    # Disables periodic snapshots: only the stop writes snapshots.
    folder.write("tiny.yaml", CONFIG.replace("evaluations: 6", "evaluations: 2").replace("training_seconds: 0.5", "training_seconds: 1000"))
    run = folder.path / "runs/tiny"
    process = folder.start(4, "evolve", "tiny.yaml")
    wait_for(lambda: sum(journal.stat().st_size > 0 for journal in (run / "state").glob("*.journal")) == 2 or process.poll() is not None,
             "two trainings")
    os.kill(by_rank(process)[3], signal.SIGTERM)
    check(end(process) == 75, f"TERM to a follower alone ended with {process.returncode}\n{folder.output()}")
    unfinished = [row["id"] for row in rows_of(folder) if row["outcome"] == "unfinished"]
    check(unfinished, f"TERM was not heard before both trainings had ended\n{folder.output()}")
    for id in unfinished:
        check((run / f"state/training-{id}.h5").exists(), f"TERM to a follower alone: no snapshot of {id}\n{folder.output()}")
    folder.run(4, "evolve", "tiny.yaml")
    check(len(individuals(run)) == 2, "the budget was not used exactly after TERM to a follower alone")
passed("TERM to one follower alone stops the whole run at once, with a snapshot of every training; the next start completes")

with Folder() as folder:
    folder.write("tiny.yaml", CONFIG)
    for start in range(6):
        process = folder.start(2, "evolve", "tiny.yaml", "--set", "workers.islands=1")
        # A process has no signal handler before main(). evolve.sbatch handles a signal at that time.
        wait_for(lambda: len(ranks_of(process)) == 2 and all(listens(pid) for pid in ranks_of(process)), "the ranks")
        time.sleep(0.05 * start)
        for pid in ranks_of(process):
            os.kill(pid, (signal.SIGUSR2, signal.SIGTERM)[start % 2])
        check(end(process) in (0, 75), f"an early signal ended the start with {process.returncode}\n{folder.output()}")
passed("a signal that comes before anything stands ends the start with 75")

for where in ("init", "reading the configuration"):
    for number in (signal.SIGUSR2, signal.SIGTERM):
        with Folder() as folder:
            folder.write("tiny.yaml", CONFIG)
            process = start_hanging(folder, where, 600)
            wait_for(lambda: is_in_mpi(process, 0) and f"rank 1 hangs at {where}" in folder.output(), f"rank 1 at {where}")
            pids = by_rank(process)  # rank 1 sleeps: rank 0 waits for rank 1 in MPI_Init or in the phase
            for pid in pids.values():
                os.kill(pid, number)
            wait_for(lambda: process.poll() is not None or has_handled(pids[0], number), "the handler")
            if process.poll() is None:
                os.kill(pids[0], signal.SIGALRM)  # sends the handler's alarm earlier
            check(end(process) == 75, f"{number.name}, rank 1 at {where}: ended with {process.returncode}\n{folder.output()}")
passed("USR2 or TERM within MPI_Init, or in the first phase, ends the start with 75")
