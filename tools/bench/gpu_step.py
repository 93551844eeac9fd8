#!/usr/bin/env python3
"""Compares the speed of training steps of the tutorial's network in Finch and PyTorch, on a GPU.

    tools/bench/gpu_step.py [--program build/bench_step] [--device cuda|cpu] [--turns 7] [--budget SECONDS] ...

A step is forward, loss, backward and Adadelta of a network with L convolutions, on a batch of B images. Finch and
PyTorch take turns in one run. Finch runs recorded steps over a data set on the device; the time includes the gathering
of each batch. PyTorch runs eagerly (one batch on the GPU, CrossEntropyLoss, foreach Adadelta), and with the whole step
as one CUDA graph. The first measurements are without TF32 and the next with TF32, in both programs. Some cases train
several networks at the same time in Finch and compare this with one eager process. Prints steps per second, as median
[least … most] of the turns, and the ratio of each turn. Start the script with the python that has the PyTorch to be
measured. Without PyTorch, the script measures only Finch. --device cpu is a test of this script (no paths, no graph,
one precision).
"""
import argparse
import math
import pathlib
import statistics
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    torch = None


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bench_step")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--layers", type=numbers, default=[6, 2, 10], help="in order of importance")
    parser.add_argument("--batches", type=numbers, default=[8, 64, 256, 1024])
    parser.add_argument("--slots", type=numbers, default=[16, 32, 64], help="networks at once, of the first L and B")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--turn-seconds", type=float, default=0.1, help="each side's share of a turn")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds; cases that no longer fit are left out")
    return parser.parse_args()


class Finch:
    """A process of bench_step with one path and one precision."""

    def __init__(self, options, path, precision):
        self.name = f"Finch {path}"
        self.command = [str(pathlib.Path(options.program).resolve()), "--device", options.device, "--path", path, "--precision", precision]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, layers, batch, steps, slots):
        """Returns the seconds per step. `slots` networks take `steps` steps in total; 0 means one network."""
        networks = max(slots, 1)
        try:
            self.process.stdin.write(f"{layers} {batch} {-(-steps // networks)} {networks}\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())
        except (OSError, ValueError):  # bench_step has ended, and has printed the reason
            return math.nan

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


class Eager:
    """Training as in PyTorch's tutorial, but the batch is on the device and no value is read back."""

    name = "PyTorch eager"

    def __init__(self, device, layers, batch):
        modules, channels = [], 1
        for _ in range(layers):
            modules += [torch.nn.Conv2d(channels, 10, 3, padding=1), torch.nn.ReLU()]
            channels = 10
        self.device = device
        self.model = torch.nn.Sequential(*modules, torch.nn.Flatten(), torch.nn.Linear(7840, 10)).to(device)
        self.loss = torch.nn.CrossEntropyLoss()
        self.optimizer = self.make_optimizer()
        self.images = torch.randn(batch, 1, 28, 28, device=device)
        self.labels = torch.randint(10, (batch,), device=device)

    def make_optimizer(self):
        return torch.optim.Adadelta(self.model.parameters(), lr=0.1, foreach=True)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.model(self.images), self.labels).backward()
        self.optimizer.step()

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def seconds(self, steps):
        self.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        self.synchronize()
        return (time.perf_counter() - begin) / steps


class Graph(Eager):
    """The same step, captured once as a CUDA graph."""

    name = "PyTorch graph"

    def __init__(self, device, layers, batch):
        super().__init__(device, layers, batch)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                super().step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.loss(self.model(self.images), self.labels).backward()
            self.optimizer.step()

    def make_optimizer(self):
        return torch.optim.Adadelta(self.model.parameters(), lr=0.1, foreach=True, capturable=True)

    def step(self):
        self.graph.replay()


