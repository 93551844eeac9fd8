"""Runs configs/gallery/pytorch_ddp.yaml on real MNIST: DistributedDataParallel on both ranks of each worker. USR2 stops
the run during the trainings. The resumed run uses the budget exactly, and saved trainings continue at their epoch. The
test is skipped if torch or MNIST is missing."""
import importlib.util
import os
import signal
import sys

from harness import SKIPPED, SOURCE, Folder, check, end, individuals, outcome_words, passed, ranks_of, wait_for

if importlib.util.find_spec("torch") is None:
    print("skipped: torch is not installed (Debian: python3-torch)")
    sys.exit(SKIPPED)
if not os.environ.get("FINCH_MNIST"):
    print("skipped: FINCH_MNIST names no folder with MNIST")
    sys.exit(SKIPPED)

BUDGET = 5
os.environ["OMP_NUM_THREADS"] = "1"
with Folder() as folder:
    (folder.path / "configs").symlink_to(SOURCE / "configs")
    text = (SOURCE / "configs/gallery/pytorch_ddp.yaml").read_text()
    check(text.count("python3 configs") == 1 and text.count("    epochs: 3\n") == 1, "the example is another now")
    text = text.replace("python3 configs", f"{sys.executable} configs").replace("    epochs: 3\n", "    epochs: 3\n    keep: all\n")
    folder.write("run.yaml", text.replace("--epochs 3", "--epochs 3 --samples 3000"))
    run = folder.path / "run"
    command = (4, "evolve", "run.yaml", "--run", "run", "--set", f"search.budget.evaluations={BUDGET}")

    def is_between_epochs():
        """True if a running training has reported an epoch, but not its last one."""
        return any(0 < path.read_text().count("finch ") < 3 for path in run.glob("evaluations/*/*.reports"))

    process = folder.start(*command)
    wait_for(lambda: is_between_epochs() or process.poll() is not None, "an epoch")
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGUSR2)
    check(end(process) == 75, f"USR2 ended with {process.returncode}\n{folder.output()}")
    folder.run(*command)

    rows, words = individuals(run), outcome_words(run)
    check(len(rows) == BUDGET and {words[row["outcome"]] for row in rows.values()} == {"evaluated"}, folder.output())
    check(all(row["epochs"] == 3 and row["ranks"] == 2 for row in rows.values()), "three epochs on two ranks each")
    for rank in range(2):
        outputs = [path.read_text() for path in run.glob(f"evaluations/*/*.output-{rank}")]
        check(len(outputs) == BUDGET and all(f"rank {rank} of world size 2" in output for output in outputs), f"outputs of rank {rank}: {outputs}")
    check(any("goes on at epoch" in output for output in outputs), "nothing went on at its epoch")
    best = max(row["accuracy"] for row in rows.values())
    check(best > 0.6, f"the best of {BUDGET} networks knows {best:.1%}")
    passed(f"{BUDGET} networks by DistributedDataParallel on 2 workers of 2 ranks, one stopped between epochs; the best knows {best:.1%}")
