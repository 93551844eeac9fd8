#!/usr/bin/env python3
"""One training step of the tutorial's network on one thread: Finch beside PyTorch, in turn, in one run.

    tools/bench/step.py [BENCH_STEP] [REPETITIONS]       (ninja -C build bench_step)

Forward, loss, backward and Adadelta on a batch that is in memory. PyTorch runs with its defaults (eager, NCHW). Run it with the python
whose PyTorch is to be measured.
"""
import os
import statistics
import subprocess
import sys
import time

import torch

PROGRAM = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/bench_step")
REPETITIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 9
CASES = [(layers, batch) for layers in (2, 6, 10) for batch in (8, 64, 256)]

torch.set_num_threads(1)
finch = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))


def finch_seconds(layers, batch, steps):
    finch.stdin.write(f"{layers} {batch} {steps}\n")
    finch.stdin.flush()
    return float(finch.stdout.readline())


class Net:
    def __init__(self, layers, batch):
        modules, channels = [], 1
        for _ in range(layers):
            modules += [torch.nn.Conv2d(channels, 10, 3, padding=1), torch.nn.ReLU()]
            channels = 10
        self.model = torch.nn.Sequential(*modules, torch.nn.Flatten(), torch.nn.Linear(7840, 10))
        self.optimizer = torch.optim.Adadelta(self.model.parameters(), lr=0.1)
        self.images, self.labels = torch.randn(batch, 1, 28, 28), torch.randint(10, (batch,))

    def seconds(self, steps):
        begin = time.perf_counter()
        for _ in range(steps):
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(self.images), self.labels).backward()
            self.optimizer.step()
        return (time.perf_counter() - begin) / steps


def spread(values, unit=1000):
    return f"{unit * statistics.median(values):8.2f} [{unit * min(values):.2f} … {unit * max(values):.2f}]"


print(f"PyTorch {torch.__version__}, 1 thread each, {REPETITIONS} turns, ms per step: median [least … most]", flush=True)
for layers, batch in CASES:
    steps = max(1, 320 // (batch * layers // 2))
    net = Net(layers, batch)
    net.seconds(1)
    finch_seconds(layers, batch, 1)
    ours, theirs = [], []
    for _ in range(REPETITIONS):
        ours.append(finch_seconds(layers, batch, 2 * steps))
        theirs.append(net.seconds(steps))
    ratios = [b / a for a, b in zip(ours, theirs)]
    print(f"L = {layers:2}, B = {batch:3}: Finch {spread(ours)}, PyTorch {spread(theirs)}, ratio {spread(ratios, 1)}", flush=True)
finch.stdin.close()
finch.wait()
