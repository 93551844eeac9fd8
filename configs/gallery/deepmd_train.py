"""deepmd_train.py: runs `dp train input.json` in the folder of an evaluation and reports its learning curve to Finch.

If an earlier start of the run wrote a checkpoint, the training resumes from its newest checkpoint. The loss is the root
mean square error of the forces (eV/Angstrom) on the validation set, or on the training set if there is no validation
set. The other columns of lcurve.out are reported as metrics. Needs DeePMD-kit 3 (`pip install deepmd-kit[cpu]`) with
its program `dp` on PATH.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import finch_objective as finch  # noqa: E402

# TensorFlow's list of checkpoints, the newest last. It has lines such as: all_model_checkpoint_paths: "model.ckpt-300"
SAVED = pathlib.Path("checkpoint")
LOSSES = ("rmse_f_val", "rmse_f_trn")  # the loss is the first of these columns that exists


def training_options():
    try:
        options = json.loads(pathlib.Path("input.json").read_text())["training"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"input.json: expected DeePMD-kit's input with a section `training` ({type(error).__name__}: {error})")
    if not isinstance(options, dict):
        sys.exit(f"input.json: training is {json.dumps(options)}; expected a section with keys")
    interval = options.setdefault("disp_freq", 1000)
    if type(interval) is not int or interval < 1:
        sys.exit(f"input.json: training.disp_freq is {json.dumps(interval)}; expected a whole number of steps, from 1")
    return options


def report_new_lines(curve, seen, interval):
    """Reports the lines of the learning curve after the first `seen` lines. Returns the number of complete lines, and
    the number of lines that it reported."""
    lines = curve.read_text().split("\n")[:-1] if curve.exists() else []  # the last line may be incomplete
    names, reports = [], 0
    for number, line in enumerate(lines):
        words = line.lstrip("#").split()
        if line.startswith("#"):
            names = words if words[:1] == ["step"] else names
        elif number >= seen and words and int(words[0]) > 0 and int(words[0]) % interval == 0:
            row = dict(zip(names, map(float, words)))
            loss = next((name for name in LOSSES if name in row), None)
            if loss is None:
                sys.exit(f"{curve}: expected a column {' or '.join(LOSSES)}; its columns are {' '.join(names) or 'not named'}")
            step = row.pop("step")
            finch.report(loss=row[loss], epoch=int(step) // interval, learning_rate=row.pop("lr"), **row)
            reports += 1
    return len(lines), reports


def newest_whole():
    """Returns the newest complete model.ckpt-STEP of an earlier start, or None. TensorFlow writes the .meta file
    last."""
    lines = SAVED.read_text().splitlines() if finch.resumes() and SAVED.exists() else []
    names = [line.split('"')[1] for line in lines if line.startswith("all_")]
    return next((name for name in reversed(names) if pathlib.Path(name + ".meta").exists()), None)


def main():
    options = training_options()
    interval, curve = options["disp_freq"], pathlib.Path(options.get("disp_file", "lcurve.out"))
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    os.environ.update(DP_INTRA_OP_PARALLELISM_THREADS=threads, DP_INTER_OP_PARALLELISM_THREADS="1")
    if "validation_data" not in options:
        print("input.json has no validation_data: the loss is the error on the training set", file=sys.stderr)
    newest = newest_whole()
    if not newest:
        curve.unlink(missing_ok=True)  # left by an earlier start without a checkpoint
    command = ["dp", "train", "input.json", *(["--restart", newest] if newest else [])]
    print(*command, flush=True)
    try:
        training = subprocess.Popen(command, stdout=sys.stderr)
    except OSError as error:
        sys.exit(f"dp: cannot be started ({error.strerror}); expected DeePMD-kit on PATH: pip install deepmd-kit[cpu]")
    # On a stop, dp may end immediately: its last checkpoint is complete.
    signal.signal(signal.SIGUSR2, lambda *_: training.terminate())

    try:
        seen, reports = report_new_lines(curve, 0, interval) if newest else (0, 0)
        has_ended = False
        while not has_ended:
            has_ended = training.poll() is not None
            time.sleep(0 if has_ended else 0.2)
            seen, new = report_new_lines(curve, seen, interval)
            reports += new
    finally:
        training.terminate()  # dp still runs only if report_new_lines() raised
    if training.returncode == 0 and reports == 0:
        steps = f"no step that is a multiple of {interval}, of numb_steps {options.get('numb_steps')}"
        what = "no learning curve" if seen == 0 else steps
        sys.exit(f"{curve}: dp has written {what}; expected a line each {interval} steps (training.disp_freq)")
    sys.exit(max(training.returncode, 128 - training.returncode) if training.returncode < 0 else training.returncode)


main()
