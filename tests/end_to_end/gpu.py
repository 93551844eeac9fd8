"""Checks finch on CUDA devices: the CPU's results within rounding, slots, memory limits, communicators, resume.

    gpu.py FINCH [--real]

Without --real, FINCH is the program linked with stand-ins for CUDA's libraries (tests/support/rehearsal). The stand-ins
simulate FINCH_REHEARSAL_DEVICES devices of FINCH_REHEARSAL_MEMORY bytes each. With --real the test runs on the GPU of
this machine, and skips the checks that need several GPUs.
"""
import os
import signal
import sys
import time

from harness import SKIPPED, TINY, Folder, check, curves, end, end_of_short_form, individuals, outcome_words, passed, ranks_of, wait_for

REAL = "--real" in sys.argv
GPU = TINY.replace("workers: {ranks: 2, islands: 2}", "workers: {ranks: 1, islands: 1, device: cuda, timeout_seconds: 30}").replace(
    "evaluations: 12", "evaluations: 6")
# A small learning rate that does not amplify rounding errors: whole trainings on two devices can be compared.
CALM = GPU.replace("optimizer: adadelta, learning_rate: $lr", "optimizer: {sgd: {momentum: 0}}, learning_rate: 0.001").replace(
    "    lr: {real: [0.1, 1.0], scale: log}\n", "").replace("evaluations: 6", "evaluations: 3")
LONG = GPU.replace("samples: 600", "samples: 2000").replace("evaluations: 6", "evaluations: 1").replace("int: [1, 3]", "int: [2, 3]")
# Trains for some seconds on a CPU.
CALM_LONG = (CALM.replace("samples: 600, size: 12", "samples: 12000, size: 20").replace("epochs: 3", "epochs: 6")
             .replace("evaluations: 3", "evaluations: 1").replace("int: [1, 3]", "int: [3, 4]"))


# 17 channels, so that cuDNN computes the convolutions (Finch's own kernels take up to 16), and two of them, so that one
# computes the gradient of its input in float16. With batches of one sample and this rate, a very wrong prediction has a
# gradient that overflows float16 when it is multiplied by the loss scale 65536.
FLOAT16 = CALM.replace("samples: 600, size: 12, validation_samples: 203", "samples: 160, size: 8, validation_samples: 40").replace(
    "channels: 4", "channels: 17").replace("int: [1, 3]", "int: [2, 3]").replace("relu, sigmoid, tanh", "relu, leaky_relu").replace(
    "evaluations: 3", "evaluations: 2").replace(
    "epochs: 3, batch_size: 16, optimizer: {sgd: {momentum: 0}}, learning_rate: 0.001",
    "epochs: 2, batch_size: 1, optimizer: {sgd: {momentum: 0.9}}, learning_rate: 0.12, precision: float16")


def devices(count, memory=1 << 30):
    os.environ.update(FINCH_REHEARSAL_DEVICES=str(count), FINCH_REHEARSAL_MEMORY=str(memory))


def same_curves(one, other, tolerance):
    """True if two runs have the same individuals with equal curves; a tolerance of 0 means bitwise equal."""
    if list(one) != list(other):
        return False
    for individual in one:
        for a, b in zip(one[individual], other[individual], strict=True):
            for x, y in zip(a, b, strict=True):
                if x != y and not abs(x - y) <= tolerance * max(1.0, abs(y)):
                    return False
    return True


def outcomes(run):
    words = outcome_words(run)
    return [words[row["outcome"]] for row in individuals(run).values()]


def interrupted(folder, config, run, after, *settings):
    """Starts `run` and sends USR2 `after` seconds after the training began. Returns False if the run was complete
    before the signal."""
    process = folder.start(1, "evolve", config, "--run", run, *settings)
    journal = folder.path / run / "state/worker-00000.journal"
    wait_for(lambda: process.poll() is not None or (journal.exists() and journal.stat().st_size > 0), "the training")
    time.sleep(after)
    for pid in ranks_of(process) if process.poll() is None else []:
        os.kill(pid, signal.SIGUSR2)
    code = end(process)
    check(code in (0, 75), f"after USR2 finch ended with {code}\n{folder.output()}")
    return code == 75


