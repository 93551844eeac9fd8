"""Sends USR2 to many starts, each at a random moment after the launch: every start ends with exit code 0 or 75. An
uninterrupted `finch replay` of each individual of a completed run gives the same bits. USR2 kills a rank that has not
installed its handler yet (the loader still runs), as POSIX defines. This start ends with exit code 140, and
evolve.sbatch repeats it. For a long manual test set FINCH_TEST_STARTS=500 FINCH_TEST_BUSY=2."""
import os
import random
import signal
import subprocess
import sys
import time

from harness import TINY, Folder, check, curves, end, listens, passed, ranks_of, wait_for

STARTS = int(os.environ.get("FINCH_TEST_STARTS", "8"))
BUSY = int(os.environ.get("FINCH_TEST_BUSY", "0"))  # number of busy loops during the test
SEED = int(os.environ.get("FINCH_TEST_SEED", str(random.randrange(10**6))))
dice = random.Random(SEED)
BASE = (TINY.replace("samples: 600", "samples: 2000").replace("evaluations: 12", "evaluations: 2").replace("size: 12", "size: 20")
        .replace("islands: 2}", "islands: 1}").replace("training_seconds: 0.5", "training_seconds: 60"))
LINEAR = "model:\n  - flatten\n  - linear: {units: 20, activation: $activation, repeat: $layers}\n  - linear: {units: classes}\n"
CONFIGS = {"convolutions": BASE, "linear": BASE[:BASE.index("model:")] + LINEAR + BASE[BASE.index("training:"):].replace("epochs: 3", "epochs: 20")}


def interrupt(process, data_before, whole, without_data):
    """Sends USR2 to every rank at a random moment of a run. `whole`: seconds that the run takes. `without_data`:
    seconds until its data are loaded. The random time counts from the start of the first rank, or (with probability
    2/3) from the moment when the data are loaded. `data_before`: data_told() before this start. Returns True if all
    ranks had installed their handlers."""
    late = dice.random() < 2 / 3
    seconds = whole - without_data if late else whole
    wait_for(lambda: (data_told() > data_before if late else ranks_of(process)) or process.poll() is not None, "a start")
    time.sleep(dice.uniform(0, seconds))
    ready = True
    for pid in ranks_of(process):
        ready = listens(pid) and ready
        try:
            os.kill(pid, signal.SIGUSR2)
        except ProcessLookupError:
            pass
    return ready


def data_told():
    return folder.output().count(" train, ")


def check_bits(run, name, ranks):
    """Compares each curve of the run with an uninterrupted replay of the same individual. Remembers equal curves, so
    that each individual is replayed once."""
    for number, curve in curves(run).items():
        if unbroken.get((name, ranks, number)) != curve:
            folder.run(ranks, "replay", run, number)  # the exit code is not 0 if a bit differs
            unbroken[name, ranks, number] = curve


load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
codes, fresh, unbroken, seconds = {}, {}, {}, {}
try:
    with Folder() as folder:
        for name, text in CONFIGS.items():
            folder.write(f"{name}.yaml", text)
        for start in range(STARTS):
            name, ranks = list(CONFIGS)[start % 2], 1 + start // 2 % 2
            run = folder.path / f"runs/{name}-{ranks}"
            command = [ranks, "evolve", f"{name}.yaml", "--set", f"workers.ranks={ranks}", "--set", "workers.threads=1", "--run"]
            if (name, ranks) not in seconds:  # measures an uninterrupted run on this machine
                began, data_before = time.monotonic(), data_told() if start else 0
                process = folder.start(*command, f"runs/whole-{name}-{ranks}")
                wait_for(lambda: data_told() > data_before or process.poll() is not None, "the data")
                without_data = time.monotonic() - began
                check(end(process) == 0, f"a run without interruption ended with {process.returncode}\n{folder.output()[-4000:]}")
                seconds[name, ranks] = time.monotonic() - began, without_data
            data_before = data_told()
            process = folder.start(*command, run, *(["--fresh"] if fresh.get((name, ranks)) else []))
            ready = interrupt(process, data_before, *seconds[name, ranks])
            code = end(process)
            check(code in (0, 75) or (code == 128 + signal.SIGUSR2 and not ready),
                  f"seed {SEED}, start {start} of {name} on {ranks} rank(s) ended with {code}\n{folder.output()[-4000:]}")
            codes[code] = codes.get(code, 0) + 1
            fresh[name, ranks] = code == 0
            if code != 0 and start + 4 >= STARTS:
                folder.run(*command, run)
            if code == 0 or start + 4 >= STARTS:
                check_bits(run, name, ranks)
finally:
    for process in load:
        process.kill()
        process.wait()
check(75 in codes, f"seed {SEED}: no start was interrupted: {codes}")
passed(f"{STARTS} starts (seed {SEED}) ended with {codes}; {len(unbroken)} individuals, trained again in one piece, have the same bits")
