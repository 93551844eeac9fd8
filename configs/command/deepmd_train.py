"""Runs `dp train input.json` in an evaluation's folder and hands its learning curve on to Finch; goes on from its last checkpoint.

The loss is the root mean square error of the forces on the validation set (eV/Angstrom); lcurve.out's other columns come with it.
Needs DeePMD-kit 3 (`pip install deepmd-kit[cpu]`), whose `dp` is on PATH.
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

CURVE = pathlib.Path("lcurve.out")
SAVED = pathlib.Path("checkpoint")  # TensorFlow's list of what it has saved, the newest last: all_model_checkpoint_paths: "model.ckpt-300"


def report_new_lines(seen, interval):
    """Reports the lines of the learning curve behind the first `seen`; returns how many complete ones there are."""
    lines = CURVE.read_text().split("\n")[:-1] if CURVE.exists() else []  # the last one may not be complete yet
    names = []
    for number, line in enumerate(lines):
        if line.startswith("#"):
            names = line[1:].split() if "rmse_f_val" in line else names
        elif number >= seen and int(line.split()[0]) > 0:
            row = dict(zip(names, map(float, line.split())))
            step = row.pop("step")
            finch.report(loss=row["rmse_f_val"], epoch=int(step) // interval, learning_rate=row.pop("lr"), **row)
    return len(lines)


def newest_whole():
    """The newest model.ckpt-STEP of an earlier start; None where there is none. (Its .meta is written last.)"""
    lines = SAVED.read_text().splitlines() if finch.resumes() and SAVED.exists() else []
    names = [line.split('"')[1] for line in lines if line.startswith("all_")]
    return next((name for name in reversed(names) if pathlib.Path(name + ".meta").exists()), None)


def main():
    interval = json.loads(pathlib.Path("input.json").read_text())["training"]["disp_freq"]
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    os.environ.update(DP_INTRA_OP_PARALLELISM_THREADS=threads, DP_INTER_OP_PARALLELISM_THREADS="1")
    newest = newest_whole()
    command = ["dp", "train", "input.json", *(["--restart", newest] if newest else [])]
    print(*command, flush=True)
    training = subprocess.Popen(command, stdout=sys.stderr)
    # What it saved last stands: it may end at once.
    signal.signal(signal.SIGUSR2, lambda *_: training.terminate())

    seen = report_new_lines(0, interval) if newest else 0
    while training.poll() is None:
        time.sleep(0.2)
        seen = report_new_lines(seen, interval)
    report_new_lines(seen, interval)
    sys.exit(max(training.returncode, 128 - training.returncode) if training.returncode < 0 else training.returncode)


main()
