#!/usr/bin/env python3
"""Measures the memory of the ranks of one node for a data set of CIFAR-10's size, compared with ten images.

    tools/bench/shared_data.py [FINCH] [RANKS]

Adds up the proportional set sizes of all ranks while they train (PSS: a page that k processes share counts 1/k in each
process). Does this for 50 000 + 10 000 and for 10 + 10 images of 32 x 32 x 3 random bytes (training + test). Prints the
difference in multiples of the size of the large data set (184 MB).
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import h5py
import numpy

FINCH = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/finch")
RANKS = int(sys.argv[2]) if len(sys.argv) > 2 else 8
CONFIG = """
name: shared_data
data: {kind: hdf5, path: %s, training_samples: 5, validation_samples: 5}
model: [flatten, linear: {units: classes}]
training: {epochs: 1000000, batch_size: 5, optimizer: adadelta, learning_rate: $lr}
search:
  space: {lr: {real: [0.001, 0.01]}}
  objective: validation_loss
  budget: {evaluations: 1000}
workers: {threads: 1}
"""
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
OMPI_MCA_rmaps_base_oversubscribe="1",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_hwloc_base_binding_policy="none", PMIX_MCA_gds="hash")


def write_images(path, training, test):
    random = numpy.random.default_rng(1)
    with h5py.File(path, "w") as file:
        for group, count in (("training", training), ("test", test)):
            file[group + "/images"] = random.integers(0, 256, (count, 32, 32, 3), dtype=numpy.uint8)
            file[group + "/labels"] = (numpy.arange(count) % 10).astype(numpy.uint8)
            file[group + "/images"].attrs["axes"] = "NHWC"


def ranks_of(launcher):
    """Returns the process IDs of the ranks that `launcher`, an mpirun, started."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"\nPPid:\t{launcher}\n" in (entry / "status").read_text() and \
                    os.path.basename(os.readlink(entry / "exe")) == os.path.basename(FINCH):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def memory_of(pid):
    """Returns the memory of a process in bytes, by the names in smaps_rollup: Pss, Private_Dirty …"""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}


def total(folder, name):
    """Starts a run, waits until all ranks train, ends it, and returns the sum of their PSS."""
    (folder / f"{name}.yaml").write_text(CONFIG % (folder / f"{name}.h5"))
    with open(folder / "output", "w") as output:
        run = subprocess.Popen(["mpirun", "-n", str(RANKS), FINCH, "evolve", f"{name}.yaml", "--run", name], cwd=folder, env=ENVIRONMENT,
                               stdout=output, stderr=subprocess.STDOUT)
    state = folder / name / "state"
    # A worker's journal is not empty once the worker has started an individual.
    while sum(journal.stat().st_size > 0 for journal in state.glob("**/*.journal")) < RANKS:
        if run.poll() is not None:
            sys.exit((folder / "output").read_text())
        time.sleep(0.1)
    time.sleep(3)  # the first training steps
    ranks = ranks_of(run.pid)
    assert len(ranks) == RANKS, ranks
    memory = [memory_of(pid) for pid in ranks]
    run.terminate()
    run.wait()
    return sum(one["Pss"] for one in memory)


def main():
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as place:
        folder = pathlib.Path(place)
        write_images(folder / "ten.h5", 10, 10)
        write_images(folder / "all.h5", 50000, 10000)
        ten = total(folder, "ten")
        everything = total(folder, "all")
    data_set = 60000 * 32 * 32 * 3
    print(f"{RANKS} ranks: {ten / 1e6:.0f} MB on ten images, {everything / 1e6:.0f} MB on 60 000: "
          f"{(everything - ten) / data_set:.2f} data sets more")


if __name__ == "__main__":
    main()