def peers(options, layers, batch):
    """Returns the PyTorch variants of one case. Prints a message for each variant that this version or device lacks."""
    found = []
    for kind in (Eager, Graph) if torch and options.device == "cuda" else (Eager,) if torch else ():
        try:
            found.append(kind(options.device, layers, batch))
        except (RuntimeError, TypeError, ValueError) as error:
            print(f"  {kind.name}: left out: {str(error).splitlines()[0]}", flush=True)
    return found


def allow_tf32(allowed):
    if torch:
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


def steps_for(seconds, timed):
    """Returns the number of steps that take about `seconds`, measured after a warm-up."""
    timed(3)
    one = timed(3)
    return max(1, min(20000, int(seconds / one))) if one > 0 else 1


def measure(options, sides):
    """Runs the sides in turn, with `sides` = {name: callable(steps)}. Returns {name: [seconds per step of each
    turn]}."""
    counts = {name: steps_for(options.turn_seconds, timed) for name, timed in sides.items()}
    times = {name: [] for name in sides}
    for _ in range(options.turns):
        for name, timed in sides.items():
            times[name].append(timed(counts[name]))
    return times


def spread(values, digits=1):
    if any(math.isnan(value) for value in values):
        return "failed"
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f} … {max(values):.{digits}f}]"


def report(label, times, unit="steps/s"):
    base = times.get(Eager.name)
    for name, seconds in times.items():
        text = f"{label} | {name:16} | {spread([1 / value for value in seconds])} {unit}"
        if base and name != Eager.name:
            text += f" | {spread([b / a for a, b in zip(seconds, base)], 2)} × eager"
        print(text, flush=True)


def one_precision(options, precision, end):
    """Runs all cases at one precision. Returns the cases that did not fit into the time, and true if no case failed."""
    allow_tf32(precision == "tf32")
    paths = ("automatic", "library", "direct") if options.device == "cuda" else ("automatic",)
    finches = [Finch(options, path, precision) for path in paths]
    left_out, well = [], True
    cases = [(layers, batch, 0) for layers in options.layers[:1] for batch in options.batches[:1]]
    cases += [(options.layers[0], options.batches[0], slots) for slots in options.slots]
    cases += [(layers, batch, 0) for batch in options.batches for layers in options.layers if (layers, batch, 0) not in cases]
    cost = 0.0
    for layers, batch, slots in cases:
        label = f"{precision:8} | L = {layers:2}, B = {batch:4}" + (f", {slots} at once" if slots else "")
        begin = time.monotonic()
        if begin + cost > end:
            left_out.append(label)
            continue
        sides = {}
        for finch in finches[:1] if slots else finches:
            sides[finch.name] = lambda steps, finch=finch: finch.seconds(layers, batch, steps, slots)
        for peer in peers(options, layers, batch)[:1 if slots else None]:
            sides[peer.name] = peer.seconds
        times = measure(options, sides)
        report(label, times)
        well = well and not any(math.isnan(value) for seconds in times.values() for value in seconds)
        cost = max(cost, time.monotonic() - begin)
    for finch in finches:
        finch.close()
    return left_out, well


def main():
    options = read_arguments()
    end = time.monotonic() + options.budget
    if torch is None:
        print("PyTorch is not here: Finch alone")
    elif options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch sees no CUDA device")
    else:
        where = torch.cuda.get_device_name() if options.device == "cuda" else "1 thread of the CPU"
        torch.set_num_threads(1)
        print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {where}")
    print(f"{options.turns} turns of {options.turn_seconds} s a side; steps/s: median [least … most]", flush=True)
    all_well = True
    precisions = ("float32", "tf32") if options.device == "cuda" else ("float32",)
    for number, precision in enumerate(precisions):
        now = time.monotonic()
        share = end if number + 1 == len(precisions) else now + 0.6 * (end - now)
        left_out, well = one_precision(options, precision, share)
        all_well = all_well and well
        for label in left_out:
            print(f"{label} | left out: no time", flush=True)
    sys.exit(0 if all_well else 1)


if __name__ == "__main__":
    main()
