#!/usr/bin/env python3
"""Compares the processor time of one training step in Finch and PyTorch, on one thread of a CPU.

    tools/bench/step.py [BENCH_STEP] [REPETITIONS] [CASE ...]       (ninja -C build bench_step)

A case is "NET BATCH". NET is the number of layers of the tutorial's network, `wide`, `residual` or `wide_residual`
(tools/bench/step.cpp). A step is forward, loss, backward and optimizer on a batch in memory. The times are processor
times: other work on the machine changes them less than wall times. PyTorch runs eagerly: with its defaults (NCHW), with
channels_last, and with channels_last in bfloat16 by autocast. Finch runs in float32, and in bfloat16 if the processor
supports it. The programs take turns. A ratio is PyTorch's time over Finch's time, of the same precision and turn. Start
the script with the python that has the PyTorch to be measured.
"""
import contextlib
import os
import statistics
import subprocess
import sys
import time

import torch

from networks import modules_of, optimizer_of

PROGRAM = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/bench_step")
REPETITIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 9
CASES = sys.argv[3:] or [f"{net} {batch}" for net, batches in {"2": (8, 64, 256), "6": (8, 64, 256), "10": (8, 64, 256), "wide": (8, 32, 128), "residual": (32, 128)}.items()
                         for batch in batches]

torch.set_num_threads(1)


class Finch:
    def __init__(self, precision):
        self.process = subprocess.Popen([PROGRAM, "--precision", precision], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
        self.can = self.seconds("2 1", 1) is not None

    def seconds(self, case, steps):
        clock = ~self.process.pid << 3 | 2  # clock_getcpuclockid(3)
        try:
            begin = time.clock_gettime(clock)
            self.process.stdin.write(f"{case} {steps}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            return (time.clock_gettime(clock) - begin) / steps if answer else None
        except OSError:
            return None


class PyTorch:
    def __init__(self, case, memory_format, bfloat16):
        net, batch = case.split()
        shape, modules = modules_of(net)
        self.bfloat16 = bfloat16
        self.model = torch.nn.Sequential(*modules).to(memory_format=memory_format)
        self.optimizer = optimizer_of(net, self.model.parameters())
        self.images = torch.randn(int(batch), *shape).to(memory_format=memory_format)
        self.labels = torch.randint(10, (int(batch),))

    def seconds(self, steps):
        begin = time.process_time()
        for _ in range(steps):
            self.optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16) if self.bfloat16 else contextlib.nullcontext():
                loss = torch.nn.functional.cross_entropy(self.model(self.images), self.labels)
            loss.backward()
            self.optimizer.step()
        return (time.process_time() - begin) / steps


def spread(values, unit=1000):
    return f"{unit * statistics.median(values):.2f} [{unit * min(values):.2f} … {unit * max(values):.2f}]"


def ratios(above, below):
    return spread([a / b for a, b in zip(above, below)], 1)


def main():
    finch = {precision: program for precision in ("float32", "bfloat16") if (program := Finch(precision)).can}
    print(f"PyTorch {torch.__version__}, 1 thread each, {REPETITIONS} turns, ms of processor time per step: median [least … most]")
    if "bfloat16" not in finch:
        print("bench_step has no bfloat16 on this processor")
    for case in CASES:
        net, batch = case.split()
        cost = int(batch) * ({"wide": 50, "residual": 50, "wide_residual": 200}.get(net) or int(net))
        steps = max(1, 1600 // cost)
        nets = {"default": PyTorch(case, torch.contiguous_format, False), "channels_last": PyTorch(case, torch.channels_last, False),
                "bfloat16": PyTorch(case, torch.channels_last, True)}
        every = {("Finch", name): lambda name=name: finch[name].seconds(case, 2 * steps) for name in finch}
        every |= {("PyTorch", name): lambda net=net: net.seconds(steps) for name, net in nets.items()}
        for measure in every.values():
            measure()
        times = {who: [] for who in every}
        for _ in range(REPETITIONS):
            for who, measure in every.items():
                times[who].append(measure())
        print(f"{net}, B = {batch}")
        for who, values in times.items():
            print(f"    {who[0]:8}{who[1]:14}{spread(values)}")
        print(f"    PyTorch / Finch, float32: {ratios(times['PyTorch', 'default'], times['Finch', 'float32'])}, "
              f"channels_last {ratios(times['PyTorch', 'channels_last'], times['Finch', 'float32'])}")
        if "bfloat16" in finch:
            print(f"    PyTorch / Finch, bfloat16: {ratios(times['PyTorch', 'bfloat16'], times['Finch', 'bfloat16'])}; "
                  f"float32 / bfloat16 of Finch: {ratios(times['Finch', 'float32'], times['Finch', 'bfloat16'])}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
