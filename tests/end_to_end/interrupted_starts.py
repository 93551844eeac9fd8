"""Many starts, each interrupted by USR2 at a random moment from the launch on, while busy loops take the cores: every one ends with 0 or 75,
and every completed run has the bits of one that nobody interrupted. A USR2 that comes before a rank's handler stands (its libraries are still
being loaded) kills that rank, as POSIX has it: 140, which evolve.sbatch takes for a start to repeat. FINCH_TEST_STARTS=500 for a long one by hand."""
import os
import random
import signal
import subprocess
import sys
import time

from harness import TINY, Folder, check, curves, end, listens, passed, ranks_of, wait_for

STARTS = int(os.environ.get("FINCH_TEST_STARTS", "12"))
BUSY = int(os.environ.get("FINCH_TEST_BUSY", "2"))
SEED = int(os.environ.get("FINCH_TEST_SEED", str(random.randrange(10**6))))
dice = random.Random(SEED)
BASE = (TINY.replace("samples: 600", "samples: 4000").replace("evaluations: 12", "evaluations: 2").replace("size: 12", "size: 20")
        .replace("islands: 2}", "islands: 1}").replace("training_seconds: 0.5", "training_seconds: 60"))
LINEAR = "model:\n  - flatten\n  - linear: {units: 20, activation: $activation, repeat: $layers}\n  - linear: {units: classes}\n"
CONFIGS = {"convolutions": BASE, "linear": BASE[:BASE.index("model:")] + LINEAR + BASE[BASE.index("training:"):].replace("epochs: 3", "epochs: 60")}


def interrupt(process, moment):
    """USR2 to every rank that is there `moment` seconds after the first of them; returns whether all were ready for it."""
    wait_for(lambda: ranks_of(process) or process.poll() is not None, 120, "a rank")
    time.sleep(moment)
    ready = True
    for pid in ranks_of(process):
        ready = listens(pid) and ready
        try:
            os.kill(pid, signal.SIGUSR2)
        except ProcessLookupError:
            pass
    return ready


load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
counts = {"interrupted": 0, "complete": 0}
try:
    with Folder() as folder:
        expected = {}
        for name, text in CONFIGS.items():
            folder.write(f"{name}.yaml", text)
        for start in range(STARTS):
            name, ranks = list(CONFIGS)[start % 2], 1 + start // 2 % 2
            run = folder.path / f"runs/{name}-{ranks}"
            if (name, ranks) not in expected:
                folder.run(ranks, "evolve", f"{name}.yaml", "--run", "runs/straight", "--set", f"workers.ranks={ranks}", "--set", "workers.threads=1", "--fresh")
                expected[name, ranks] = curves(folder.path / "runs/straight")
            process = folder.start(ranks, "evolve", f"{name}.yaml", "--run", run, "--set", f"workers.ranks={ranks}", "--set", "workers.threads=1",
                                   *(["--fresh"] if counts.pop((name, ranks), True) else []))
            ready = interrupt(process, dice.uniform(0, 3))
            code = end(process, 240)
            check(code in (0, 75) or (code == 128 + signal.SIGUSR2 and not ready), f"seed {SEED}, start {start} of {name} on {ranks} rank(s) ended with {code}\n{folder.output()[-4000:]}")
            counts[name, ranks] = code == 0
            counts["complete" if code == 0 else "interrupted"] += 1
            if code == 0:
                check(curves(run) == expected[name, ranks], f"seed {SEED}, start {start}: {name} on {ranks} rank(s) has other bits")
finally:
    for process in load:
        process.kill()
        process.wait()
passed(f"{counts['interrupted']} of {STARTS} starts were interrupted (seed {SEED}), {counts['complete']} completed, all to the same bits")
