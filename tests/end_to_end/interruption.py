"""Checks USR2 in mid-epoch: the training is saved and resumed with the same bits as without a stop. Also checks a stop
by TERM, and a second job on the same run."""
import csv
import os
import pathlib
import signal
import time

from harness import TINY, Folder, check, curves, end, end_of_short_form, individuals, kill, passed, ranks_of, wait_for

LONG = (TINY.replace("samples: 600", "samples: 8000").replace("evaluations: 12", "evaluations: 1")
        .replace("epochs: 3", "epochs: 5").replace("islands: 2}", "islands: 1}").replace("int: [1, 3]", "int: [3, 4]")
        .replace("size: 12", "size: 20"))


def training_begun(run):
    """True if the journal of the leader holds the start of the only individual."""
    journal = run / "state/worker-00000.journal"
    return journal.exists() and journal.stat().st_size > 0


def interrupted_to_the_end(folder, run, *settings):
    """Starts the run and stops it by USR2, each time later, until the run is complete. Returns the number of starts."""
    for starts in range(1, 60):
        process = folder.start(2, "evolve", "tiny.yaml", "--run", run, *settings)
        wait_for(lambda: training_begun(folder.path / run) or process.poll() is not None, "the training")
        time.sleep(0.2 * 1.1 ** starts)
        for pid in ranks_of(process) if process.poll() is None else []:
            os.kill(pid, signal.SIGUSR2)
        code = end(process)
        check(code in (0, 75), f"after USR2 finch ended with {code}\n{folder.output()}")
        if code == 0:
            return starts
    check(False, "the run does not get on between interruptions")


with Folder() as folder:
    folder.write("tiny.yaml", LONG)
    for epochs in (5, 40, 320):  # uses more epochs if a training ends before two stops
        name, settings = f"runs/broken-{epochs}", ("--set", f"training.epochs={epochs}")
        starts = interrupted_to_the_end(folder, name, *settings)
        if starts > 2:
            break
    check(starts > 2, f"a training of {epochs} epochs was interrupted {starts - 1} times")
    folder.run(2, "evolve", "tiny.yaml", "--run", "runs/straight", *settings)
    straight = curves(folder.path / "runs/straight")
    broken = curves(folder.path / name)
    check(list(straight) == list(broken), "the interrupted run trained another individual")
    for individual, epochs in straight.items():
        check(epochs == broken[individual], f"{individual}: {epochs} without interruption, {broken[individual]} with")
    passed(f"an individual interrupted {starts - 1} times ends with the same bits as one that was not")
    end_of_short_form()

    process = folder.start(2, "evolve", "tiny.yaml", "--run", "runs/killed", *settings, "--set", "checkpoint.training_seconds=1000")
    wait_for(lambda: training_begun(folder.path / "runs/killed"), "the training")
    kill(process)
    process.wait()
    shown = next(csv.DictReader(folder.run(0, "show", "runs/killed", "--csv").splitlines()))
    check(shown["outcome"] == "unfinished", f"killed: {shown}")
    said = folder.run(2, "replay", "runs/killed", shown["id"], expect=2)
    check("is unfinished, and no epoch of it is recorded" in said, said)
    passed("a replay of what has nothing to be compared with is refused")

    process = folder.start(2, "evolve", "tiny.yaml", "--run", "runs/term", *settings)
    wait_for(lambda: training_begun(folder.path / "runs/term"), "the training")
    time.sleep(0.5)
    for pid in ranks_of(process):
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        check(pathlib.Path("/dev/nvidiactl").exists() or "libcublasLt" not in maps, "a training on CPUs loaded cuBLASLt: 150 MB")
        os.kill(pid, signal.SIGTERM)
    end(process)  # its alarm ends it within 10 s of TERM
    check(len(individuals(folder.path / "runs/term")) == 1, "TERM lost the individual")
    check((folder.path / "runs/term/lock").stat().st_size == 0, "TERM left the lock: another host would wait for a minute of silence")
    folder.run(2, "evolve", "tiny.yaml", "--run", "runs/term", *settings)
    check(curves(folder.path / "runs/term") == straight, "after TERM and a resume the bits differ")
    passed("TERM ends the program, and the run goes on to the same bits")

    process = folder.start(2, "evolve", "tiny.yaml", "--run", "runs/locked", "--set", "training.epochs=2000")
    wait_for(lambda: training_begun(folder.path / "runs/locked"), "the first job")
    folder.run(0, "status", "runs/locked", expect=77)
    refused = folder.run(2, "evolve", "tiny.yaml", "--run", "runs/locked", expect=2)
    check("runs/locked" in refused and refused.count("finch: ") == 1, f"a second job was not refused clearly: {refused}")
    check(process.poll() is None, "the first job was disturbed")
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGUSR2)
    check(end(process) == 75, "the first job was disturbed")
    passed("a second job on a live run is refused, and the first goes on")


def slow_snapshot_before_the_end():
    """Checks that the program stops early enough before FINCH_DEADLINE to write a snapshot that takes 6 s."""
    with Folder() as folder:
        folder.write("tiny.yaml", LONG)
        run = folder.path / "runs/slow"
        os.environ["FINCH_TEST_SNAPSHOT_DELAY"] = "0:6"
        for seconds in (40, 80, 160):  # gives more time if no training began before the stop
            os.environ["FINCH_DEADLINE"] = str(int(time.time()) + seconds)
            process = folder.start(2, "evolve", "tiny.yaml", "--run", "runs/slow", "--set", "training.epochs=100000",
                                   "--set", "checkpoint.training_seconds=100000")
            code = end(process)
            check(code == 75, f"at the end of the job's time finch ended with {code}\n{folder.output()}")
            saved = [row["progress"] for row in individuals(run).values()]
            if any(saved):
                break
        del os.environ["FINCH_DEADLINE"], os.environ["FINCH_TEST_SNAPSHOT_DELAY"]
        check(len(saved) == 1 and saved[0] > 0, f"progress that was saved: {saved}\n{folder.output()}")
        check(len(list(run.glob("state/**/training-*.h5"))) == 1, "the snapshot of the stop is not there")
    passed("at the end of the job's time a snapshot of 6 s is written, in order")


slow_snapshot_before_the_end()
