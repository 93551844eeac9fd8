"""Shared functions of the scenarios: start finch under mpirun in a temporary folder, and read the files of a run."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py

FINCH = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "finch"
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
BEGUN = time.monotonic()

# Keys of `search`: a program that measures nothing but noise, with other digits each time.
NOISY = """objective: {shell: true, command: "echo finch loss=0.$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"}, space: {x: {real: [0, 1]}}"""
TINY = """
name: tiny
seed: 3
data: {kind: generated, samples: 600, size: 12, validation_samples: 203, normalize: {mean: 0.13, deviation: 0.31}}
model:
  - conv: {channels: 4, kernel: 3, activation: $activation, repeat: $layers}
  - max_pool: {kernel: 2}
  - flatten
  - linear: {units: classes}
training: {epochs: 3, batch_size: 16, optimizer: adadelta, learning_rate: $lr}
search:
  space:
    layers: {int: [1, 3]}
    activation: {choice: [relu, sigmoid, tanh]}
    lr: {real: [0.1, 1.0], scale: log}
  objective: validation_loss
  propagator: {genetic: {population: 4}}
  budget: {evaluations: 12}
workers: {ranks: 2, islands: 2}
checkpoint: {archive_seconds: 0.2, training_seconds: 0.5}
"""


IS_NIGHT = os.environ.get("FINCH_NIGHT") == "1"  # for complete scenarios; tools/test.sh --night sets it


def end_of_short_form():
    """Ends the scenario unless FINCH_NIGHT=1: the remaining checks take long, or repeat checks of other tests in more
    detail."""
    if not IS_NIGHT:
        print("the rest of this scenario is left to the night (FINCH_NIGHT=1)", flush=True)
        sys.exit(0)


MPI_SETTINGS = dict(re.findall("^export (.*?)=(.*)", (SOURCE / "tools/mpi_settings.sh").read_text(), re.MULTILINE))


def environment():
    return dict(os.environ, **MPI_SETTINGS, HDF5_USE_FILE_LOCKING="FALSE")


class Folder:
    """A temporary folder for one scenario; it is removed at the end of the `with` block."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="finch-"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name, text):
        (self.path / name).write_text(text)
        return self.path / name

    def command(self, ranks, *arguments):
        launcher = ["mpirun", "-n", str(ranks)] if ranks else []
        return launcher + [FINCH, *map(str, arguments)]

    def run(self, ranks, *arguments, expect=0, timeout=600):
        """Runs finch to its end and returns its output. Fails the test if the exit code is not `expect`, or if finch
        prints nothing for `timeout` seconds. The total time has no limit: the machine may be busy."""
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(self.command(ranks, *arguments), cwd=self.path, env=environment(), text=True, stdout=output,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            said, heard = 0, time.time()
            while True:
                try:
                    code = process.wait(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    size = os.fstat(output.fileno()).st_size
                    said, heard = (size, time.time()) if size > said else (said, heard)
                    if time.time() > heard + timeout:
                        kill(process)
                        check(False, f"finch {arguments} was silent for {timeout} s")
            output.seek(0)
            text = output.read()
        check(code == expect, f"finch {arguments}: exit code {code}, expected {expect}\n{text}")
        return text

    def start(self, ranks, *arguments):
        return subprocess.Popen(self.command(ranks, *arguments), cwd=self.path, env=environment(), text=True,
                                stdout=open(self.path / "output", "a"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def output(self):
        return (self.path / "output").read_text()


def check(claim, text):
    if not claim:
        print("FAILED:", text, flush=True)
        sys.exit(1)


def passed(text):
    print(f"passed: {text} [{time.monotonic() - BEGUN:.0f} s]", flush=True)


def individuals(run):
    """Returns {id: row} of the data set /individuals."""
    with h5py.File(pathlib.Path(run) / "population.h5", "r") as file:
        rows = file["individuals"][:]
    check(len(set(rows["id"].tolist())) == len(rows), f"{run}: an id stands twice in /individuals")
    return {row["id"]: row for row in rows}


def words_of(run, column):
    with h5py.File(pathlib.Path(run) / "population.h5", "r") as file:
        numbers = h5py.check_enum_dtype(file["individuals"].dtype[column])
    return {number: word for word, number in numbers.items()}


def outcome_words(run):
    return words_of(run, "outcome")


def curves(run):
    """Returns {individual: [row of each epoch]} with the exact losses, accuracies and learning rates, without the
    seconds."""
    with h5py.File(pathlib.Path(run) / "population.h5", "r") as file:
        rows = file["curves"][:]
    table = {}
    for row in rows:
        table.setdefault(row["individual"], []).append(
            tuple(row[name] for name in ("epoch", "training_loss", "training_accuracy", "validation_loss",
                                         "validation_accuracy", "validation_f1", "learning_rate")))
    return table


def ranks_of(process):
    """Returns the process ids of the finch ranks that `process` (an mpirun) started."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                status = (entry / "status").read_text()
            except OSError:
                continue
            parent = next((line.split()[1] for line in status.splitlines() if line.startswith("PPid:")), "")
            if parent == str(process.pid) and words and words[0].decode() == FINCH:
                found.append(int(entry.name))
    return sorted(found)


def listens(pid, number=signal.SIGUSR2):
    """True if the process has a handler for signal `number`. A process cannot have this handler before main()."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    caught = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
    return bool(caught >> (number - 1) & 1)


def has_handled(pid, number):
    """True if signal `number` is not pending and its handler does not run (a running handler blocks the signal)."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    waiting = [int(line.split()[1], 16) for line in status if line.startswith(("SigPnd", "ShdPnd", "SigBlk"))]
    return not any(signals >> (number - 1) & 1 for signals in waiting)


HANG_SECONDS = 900  # a longer wait counts as a hang; shorter waits are normal on a busy machine


def wait_for(condition, text):
    end = time.time() + HANG_SECONDS
    while not condition():
        check(time.time() < end, f"waited {HANG_SECONDS} s for {text}, which did not come")
        time.sleep(0.02)


# The first snapshot comes at the beginning of a training, however fast the machine is.
SOON = ("--set", "checkpoint.training_seconds=0.01")


def stop_in_training(folder, run, *arguments):
    """Starts `finch evolve` on two ranks, and stops it by USR2 once a training has a snapshot."""
    process = folder.start(2, "evolve", *arguments, "--run", run, *SOON)
    wait_for(lambda: list((folder.path / run).glob("state/training-*.h5")) or process.poll() is not None, "a snapshot")
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGUSR2)
    check(end(process) == 75, f"a start that USR2 stopped\n{folder.output()}")


def write_hdf5(path, parts):
    """Writes an HDF5 file with one data set for each entry of `parts`, {name: values}."""
    with h5py.File(path, "w") as file:
        for name, values in parts.items():
            file[name] = values


def set_of(group, images, answers):
    """Returns the images and labels of one group (training, validation or test) as `parts` of write_hdf5()."""
    return {f"{group}/images": images, f"{group}/labels": answers}


def kill(process):
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGKILL)
    process.kill()


def search_with_kills(folder, config, run):
    """Runs a search on two ranks to its end, after three kills, each after the start of an heir."""
    for number in range(3):
        said = folder.output().count(" continues ") if number else 0
        process = folder.start(2, "evolve", config, "--run", run)
        wait_for(lambda: folder.output().count(" continues ") > said or process.poll() is not None, "an heir")
        kill(process)
        end(process)
    folder.run(2, "evolve", config, "--run", run)


def end(process):
    """Waits for `process`. If it does not end, kills it and fails the test."""
    try:
        return process.wait(timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired:
        kill(process)
        check(False, f"finch did not end within {HANG_SECONDS} s")
