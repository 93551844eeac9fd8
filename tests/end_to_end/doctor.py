"""Checks `finch doctor` on one and several ranks: its report, the problems that it names, and its exit code."""
import os

from harness import Folder, check, passed

with Folder() as folder:
    alone = folder.run(1, "doctor", expect=0)
    for part in ("Finch ", "HDF5", "oneDNN", "MPI threads", "driver" if "with CUDA" in alone else "not built"):
        check(part in alone, f"'{part}' is not in what the doctor says: {alone}")
    check("rank 1" not in alone, f"one rank has lines of others: {alone}")
    check(not os.listdir(folder.path), f"the doctor left files: {os.listdir(folder.path)}")
    passed("one rank: exit code 0 and versions")

    several = folder.run(3, "doctor", expect=0)
    check(all(several.count(f"  rank {rank} ") == 1 for rank in range(3)), f"not one line for each rank: {several}")
    check(several.count("libraries") == 1, f"not printed once: {several}")
    passed("three ranks: printed once, with a line for each")

    os.environ["SLURM_STEP_NUM_TASKS"] = "4"
    wrong = folder.run(0, "doctor", expect=1)
    check("--mpi=pmix" in wrong, f"the mend for srun without PMIx is not named: {wrong}")
    passed("srun without PMIx: exit code 1 and the mend")
