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
import zipfile

from harness import SKIPPED, SOURCE, Folder, check, end, individuals, outcome_words, passed, ranks_of, wait_for

RESUMES = json.dumps({"resume": True})  # what Finch writes to the standard input


def train(folder, curve, options='{"training": {"disp_freq": 100}}', individual="", words=(), **environment):
    """Runs deepmd_train.py with a fake dp that appends `curve` to lcurve.out (None: no file); returns the ended
    process."""
    folder.write("input.json", options)
    folder.write("written", curve or "")
    folder.write("dp", "#!/bin/sh\n" + ("cat written >> lcurve.out\n" if curve is not None else "")).chmod(0o755)
    done = subprocess.run([sys.executable, SOURCE / "configs/gallery/deepmd_train.py", *words], cwd=folder.path, capture_output=True, text=True,
                          input=individual, env=dict(os.environ, PATH=f"{folder.path}:{os.environ['PATH']}", FINCH_ID="1", **environment))
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
    refused("no step that is a multiple of 100, of num_epoch 2", f"#  step rmse_trn rmse_f_trn lr\n{NOTE}1 2 0.25 1e-3\n",
            '{"training": {"disp_freq": 100, "num_epoch": 2}}')
    done = train(folder, None, WORLD_SIZE="2")
    check(done.returncode != 0 and "was started by several ranks: set search.objective.launch: leader" in done.stderr, f"{done}")
    folder.write("lcurve.out", "#  step rmse_trn rmse_f_trn lr\n100 2 0.25 1e-3\n")
    refused("dp has written no learning curve", None)
    passed("the loss is the validation error, else the training error with a note; a curve without either ends with one message")

    def losses(curve, *arguments, **named):
        done = train(folder, curve, *arguments, **named)
        return [float(line.split()[1].split("=")[1]) for line in done.stdout.splitlines() if line.startswith("finch ")], done.stdout

    BOTH = "#  step rmse_e_val rmse_e_trn rmse_f_val rmse_f_trn lr\n1 9 9 9 9 1e-3\n100 2e9 0 0.25 0 1e-3\n"
    check(losses(BOTH)[0] == [2e9 + 0.25] and "rmse_e_val=2000000000.0" in losses(BOTH)[1], "a useless energy is no loss")
    check(losses(BOTH, words=("--energy-weight", "0"))[0] == [0.25], "the force error alone")
    check(losses(BOTH.replace("1 9 9", "1 nan 9").replace("2e9", "nan"))[0] == [0.25], "without reference energies")
    check(str(losses(BOTH.replace("2e9", "nan"))[0]) == "[nan]", "a diverged energy")
    passed("the loss is the force error plus the weighted energy error, of the columns with reference data")

    def resumed(expected, listed):
        folder.write("checkpoint", listed)
        folder.write("lcurve.out", "#  step rmse_f_trn lr\n100 0.5 1e-3\n200 0.1")  # the kill came within a line
        found, said = losses("#  step rmse_f_trn lr\n200 0.125 1e-4\n", individual=RESUMES)
        check(f"dp train input.json{expected and ' --restart '}{expected}\n" in said, f"not '{expected}' after {listed!r}: {said}")
        check(found == ([0.5, 0.125] if expected else [0.125]), f"reported {found}")

    folder.write("model.ckpt-400.pt", "PK half of an archive")
    resumed("", "")
    for step in (300, 200):
        with zipfile.ZipFile(folder.write(f"model.ckpt-{step}.pt", ""), "w") as archive:
            archive.writestr("model.ckpt/data.pkl", "")
        os.utime(folder.path / f"model.ckpt-{step}.pt", (step, step))
    folder.write("model.ckpt-100.meta", "")
    resumed("model.ckpt-200.pt", "model.ckpt-200.pt")  # PyTorch's: no end of line
    resumed("model.ckpt-300.pt", "")
    resumed("model.ckpt-300.pt", "model.ckpt-500.pt")
    resumed("model.ckpt-100", 'model_checkpoint_path: "model.ckpt-200"\nall_model_checkpoint_paths: "model.ckpt-100"\nall_model_checkpoint_paths: "model.ckpt-200"\n')
    passed("a restart takes the newest complete checkpoint of TensorFlow or PyTorch, and continues the curve")

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
