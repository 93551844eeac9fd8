"""deepmd_train.py: runs `dp train input.json` in the folder of an evaluation and reports its learning curve to Finch.

If an earlier start of the run wrote a checkpoint, the training resumes from its newest checkpoint.

The loss is the root mean square error of the forces (eV/Angstrom) plus `--energy-weight` (1 by default) times the
error of the energies (eV/atom). Both are errors on the validation set, or on the training set if there is no validation
set. All columns of lcurve.out are metrics, so a search can have two objectives: `objectives: [loss,
metric.rmse_e_val]` with `--energy-weight 0`.

Needs DeePMD-kit 3 with its program `dp` on PATH, and one process per model (`launch: leader`). `pip install
deepmd-kit[cpu]` uses TensorFlow. For PyTorch, install deepmd-kit[torch] and export DP_BACKEND=pytorch.
"""
import argparse
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import finch_objective as finch  # noqa: E402

LENGTHS = ("numb_steps", "stop_batch", "num_steps", "num_step", "numb_step", "num_epoch", "num_epochs", "numb_epoch", "numb_epochs")


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


def complete_lines(curve):
    return curve.read_text().split("\n")[:-1] if curve.exists() else []  # the last line may be incomplete


def loss_of(row, energy_weight, without_data):
    """Returns the weighted sum of the errors that the row has, or None if it has none of them."""
    weights = {"rmse_f": 1.0, **({"rmse_e": energy_weight} if energy_weight else {})}
    columns = {kind: next((kind + end for end in ("_val", "_trn") if kind + end in row), None) for kind in weights}
    errors = [(column, weights[kind] * row[column]) for kind, column in columns.items() if column]
    return sum([error for column, error in errors if column not in without_data] or [math.nan]) if errors else None


def report_new_lines(curve, seen, interval, energy_weight):
    """Reports the lines of the learning curve after the first `seen` lines. Returns the number of complete lines, and
    the number of lines that it reported."""
    lines, names, without_data, reports = complete_lines(curve), [], None, 0
    for number, line in enumerate(lines):
        words = line.lstrip("#").split()
        if line.startswith("#"):
            names = words if words[:1] == ["step"] else names
            continue
        row = dict(zip(names or ["step"], map(float, words)))
        if without_data is None:  # a column without reference data is NaN from the first line on
            without_data = {name for name, value in row.items() if math.isnan(value)}
        if number >= seen and row and row["step"] > 0 and row["step"] % interval == 0:
            loss = loss_of(row, energy_weight, without_data)
            if loss is None:
                sys.exit(f"{curve}: expected a column rmse_f_val or rmse_f_trn; its columns are {' '.join(names) or 'not named'}")
            finch.report(loss=loss, epoch=int(row.pop("step")) // interval, learning_rate=row.pop("lr"), **row)
            reports += 1
    return len(lines), reports


def newest_whole(options):
    """Returns the newest complete checkpoint of an earlier start, or None.

    TensorFlow's file `checkpoint` has lines such as: all_model_checkpoint_paths: "model.ckpt-300", the newest last; the
    .meta file is written last. Other backends write the plain name of the newest checkpoint, such as model.ckpt-300.pt,
    once it is complete. If a kill left this file empty, PyTorch's newest complete file is used: a ZIP archive.
    """
    prefix = pathlib.Path(options.get("save_ckpt", "model.ckpt"))
    for listing in (pathlib.Path("checkpoint"), prefix.parent / "checkpoint") if finch.resumes() else ():
        text = listing.read_text() if listing.exists() else ""
        listed = [line.split('"')[1] + ".meta" for line in text.splitlines() if line.startswith("all_")] or [text.strip()]
        found = next((name for name in reversed(listed) if name and (listing.parent / name).exists()), None)
        if found:
            return str(listing.parent / found).removesuffix(".meta")
    archives = pathlib.Path(options.get("save_dir") or prefix.parent).glob(f"{prefix.name}-*.pt") if finch.resumes() else ()
    return max((str(path) for path in archives if zipfile.is_zipfile(path)), key=os.path.getmtime, default=None)


def read_energy_weight():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--energy-weight", type=float, default=1)
    return parser.parse_args().energy_weight


def main():
    energy_weight = read_energy_weight()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        sys.exit("deepmd_train.py trains one model in one process, and was started by several ranks: set search.objective.launch: leader")
    options = training_options()
    interval, curve = options["disp_freq"], pathlib.Path(options.get("disp_file", "lcurve.out"))
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    os.environ.update(DP_INTRA_OP_PARALLELISM_THREADS=threads, DP_INTER_OP_PARALLELISM_THREADS="1")
    if "validation_data" not in options:
        print("input.json has no validation_data: the loss is the error on the training set", file=sys.stderr)
    newest = newest_whole(options)
    if newest:  # dp appends to the curve of the earlier start, which may end within a line
        curve.write_text("".join(line + "\n" for line in complete_lines(curve)))
    else:
        curve.unlink(missing_ok=True)  # left by an earlier start without a checkpoint
    command = ["dp", "train", "input.json", *(["--restart", newest] if newest else [])]
    print(*command, flush=True)
    try:
        training = subprocess.Popen(command, stdout=sys.stderr)
    except OSError as error:
        sys.exit(f"dp: cannot be started ({error.strerror}); expected DeePMD-kit on PATH: pip install deepmd-kit[cpu] or deepmd-kit[torch]")
    # On a stop, dp may end immediately: its last checkpoint is complete.
    signal.signal(signal.SIGUSR2, lambda *_: training.terminate())

    try:
        seen, reports = report_new_lines(curve, 0, interval, energy_weight) if newest else (0, 0)
        has_ended = False
        while not has_ended:
            has_ended = training.poll() is not None
            time.sleep(0 if has_ended else 0.2)
            seen, new = report_new_lines(curve, seen, interval, energy_weight)
            reports += new
    finally:
        training.terminate()  # dp still runs only if report_new_lines() raised
    if training.returncode == 0 and reports == 0:
        length = next((f"{name} {options[name]}" for name in LENGTHS if name in options), "the training")
        steps = f"no step that is a multiple of {interval}, of {length}"
        what = "no learning curve" if seen == 0 else steps
        sys.exit(f"{curve}: dp has written {what}; expected a line each {interval} steps (training.disp_freq)")
    sys.exit(max(training.returncode, 128 - training.returncode) if training.returncode < 0 else training.returncode)


main()
