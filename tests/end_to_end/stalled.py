"""A rank that is stopped in its tracks or never comes ends the job, named with its node, and the next start goes on. A signal that reaches
one rank alone, or comes before anything stands, stops the whole run in order."""
import os
import signal
import socket
import time

from harness import TINY, Folder, check, end, individuals, listens, passed, ranks_of, wait_for

CONFIG = (TINY.replace("evaluations: 12", "evaluations: 6").replace("samples: 600", "samples: 4000").replace("size: 12", "size: 20")
          .replace("epochs: 3", "epochs: 6").replace("islands: 2}", "islands: 2, timeout_seconds: 10}"))
HOST = socket.gethostname()


def rank_of(pid):
    """The world rank of a process that mpirun started."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        return next(int(entry.split(b"=")[1]) for entry in file.read().split(b"\0") if entry.startswith(b"OMPI_COMM_WORLD_RANK="))


def by_rank(process):
    return {rank_of(pid): pid for pid in ranks_of(process)}


def started(folder, ranks, *arguments):
    """A run of so many ranks that trains: its process, and the process ids by rank."""
    process = folder.start(ranks, "evolve", "tiny.yaml", *arguments)
    wait_for(lambda: len(ranks_of(process)) == ranks and (folder.path / "runs/tiny/population.h5").exists(), 90, "the start")
    wait_for(lambda: all((folder.path / f"runs/tiny/state/worker-0000{worker}.journal").exists() for worker in range(2)), 90, "the journals")
    wait_for(lambda: len(list((folder.path / "runs/tiny/state").glob("training-*.h5"))) > 1, 90, "the first snapshots")
    time.sleep(0.5)
    return process, by_rank(process)


def stop_one(ranks, victim, named, *arguments):
    """SIGSTOP of rank `victim`: the job ends by itself, and says `named`; the next start uses the budget exactly."""
    with Folder() as folder:
        folder.write("tiny.yaml", CONFIG)
        process, pids = started(folder, ranks, *arguments)
        os.kill(pids[victim], signal.SIGSTOP)
        try:
            code = end(process, 100)
        finally:
            try:
                os.kill(pids[victim], signal.SIGKILL)
            except ProcessLookupError:
                pass
        check(code not in (0, 2, 75), f"a job with a stopped rank ended with {code}\n{folder.output()}")
        check(named in folder.output() and "workers.timeout_seconds" in folder.output(), f"nothing says '{named}'\n{folder.output()}")
        folder.run(ranks, "evolve", "tiny.yaml", *arguments, "--set", "workers.timeout_seconds=120")
        check(len(individuals(folder.path / "runs/tiny")) == 6, "the budget was not used exactly after a stopped rank")


stop_one(4, 1, f"rank 1 on {HOST}")
passed("a stopped follower ends the job, and is named; the next start goes on and uses the budget exactly")
stop_one(2, 1, f"worker 1 (rank 1 on {HOST})", "--set", "workers.ranks=1")
passed("a stopped leader of a worker of one rank does, too")
stop_one(2, 0, f"worker 0 (rank 0 on {HOST})", "--set", "workers.ranks=1")
passed("a stopped world rank 0 does, too")

MISSING = f"1 of 2 ranks did not come: rank 1 on {HOST}"
for where, seconds, words in (("init", 6, "2 ranks were expected"),
                              ("the roll call", 12, "the roll call did not end within 3 s: " + MISSING),
                              ("reading the configuration", 2, MISSING),
                              ("opening the run directory", 2, MISSING)):
    with Folder() as folder:
        folder.write("tiny.yaml", CONFIG)
        os.environ.update(FINCH_TEST_DEAF=f"1:{where}", FINCH_START_SECONDS=str(seconds))
        process = folder.start(2, "evolve", "tiny.yaml", "--set", "workers.islands=1")
        code = end(process, 100)
        del os.environ["FINCH_TEST_DEAF"], os.environ["FINCH_START_SECONDS"]
        check(code not in (0, 2, 75) and words in folder.output(), f"deaf at {where}: ended with {code}\n{folder.output()}")
    passed(f"a rank that is deaf at '{where}' ends the job: {words}")

with Folder() as folder:
    folder.write("tiny.yaml", CONFIG.replace("epochs: 6", "epochs: 200"))
    process, pids = started(folder, 4)
    os.kill(pids[3], signal.SIGUSR2)
    check(end(process, 100) == 75, f"USR2 to a follower alone ended with {process.returncode}\n{folder.output()}")
    check("a signal asked to stop" in folder.output(), f"nothing says why\n{folder.output()}")
passed("USR2 to one follower alone stops the whole run in order")

with Folder() as folder:
    folder.write("tiny.yaml", CONFIG)
    for start in range(6):
        process = folder.start(2, "evolve", "tiny.yaml", "--set", "workers.islands=1")
        # Before main() a process cannot listen: the evolve.sbatch that started it sees to that.
        wait_for(lambda: len(ranks_of(process)) == 2 and all(listens(pid) for pid in ranks_of(process)), 60, "the ranks")
        time.sleep(0.05 * start)
        for pid in ranks_of(process):
            os.kill(pid, (signal.SIGUSR2, signal.SIGTERM)[start % 2])
        check(end(process, 100) in (0, 75), f"an early signal ended the start with {process.returncode}\n{folder.output()}")
passed("a signal that comes before anything stands ends the start with 75")
