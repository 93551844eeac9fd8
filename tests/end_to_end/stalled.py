"""A rank that is stopped in its tracks is noticed within workers.timeout_seconds: the job ends, and the next start goes on."""
import os
import signal
import time

from harness import TINY, Folder, check, end, individuals, passed, ranks_of, wait_for

CONFIG = (TINY.replace("evaluations: 12", "evaluations: 6").replace("samples: 600", "samples: 4000").replace("size: 12", "size: 20")
          .replace("epochs: 3", "epochs: 6").replace("islands: 2}", "islands: 2, timeout_seconds: 3}"))

with Folder() as folder:
    folder.write("tiny.yaml", CONFIG)
    process = folder.start(4, "evolve", "tiny.yaml")
    wait_for(lambda: len(ranks_of(process)) == 4 and (folder.path / "runs/tiny/population.h5").exists(), 30, "the start")
    time.sleep(0.5)
    victim = ranks_of(process)[1]
    os.kill(victim, signal.SIGSTOP)
    try:
        code = end(process, 30)
    finally:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass
    check(code not in (0, 2, 75), f"a job with a stalled rank ended with {code}\n{folder.output()}")
    check("workers.timeout_seconds" in folder.output(), f"nothing says what happened\n{folder.output()}")
    passed("a stalled rank ends the job within its timeout, with a message")

    folder.run(4, "evolve", "tiny.yaml")
    check(len(individuals(folder.path / "runs/tiny")) == 6, "the budget was not used exactly after a stalled rank")
    passed("the next start goes on and uses the budget exactly")
