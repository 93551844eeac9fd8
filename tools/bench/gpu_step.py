#!/usr/bin/env python3
"""Compares the speed of training steps in Finch and PyTorch, on a GPU.

    tools/bench/gpu_step.py [--program build/bench_step] [--device cuda|cpu] [--turns 7] [--budget SECONDS] ...

A step is forward, loss, backward and optimizer. The networks are those of bench_step (tools/bench/step.cpp): the
tutorial's network with L convolutions, and wide_residual, which is like configs/gallery/cifar10_residual.yaml. Finch
and PyTorch take turns in one run. Finch runs captured steps over a data set on the device; the time includes
loading each batch. PyTorch trains on one random batch on the device, with cudnn.benchmark. The cases, in order of
importance:

- the tutorial's network in float32: Finch's automatic choice of kernels against --path library and --path direct, PyTorch
  eager, and PyTorch with the whole step as one CUDA graph. Several networks at once, which form gangs, are compared with
  the same without gangs, and with one network;
- wide_residual in bfloat16: against tf32 and float32 of Finch, PyTorch eager in float32, channels_last with autocast to
  bfloat16 (eager, the whole step as one CUDA graph, and compiled);
- the tutorial's network in tf32, and with other numbers of layers.

Prints a row for each comparison: case | steps per second of Finch | peer | ratio. Figures are median [least … most] of
the turns. A ratio is the speed of Finch over the speed of the peer in the same turn. Start the script with the python
that has the PyTorch to be measured. Without PyTorch, the script measures only Finch. --device cpu is a test of this
script (no paths, no graph, only float32).
"""
import argparse
import contextlib
import functools
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    torch = None
else:
    from networks import modules_of, optimizer_of

PREPARATION_SECONDS = 90  # of a variant of PyTorch, which may be compiled


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bench_step")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--layers", type=numbers, default=[6, 2, 10], help="in order of importance")
    parser.add_argument("--batches", type=numbers, default=[8, 64, 256, 1024])
    parser.add_argument("--slots", type=numbers, default=[2, 64, 16], help="networks at once, of the first L and B")
    parser.add_argument("--residual-batch", type=int, default=128)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--turn-seconds", type=float, default=0.1, help="each side's share of a turn")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds; cases that no longer fit are left out")
    return parser.parse_args()


class Finch:
    """A process of bench_step with one path and one precision."""

    def __init__(self, options, path, precision, gangs="yes"):
        self.command = [str(pathlib.Path(options.program).resolve()), "--device", options.device, "--path", path, "--precision", precision,
                        "--gangs", gangs]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, net, batch, slots, steps):
        """Returns the seconds per step. `slots` networks take `steps` steps in total."""
        try:
            self.process.stdin.write(f"{net} {batch} {-(-steps // slots)} {slots}\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())
        except (OSError, ValueError):  # bench_step has ended, and has printed the reason
            return math.nan


class Eager:
    """Training as in PyTorch's tutorial, but the batch is on the device and no value is read back."""

    name = "PyTorch eager"
    bfloat16 = False

    def __init__(self, device, net, batch):
        shape, modules = modules_of(net)
        memory = torch.channels_last if self.bfloat16 else torch.contiguous_format
        self.device = device
        self.model = torch.nn.Sequential(*modules).to(device, memory_format=memory)
        self.loss = torch.nn.CrossEntropyLoss()
        self.optimizer = self.make_optimizer(net)
        self.images = torch.randn(batch, *shape, device=device).to(memory_format=memory)
        self.labels = torch.randint(10, (batch,), device=device)

    def make_optimizer(self, net):
        return optimizer_of(net, self.model.parameters())

    def compute_grads(self):
        # Each weight is used once per step, so autocast needs no cache, which a graph could not capture.
        with torch.autocast(self.device, torch.bfloat16, cache_enabled=False) if self.bfloat16 else contextlib.nullcontext():
            loss = self.loss(self.model(self.images), self.labels)
        loss.backward()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.compute_grads()
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

    def __init__(self, device, net, batch):
        super().__init__(device, net, batch)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                super().step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.compute_grads()
            self.optimizer.step()

    def make_optimizer(self, net):
        return optimizer_of(net, self.model.parameters(), capturable=True)

    def step(self):
        self.graph.replay()


class Autocast(Eager):
    name = "PyTorch autocast"
    bfloat16 = True


class AutocastGraph(Graph):
    name = "PyTorch autocast graph"
    bfloat16 = True


class AutocastCompiled(Autocast):
    name = "PyTorch autocast compiled"

    def __init__(self, device, net, batch):
        super().__init__(device, net, batch)
        self.model = torch.compile(self.model, mode="reduce-overhead")
        for _ in range(3):
            self.step()


@contextlib.contextmanager
def at_most(seconds):
    """Raises TimeoutError in the block after `seconds`."""
    def interrupt(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, interrupt)
    begin = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, seconds, 5)  # every 5 s again, since PyTorch may catch the first interrupt
    try:
        yield
    except Exception as error:
        raise TimeoutError(f"not ready after {seconds:.0f} s") if time.monotonic() - begin >= seconds else error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


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


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f} … {max(values):.{digits}f}]"