with Folder() as folder:
    for name, text in (("gpu.yaml", GPU), ("calm.yaml", CALM), ("long.yaml", LONG), ("calm-long.yaml", CALM_LONG), ("float16.yaml", FLOAT16)):
        folder.write(name, text)

    devices(0)
    if not REAL:
        refused = folder.run(1, "evolve", "gpu.yaml", "--run", "runs/none", expect=2)
        check("workers.device" in refused and refused.count("finch: ") == 1, f"no device was not refused clearly: {refused}")
        check(not (folder.path / "runs/none").exists(), "a refused run left a directory")
        automatic = folder.run(1, "evolve", "gpu.yaml", "--run", "runs/auto", "--set", "workers.device=auto")
        check("cpu" in automatic.lower(), f"the log does not say that the CPU serves: {automatic}")
        passed("without a device, cuda ends with 2 and one message, and auto trains on the CPU and says so")

    devices(2)
    if REAL and "no CUDA device" in folder.run(1, "evolve", "calm.yaml", "--run", "runs/probe", "--set", "workers.device=auto",
                                               "--set", "search.budget.evaluations=1"):
        print("skipped: no CUDA device")
        sys.exit(SKIPPED)
    log = folder.run(1, "evolve", "gpu.yaml", "--run", "runs/gpu")
    check(outcomes(folder.path / "runs/gpu") == ["evaluated"] * 6, f"a search on a device: {outcomes(folder.path / 'runs/gpu')}")
    told = {bool(row["joules"] > 0) for row in individuals(folder.path / "runs/gpu").values()}
    check(told == {"energy: measured by the GPUs (NVML)" in log}, f"joules: {told}, but the log says otherwise: {log}")
    folder.run(1, "evolve", "gpu.yaml", "--run", "runs/again")
    check(same_curves(curves(folder.path / "runs/gpu"), curves(folder.path / "runs/again"), 0), "two runs differ in their bits")
    passed("a search on a device evaluates all, and a second one gives the same bits")

    folder.run(1, "evolve", "calm.yaml", "--run", "runs/calm-gpu")
    folder.run(1, "evolve", "calm.yaml", "--run", "runs/calm-cpu", "--set", "workers.device=cpu")
    check(same_curves(curves(folder.path / "runs/calm-gpu"), curves(folder.path / "runs/calm-cpu"), 1e-4), "device and CPU differ")
    passed("the device's curves are the CPU's within rounding")

    folder.run(1, "evolve", "gpu.yaml", "--run", "runs/slots", "--set", "workers.slots=4")
    check(outcomes(folder.path / "runs/slots") == ["evaluated"] * 6, f"4 slots: {outcomes(folder.path / 'runs/slots')}")
    identifier = str(next(iter(individuals(folder.path / "runs/slots"))))
    replayed = folder.run(1, "replay", "runs/slots", identifier)
    check("equal to the last bit" in replayed, f"an individual of 4 slots is not replayed alone: {replayed}")
    passed("four individuals at once on one device; one of them trained again alone gives the same bits")
    refused = folder.run(2, "evolve", "gpu.yaml", "--run", "runs/refused", "--set", "workers.slots=4", "--set", "workers.ranks=2",
                         "--set", "workers.share_device=true", expect=2)
    check("slots" in refused and refused.count("finch: ") == 1, f"slots with ranks were not refused clearly: {refused}")
    passed("several slots on a worker of several ranks end with 2 and the reason")

    check("float16" in FLOAT16 and "channels: 17" in FLOAT16 and "size: 8" in FLOAT16, "the configuration in float16 changes nothing")
    log = folder.run(1, "evolve", "float16.yaml", "--run", "runs/float16")
    ends = outcomes(folder.path / "runs/float16")
    check("evaluated" in ends, f"float16: {ends}")
    check(REAL or "of its steps, whose gradients overflowed float16" in log, f"no step was skipped in float16: {log}")
    identifier = str(list(individuals(folder.path / "runs/float16"))[ends.index("evaluated")])
    check("equal to the last bit" in folder.run(1, "replay", "runs/float16", identifier), "a training in float16 does not repeat its bits")
    refused = folder.run(1, "evolve", "float16.yaml", "--run", "runs/float16-cpu", "--set", "workers.device=cpu", expect=2)
    check("training.precision: float16 needs GPUs" in refused, f"float16 on a CPU was not refused clearly: {refused}")
    passed("a search in float16 skips steps, says so, and repeats its bits; a CPU refuses it")

    if not REAL:
        end_of_short_form()
    shared = ["--set", "workers.ranks=2", "--set", "workers.share_device=true"]
    folder.run(2, "evolve", "calm.yaml", "--run", "runs/staged", "--set", "workers.communicator=staged", *shared)
    check(same_curves(curves(folder.path / "runs/staged"), curves(folder.path / "runs/calm-gpu"), 1e-4), "staged differs from one rank")
    passed("two ranks on one device by staged sums give one rank's curves")
    if not REAL:
        folder.run(2, "evolve", "calm.yaml", "--run", "runs/nccl", "--set", "workers.ranks=2", "--set", "workers.communicator=nccl")
        check(same_curves(curves(folder.path / "runs/nccl"), curves(folder.path / "runs/calm-gpu"), 1e-4), "NCCL differs from one rank")
        devices(1)
        refused = folder.run(2, "evolve", "gpu.yaml", "--run", "runs/two", expect=2)
        check("share_device" in refused and refused.count("finch: ") == 1, f"two ranks on one device were not refused clearly: {refused}")
        devices(2)
        passed("two ranks by NCCL give one rank's curves; two ranks on one device are refused")

    folder.run(1, "evolve", "long.yaml", "--run", "runs/straight")
    straight = curves(folder.path / "runs/straight")
    stops = 0
    while stops < 3 and interrupted(folder, "long.yaml", "runs/broken", 0.2 + 0.4 * stops):
        stops += 1
    check(stops > 0, "the run was never interrupted")
    folder.run(1, "evolve", "long.yaml", "--run", "runs/broken")
    check(same_curves(curves(folder.path / "runs/broken"), straight, 0), "USR2 in mid-epoch changed the bits")
    passed(f"USR2 in mid-epoch, {stops} times: the same bits as without")

    on_cpu = ["--set", "workers.device=cpu"]
    there = interrupted(folder, "calm-long.yaml", "runs/cross", 0.3, *on_cpu)
    back = interrupted(folder, "calm-long.yaml", "runs/cross", 0.5)
    folder.run(1, "evolve", "calm-long.yaml", "--run", "runs/cross", *on_cpu)
    folder.run(1, "evolve", "calm-long.yaml", "--run", "runs/calm", *on_cpu)
    check(there, "the training ended before it could change its device")
    check(same_curves(curves(folder.path / "runs/cross"), curves(folder.path / "runs/calm"), 1e-4), "changing devices changed the curve")
    passed(f"a training begun on the CPU goes on on the device{' and back' if back else ''}, with the same curve within rounding")

    if not REAL:
        devices(1, 3 << 20)
        large = ["--set", "search.space.width={int: [4, 400]}", "--set", "model.0.conv.channels=$width"]
        folder.run(1, "evolve", "gpu.yaml", "--run", "runs/memory", *large, "--set", "workers.slots=3", "--set", "search.budget.evaluations=12")
        ends = outcomes(folder.path / "runs/memory")
        check(set(ends) == {"evaluated", "out_of_memory"}, f"with 3 MiB of memory: {ends}")
        passed(f"a device too small for {ends.count('out_of_memory')} of 12 individuals trains the others")
