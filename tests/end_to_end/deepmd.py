"""configs/command/deepmd.yaml: DeePMD-kit models on a generated data set, stopped by USR2 in the middle, resumed with the budget
exact; what had a checkpoint goes on there. Skipped where `dp` is not on PATH or belongs to another DeePMD-kit than 3."""
import json
import os
import shutil
import signal
import subprocess
import sys

from harness import SKIPPED, SOURCE, Folder, check, end, individuals, outcome_words, passed, ranks_of, wait_for

if shutil.which("dp") is None or not subprocess.run(["dp", "--version"], capture_output=True, text=True).stdout.startswith("DeePMD-kit v3."):
    print("skipped: DeePMD-kit 3 is not installed (pip install deepmd-kit[cpu])")
    sys.exit(SKIPPED)

BUDGET, EPOCHS = 5, 6
with Folder() as folder:
    (folder.path / "configs").symlink_to(SOURCE / "configs")
    subprocess.run([sys.executable, "configs/command/deepmd_data.py", "deepmd-data"], cwd=folder.path, check=True)
    text = (SOURCE / "configs/command/deepmd.yaml").read_text()
    for part in ("command: python3 configs", f"    epochs: {EPOCHS} "):
        check(text.count(part) == 1, f"the example is another now: {part}")
    folder.write("run.yaml", text.replace("command: python3 configs", f"keep: all\n    command: {sys.executable} configs"))
    run = folder.path / "run"
    command = (2, "evolve", "run.yaml", "--run", "run", "--set", f"search.budget.evaluations={BUDGET}")

    def is_in_the_middle():
        """Whether an individual that is still in training has saved its weights and reported, but not its last epoch."""
        return any(0 < path.read_text().count("finch ") < EPOCHS - 1 and list(path.with_suffix("").glob("model.ckpt-*.meta"))
                   for path in run.glob("evaluations/*/*.reports"))

    def texts(kind):
        return [path.read_text() for path in run.glob(f"evaluations/*/*.{kind}")]

    process = folder.start(*command)
    wait_for(lambda: is_in_the_middle() or process.poll() is not None, "an epoch")
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGUSR2)
    check(end(process) == 75, f"USR2 ended with {process.returncode}\n{folder.output()}")
    folder.run(*command)

    rows, words = individuals(run), outcome_words(run)
    found = [(words[row["outcome"]], row["epochs"]) for row in rows.values()]
    check(found == [("evaluated", EPOCHS)] * BUDGET, f"{found}\n" + "\n".join(text[-3000:] for text in texts("errors")))
    check(any("--restart" in text for text in texts("output")), "nothing went on from its checkpoint")
    inputs = [json.loads(path.read_text())["model"]["descriptor"]["rcut"] for path in run.glob("evaluations/*/*/input.json")]
    check(len(inputs) == len(set(inputs)) == BUDGET, f"the cutoffs are {inputs}")
    best = min(row["loss"] for row in rows.values())
    check(best < 0.05, f"the best of {BUDGET} models has forces wrong by {best} eV/Angstrom")
    passed(f"{BUDGET} DeePMD-kit models, stopped in the middle and resumed; the best has forces wrong by {best:.4f} eV/Angstrom")