def speed(seconds):
    if any(math.isnan(value) for value in seconds):
        return "FAILED"
    return spread([1 / value for value in seconds], 1) + " steps/s"


def report(label, times):
    """Prints a row for each peer of the first side. Returns true if no side failed."""
    (_, own), *peers = times.items()
    for name, seconds in peers:
        ratio = "" if "FAILED" in (speed(own), speed(seconds)) else spread([b / a for a, b in zip(own, seconds)], 2)
        print(f"{label} | {speed(own)} | {name}: {speed(seconds).split(' [')[0]} | {ratio}", flush=True)
    if not peers:
        print(f"{label} | {speed(own)} |  | ", flush=True)
    return all(speed(seconds) != "FAILED" for seconds in times.values())


def skip(label, peer, why):
    print(f"{label} | SKIPPED ({' '.join(why.replace('|', '/').split())[:100]}) | {peer} | ", flush=True)


def cases(options):
    """Returns (precision, net, batch, slots) of each case, in order of importance."""
    first, *others = options.layers
    small, *larger = options.batches
    main = [(first, small, 1), *((first, small, slots) for slots in options.slots), *((first, batch, 1) for batch in larger)]
    others = [(layers, batch, 1) for batch in options.batches for layers in others]
    residual = ("wide_residual", options.residual_batch, 1)
    if options.device == "cpu":
        return [("float32", *case) for case in (*main, residual, *others)]
    return [*(("float32", *case) for case in main), ("bfloat16", *residual), *(("tf32", *case) for case in main),
            *((precision, *case) for case in others for precision in ("float32", "tf32"))]


def sides_of(options, finch, precision, net, slots):
    """Returns Finch's sides {name: callable(net, batch, slots, steps)}, first the one with which all others are
    compared, and the classes of PyTorch's variants."""
    is_gpu = options.device == "cuda"
    own = {"Finch": finch("automatic", precision).seconds}
    if net == "wide_residual":
        if is_gpu:
            own |= {f"Finch {other}": finch("automatic", other).seconds for other in ("tf32", "float32")}
        return own, [Eager, Autocast, *([AutocastGraph] if is_gpu else []), AutocastCompiled]
    if slots > 1:
        one = own["Finch"]
        own["Finch, no gangs"] = finch("automatic", precision, "no").seconds
        return own | {"Finch, one network": lambda net, batch, _, steps: one(net, batch, 1, steps)}, [Eager]
    if is_gpu:
        own |= {f"Finch {path}": finch(path, precision).seconds for path in ("library", "direct")}
    return own, [Eager, Graph] if is_gpu else [Eager]


def run_case(options, finch, end, case):
    """Returns true if no side failed."""
    precision, net, batch, slots = case
    label = label_of(*case)
    allow_tf32(precision == "tf32")
    own, variants = sides_of(options, finch, precision, net, slots)
    sides = {name: functools.partial(seconds, net, batch, slots) for name, seconds in own.items()}
    for variant in variants if torch else []:
        try:
            with at_most(max(1, min(PREPARATION_SECONDS, end - time.monotonic() - 10))):
                sides[variant.name] = variant(options.device, net, batch).seconds
        except Exception as error:  # this version of PyTorch or this device lacks it, or it takes too long
            skip(label, variant.name, str(error) or type(error).__name__)
    return report(label, measure(options, sides))


def label_of(precision, net, batch, slots):
    name = net if net == "wide_residual" else f"L = {net}"
    return f"{precision}, {name}, B = {batch}" + (f", {slots} at once" if slots > 1 else "")


def main():
    global torch
    options = read_arguments()
    end = time.monotonic() + options.budget
    if torch is None:
        print("PyTorch is not here: Finch alone")
    elif options.device == "cuda" and not torch.cuda.is_available():
        print("PyTorch sees no CUDA device: Finch alone")
        torch = None
    else:
        where = torch.cuda.get_device_name() if options.device == "cuda" else "1 thread of the CPU"
        torch.set_num_threads(1)
        torch.backends.cudnn.benchmark = True
        print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {where}")
    print(f"{options.turns} turns of {options.turn_seconds} s a side; steps/s: median [least … most]", flush=True)
    finch = functools.lru_cache(None)(functools.partial(Finch, options))
    cost, all_well = 0.0, True
    for case in cases(options):
        begin = time.monotonic()
        if begin + cost > end:
            skip(label_of(*case), "", "no time left")
            continue
        all_well = run_case(options, finch, end, case) and all_well
        if case[1] != "wide_residual":
            cost = max(cost, time.monotonic() - begin)
    sys.stdout.flush()
    os._exit(0 if all_well else 1)  # sys.exit() would wait for a compilation that was interrupted


if __name__ == "__main__":
    main()
