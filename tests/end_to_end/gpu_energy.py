"""Joules from the counters of GPUs: gpu_energy.py FINCH NVML, where FINCH is the program with stand-ins of CUDA's libraries
(tests/support/rehearsal) and NVML a library in place of the driver's, in which the first GPU takes 300 W and the second is not known."""
import os
import sys
import time

from harness import TINY, Folder, check, individuals, passed, words_of

GPU = TINY.replace("workers: {ranks: 2, islands: 2}", "workers: {ranks: 1, islands: 1, device: cuda, watts: 10}").replace("evaluations: 12", "evaluations: 6")
WATTS = 300

os.environ.update(FINCH_TEST_NVML=os.path.abspath(sys.argv[2]), FINCH_FAKE_NVML_WATTS=str(WATTS), FINCH_REHEARSAL_DEVICES="1",
                  FINCH_TEST_RAPL="/there/are/no/counters")


def trained(folder, ranks, run, *settings):
    """(log, seconds of training, joules, sources, seconds that finch ran)"""
    began = time.monotonic()
    log = folder.run(ranks, "evolve", "gpu.yaml", "--run", run, *settings)
    lasted = time.monotonic() - began
    rows, words = individuals(folder.path / run).values(), words_of(folder.path / run, "energy_source")
    return (log, sum(row["training_seconds"] for row in rows), sum(row["joules"] for row in rows), {words[row["energy_source"]] for row in rows}, lasted)


with Folder() as folder:
    folder.write("gpu.yaml", GPU)
    log, seconds, joules, sources, _ = trained(folder, 1, "runs/one")
    check("energy: measured by the GPUs (NVML)\n" in log and log.count("energy: ") == 1, log)
    check(sources == {"measured_gpu"} and 0.7 * WATTS * seconds < joules <= 1.001 * WATTS * seconds, f"{joules} J in {seconds} s: {sources}")
    check("measured on GPUs" in folder.run(0, "show", "runs/one"), "finch show does not say where the joules come from")
    passed(f"one rank on a GPU of {WATTS} W: {joules:.0f} J in {seconds:.1f} s of training")

    _, seconds, joules, _, lasted = trained(folder, 1, "runs/slots", "--set", "workers.slots=3")
    check(0.25 * WATTS * seconds < joules <= WATTS * lasted, f"three at once: {joules} J in {seconds} s of training, {lasted} s in all")
    passed("three at once take no more together than their GPU")

    _, seconds, joules, sources, lasted = trained(folder, 2, "runs/shared", "--set", "workers.share_device=true")
    check(sources == {"measured_gpu"} and 0.35 * WATTS * seconds < joules <= 0.501 * WATTS * seconds, f"two workers on a GPU: {joules} J in {seconds} s")
    passed("two workers on one GPU have half of it each")

    os.environ["FINCH_REHEARSAL_DEVICES"] = "2"
    log, _, _, sources, _ = trained(folder, 2, "runs/two")
    check(sources == {"measured_gpu", "estimated"}, f"{sources}")
    check("measured by the GPUs (NVML) on 1 of 2 ranks" in log and "on 1 of 2 ranks; NVML does not know the GPU" in log, log)
    both = folder.run(2, "evolve", "gpu.yaml", "--run", "runs/mixed", "--set", "workers.ranks=2")
    check(set(words_of(folder.path / "runs/mixed", "energy_source")[row["energy_source"]] for row in individuals(folder.path / "runs/mixed").values())
          == {"mixed"}, both)
    passed("a GPU that is not known has the estimate; a worker of both is mixed")

    devices = folder.run(1, "doctor")
    check("device 0 (NVML)    measured\n" in devices and "device 1 (NVML)    not measured: NVML does not know" in devices, devices)
    passed("the doctor knows which GPU is measured")
