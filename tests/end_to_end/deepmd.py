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


def train(folder, curve, options='"disp_freq": 100', individual="{}", words=(), **environment):
    """Runs deepmd_train.py with a fake dp that appends `curve` to lcurve.out (None: no file); returns the losses and the output."""
    folder.write("input.json", options if options.startswith(("{", "[")) else f'{{"training": {{{options}}}}}')
    folder.write("written", curve or "")
    folder.write("dp", "#!/bin/sh\n" + ("cat written >> lcurve.out\n" if curve is not None else "")).chmod(0o755)
    done = subprocess.run([sys.executable, SOURCE / "configs/gallery/deepmd_train.py", *words], cwd=folder.path, capture_output=True, text=True,
                          input=individual, env=dict(os.environ, PATH=f"{folder.path}:{os.environ['PATH']}", FINCH_ID="1", **environment))
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("finch ")]
    check("Traceback" not in done.stderr and (done.returncode == 0) == bool(lines), f"{done}")
    return [(line[2], float(line[1][len("loss="):])) for line in lines], done.stdout + done.stderr


NOTE = "# If there is no available reference data, rmse_*_{val,trn} will print nan\n"
with Folder() as folder:
    def refused(text, *arguments, **named):
        check(text in str(said := train(folder, *arguments, **named)[1]) and "finch loss" not in said, f"'{text}' is not in\n{said}")

    losses, said = train(folder, f"#  step rmse_val rmse_trn rmse_f_val rmse_f_trn lr\n{NOTE}1 9 9 9 9 1e-3\n100 1 2 0.5 0.25 1e-3\n", '"disp_freq": 100, "validation_data": {}')
    check(losses == [("epoch=1", 0.5)] and "no validation_data" not in said, said)
    losses, said = train(folder, f"#  step rmse_trn rmse_f_trn lr\n{NOTE}100 2 0.25 1e-3\n200 1 0.125 1e-4\n")
    check(losses == [("epoch=1", 0.25), ("epoch=2", 0.125)] and "the loss is the error on the training set" in said, said)
    refused("expected a column rmse_f_val or rmse_f_trn; its columns are step rmse_trn lr", "# step rmse_trn lr\n100 2 1e-3\n")
    refused("dp has written no learning curve", "")
    refused("was started by several ranks: set search.objective.launch: leader", None, WORLD_SIZE="2")
    for length in ("numb_steps", "num_epoch"):
        refused(f"no step that is a multiple of 100, of {length} 50", f"#  step rmse_trn rmse_f_trn lr\n{NOTE}1 2 0.25 1e-3\n", f'"disp_freq": 100, "{length}": 50')
    for options in ("{}", "[]", *(f'{{"training": {section}}}' for section in ("null", "[]", '{"disp_freq": 0}', '{"disp_freq": "100"}', '{"disp_freq": true}'))):
        refused("input.json: training" if "training" in options else "input.json: expected", "", options)
    folder.write("lcurve.out", "#  step rmse_trn rmse_f_trn lr\n100 2 0.25 1e-3\n")
    refused("dp has written no learning curve", None)
    passed("the loss is the validation error, else the training error with a note; a curve without either ends with one message")

    BOTH = "#  step rmse_e_val rmse_e_trn rmse_f_val rmse_f_trn lr\n1 9 9 9 9 1e-3\n100 2e9 0 0.25 0 1e-3\n"
    for loss, curve, weight in (("2000000000.25", BOTH, 1), ("0.25", BOTH, 0), ("nan", BOTH.replace("2e9", "nan"), 1),
                                ("0.25", BOTH.replace("2e9", "nan").replace("1 9", "1 nan"), 1)):  # no reference energies
        losses, said = train(folder, curve, words=("--energy-weight", str(weight)))
        check(str(losses[0][1]) == loss and "rmse_e_val=" in said, f"not {loss}: {said}")

    folder.write("model.ckpt-400.pt", "PK half of an archive")
    for step in (300, 200):
        zipfile.ZipFile(folder.write(f"model.ckpt-{step}.pt", ""), "w").close()
        os.utime(folder.path / f"model.ckpt-{step}.pt", (step, step))
    folder.write("model.ckpt-100.meta", "")
    for expected, listed in (("model.ckpt-200.pt", "model.ckpt-200.pt"), ("model.ckpt-300.pt", ""), ("model.ckpt-300.pt", "model.ckpt-500.pt"),
                             ("model.ckpt-100", "".join(f'all_model_checkpoint_paths: "model.ckpt-{step}"\n' for step in (100, 200)))):
        folder.write("checkpoint", listed)
        folder.write("lcurve.out", "#  step rmse_f_trn lr\n100 0.5 1e-3\n200 0.1")  # the kill came within a line
        losses, said = train(folder, "#  step rmse_f_trn lr\n200 0.125 1e-4\n", individual=json.dumps({"resume": True}))
        check(f"dp train input.json --restart {expected}\n" in said and losses == [("epoch=1", 0.5), ("epoch=2", 0.125)], said)
    passed("a restart takes the newest complete checkpoint of TensorFlow or PyTorch; the loss counts the energy error")

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

    process = folder.start(*command)
    wait_for(lambda: is_in_the_middle() or process.poll() is not None, "an epoch")
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGUSR2)
    check(end(process) == 75, f"USR2 ended with {process.returncode}\n{folder.output()}")
    folder.run(*command)

    rows, words = individuals(run), outcome_words(run)
    found = [(words[row["outcome"]], row["epochs"]) for row in rows.values()]
    check(found == [("evaluated", EPOCHS)] * BUDGET, f"{found}\n" + "\n".join(path.read_text()[-3000:] for path in run.glob("evaluations/*/*.errors")))
    check(any("--restart" in path.read_text() for path in run.glob("evaluations/*/*.output")), "nothing went on from its checkpoint")
    inputs = [json.loads(path.read_text())["model"]["descriptor"]["rcut"] for path in run.glob("evaluations/*/*/input.json")]
    check(len(inputs) == len(set(inputs)) == BUDGET, f"the cutoffs are {inputs}")
    best = min(row["loss"] for row in rows.values())
    check(best < 0.05, f"the best of {BUDGET} models has forces wrong by {best} eV/Angstrom")
    passed(f"{BUDGET} DeePMD-kit models, stopped in the middle and resumed; the best has forces wrong by {best:.4f} eV/Angstrom")
