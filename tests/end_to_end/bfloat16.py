"""Checks `training.precision: bfloat16` on CPUs. A replay of the best individual must give the same bits. If the
processor of a rank lacks bfloat16, Finch refuses to start or resume the run, and names the node and the processor."""
import os
import stat
import sys

from harness import FINCH, SKIPPED, TINY, Folder, check, individuals, passed

# The layers are wide enough that convolutions and the first linear layer compute in bfloat16.
WIDE = TINY.replace("  - linear: {units: classes}", "  - linear: {units: 40, activation: relu}\n  - linear: {units: classes}").replace(
    "epochs: 3,", "epochs: 3, precision: bfloat16,")
LACK = "training.precision: bfloat16 needs AVX512-BF16 or AMX, and the processor of"


def without(folder, ranks, expect, *arguments, lacking="01234567"):
    """Calls folder.run() and hides bfloat16 from oneDNN on the world ranks in `lacking`."""
    wrapper = folder.write("lacking.sh", f"""#!/bin/sh
case "{lacking}" in *"${{OMPI_COMM_WORLD_RANK:-0}}"*) export DNNL_MAX_CPU_ISA=AVX2;; esac
exec {FINCH} "$@"
""")
    os.chmod(wrapper, stat.S_IRWXU)
    command, folder.command = folder.command, lambda n, *a: (["mpirun", "-n", str(n)] if n else []) + [str(wrapper), *map(str, a)]
    try:
        return folder.run(ranks, *arguments, expect=expect)
    finally:
        folder.command = command


with Folder() as folder:
    check(WIDE.count("bfloat16") == 1 and "units: 40" in WIDE, "the configuration changes nothing")
    folder.write("wide.yaml", WIDE)
    four = ("--nodes", "1", "--ranks-per-node", "4")
    check("remark: training.precision: bfloat16 needs AVX512-BF16 or AMX" in without(folder, 0, 0, "plan", "wide.yaml", *four),
          "plan says nothing of a machine that lacks bfloat16")
    check(LACK in without(folder, 4, 2, "evolve", "wide.yaml"), "no processor is named that lacks bfloat16")
    if "no bfloat16" in folder.run(0, "doctor"):
        print("skipped: this processor has neither AVX512-BF16 nor AMX")
        sys.exit(SKIPPED)
    check("remark: training.precision" not in folder.run(0, "plan", "wide.yaml", *four), "plan has a remark on a machine that has bfloat16")
    check(LACK in without(folder, 4, 2, "evolve", "wide.yaml", lacking="3"), "one rank of four lacks bfloat16, and nobody says so")
    check(not (folder.path / "runs").exists(), "a refused start left a run directory")

    folder.run(4, "evolve", "wide.yaml", "--set", "search.budget.evaluations=6")
    rows = individuals(folder.path / "runs/tiny")
    check(len(rows) == 6, f"6 evaluations were asked for, {len(rows)} are there")
    check(LACK in without(folder, 4, 2, "evolve", "wide.yaml"), "a run in bfloat16 goes on where the processor lacks it")
    folder.run(4, "evolve", "wide.yaml")
    rows = individuals(folder.path / "runs/tiny")
    check(len(rows) == 12, f"12 evaluations were asked for, {len(rows)} are there")
    best = min(rows.values(), key=lambda row: row["loss"])
    replayed = folder.run(2, "replay", "runs/tiny", best["id"])
    check("equal to the last bit" in replayed, f"the best individual does not repeat its bits\n{replayed}")
    passed(f"12 evaluations in bfloat16; the best has a loss of {best['loss']:.3f}")
