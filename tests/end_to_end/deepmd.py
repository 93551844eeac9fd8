"""Checks configs/gallery/deepmd_train.py with a fake `dp` that writes learning curves with or without validation data,
or no curve. Then runs configs/gallery/deepmd.yaml: trains DeePMD-kit models on a generated data set, stops them by
USR2, and resumes the run. The budget is used exactly, and a training with a checkpoint continues from it. The run with
deepmd.yaml is skipped if `dp` is not on PATH or is not of DeePMD-kit 3."""
import json
import os
import shutil
import signal
import subprocess
import sys

from harness import SKIPPED, SOURCE, Folder, check, end, individuals, outcome_words, passed, ranks_of, wait_for



def train(folder, curve, options='{"training": {"disp_freq": 100}}'):
    """Runs deepmd_train.py with a fake dp that writes `curve` to lcurve.out (None: no file); returns the ended
    process."""
    folder.write("input.json", options)
    folder.write("written", curve or "")
    folder.write("dp", "#!/bin/sh\n" + ("cp written lcurve.out\n" if curve is not None else "")).chmod(0o755)
    done = subprocess.run([sys.executable, SOURCE / "configs/gallery/deepmd_train.py"], cwd=folder.path, capture_output=True, text=True,
                          env=dict(os.environ, PATH=f"{folder.path}:{os.environ['PATH']}"))
    check("Traceback" not in done.stderr, done.stderr)
    return done


NOTE = "# If there is no available reference data, rmse_*_{val,trn} will print nan\n"
with Folder() as folder:
    def refused(text, *arguments):
        done = train(folder, *arguments)
        check(done.returncode != 0 and text in done.stderr, f"'{text}' is not in\n{done.stderr}")

    done = train(folder, f"#  step rmse_val rmse_trn rmse_f_val rmse_f_trn lr\n{NOTE}1 9 9 9 9 1e-3\n100 1 2 0.5 0.25 1e-3\n", '{"training": {"disp_freq": 100, "validation_data": {}}}')
    lines = [line for line in done.stdout.splitlines() if line.startswith("finch ")]
    check(done.returncode == 0 and len(lines) == 1 and lines[0].startswith("finch loss=0.5 epoch=1 ") and "no validation_data" not in done.stderr, f"{done}")
    done = train(folder, f"#  step rmse_trn rmse_f_trn lr\n{NOTE}100 2 0.25 1e-3\n200 1 0.125 1e-4\n")
    lines = [line for line in done.stdout.splitlines() if line.startswith("finch ")]
    check(done.returncode == 0 and len(lines) == 2 and lines[1].startswith("finch loss=0.125 epoch=2 "), f"{done}")
    check("the loss is the error on the training set" in done.stderr, done.stderr)
    refused("expected a column rmse_f_val or rmse_f_trn; its columns are step rmse_trn lr", "# step rmse_trn lr\n100 2 1e-3\n")
    refused("dp has written no learning curve", "")
    refused("input.json: expected", "", "{}")
    refused("input.json: expected", "", "[]")
    refused("no step that is a multiple of 100, of numb_steps 50", f"#  step rmse_trn rmse_f_trn lr\n{NOTE}1 2 0.25 1e-3\n",
            '{"training": {"disp_freq": 100, "numb_steps": 50}}')
    for section in ("null", "[]", '{"disp_freq": 0}', '{"disp_freq": "100"}', '{"disp_freq": true}'):
        refused("input.json: training", "", f'{{"training": {section}}}')
    folder.write("lcurve.out", "#  step rmse_trn rmse_f_trn lr\n100 2 0.25 1e-3\n")
    refused("dp has written no learning curve", None)
    passed("the loss is the validation error, else the training error with a note; a curve without either ends with one message")

if shutil.which("dp") is None or not subprocess.run(["dp", "--version"], capture_output=True, text=True).stdout.startswith("DeePMD-kit v3."):
    print("skipped: DeePMD-kit 3 is not installed (pip install deepmd-kit[cpu])")
    sys.exit(SKIPPED)

BUDGET, EPOCHS = 5, 6
with Folder() as folder:
    (folder.path / "configs").symlink_to(SOURCE / "configs")
    subprocess.run([sys.executable, "configs/gallery/deepmd_data.py", "deepmd-data"], cwd=folder.path, check=True)
    text = (SOURCE / "configs/gallery/deepmd.yaml").read_text()
    for part in ("command: python3 configs", f"    epochs: {EPOCHS} "):
        check(text.count(part) == 1, f"the example is another now: {part}")
    folder.write("run.yaml", text.replace("command: python3 configs", f"keep: all\n    command: {sys.executable} configs"))
    run = folder.path / "run"
    command = (2, "evolve", "run.yaml", "--run", "run", "--set", f"search.budget.evaluations={BUDGET}")

    def is_in_the_middle():
        """True if a running training has saved weights and reported an epoch, but not the last one."""
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
