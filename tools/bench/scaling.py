#!/usr/bin/env python3
"""Measures the speed of a training on different numbers of ranks, on the cores or GPUs of this machine.

    tools/bench/scaling.py [FINCH] [--ranks 1,2,4] [--net tutorial,wide | --config FILE --gene NAME=VALUE ...] [--batch 64,256]
                           [--repetitions 5] [--samples 6000] [--gpus] [--launcher "srun -n {ranks} --cpu-bind=cores"]

Strong scaling keeps the batch size of all ranks together. Weak scaling keeps the batch size per rank. The table
imitates DeePMD-kit's scaling table. A turn runs each number of ranks once, directly after each other, so that other
work on the machine affects all of them equally. Speed-ups are computed within a turn. The figures are medians over the
turns [least ... most]. Samples per second and the shares of all-reduce and wait come from --profile, without the first
epoch.

Each rank has one thread (OMP_NUM_THREADS=1) and its own core. If there are more ranks than cores, the ranks are not
bound, and the table says this. `tutorial` is a network of six convolutions of 10 channels, on 28 x 28 pixels. `wide` is
the wide network of tools/bench/step.py, on one channel. With --gpus, each rank has its own GPU.
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

CONFIG = """
name: scaling
data: {{kind: generated, samples: {samples}, size: {size}, validation_samples: {validation}}}
model:
{model}  - flatten
  - linear: {{units: classes}}
training: {{epochs: 3, optimizer: adadelta, batch_size: 64}}
"""
CONV = "  - conv: {{channels: {}, kernel: 3, padding: same, activation: relu, repeat: {}}}\n"
NETS = {"tutorial": (28, CONV.format(10, 6)),
        "wide": (32, "".join(CONV.format(channels, 2) + "  - max_pool: {kernel: 2}\n" for channels in (32, 64, 128)))}


def cores():
    """Returns the number of physical cores that this process may use."""
    found = set()
    for number in os.sched_getaffinity(0):
        folder = pathlib.Path(f"/sys/devices/system/cpu/cpu{number}/topology")
        try:
            found.add(((folder / "physical_package_id").read_text(), (folder / "core_id").read_text()))
        except OSError:
            found.add(number)
    return len(found)


def gpus():
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())


def numbers(text):
    return [int(number) for number in text.split(",")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("finch", nargs="?", default="build/finch")
    parser.add_argument("--ranks", type=numbers, help="1,2,4 ... up to the cores, or the GPUs")
    parser.add_argument("--net", default="tutorial,wide")
    parser.add_argument("--config", type=pathlib.Path, help="in place of --net")
    parser.add_argument("--gene", action="append", default=[], help="NAME=VALUE, of --config")
    parser.add_argument("--batch", type=numbers, default=[64], help="on one rank, and of all ranks where scaling is strong")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--samples", type=int, default=6000, help="of --net, those to validate on included")
    parser.add_argument("--gpus", action="store_true")
    parser.add_argument("--launcher", help="with {ranks} in it, in place of mpirun")
    return parser.parse_args()


def can_bind():
    return subprocess.run(["mpirun", "-n", "1", "--bind-to", "core", "true"], env=environment(), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def environment():
    return dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


class Machine:
    def __init__(self, options):
        self.options = options
        self.places = gpus() if options.gpus else cores()
        self.binds = not options.gpus and not options.launcher and can_bind()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="finch-bench-"))
        self.runs = 0

    def launch(self, ranks):
        if self.options.launcher:
            return shlex.split(self.options.launcher.format(ranks=ranks))
        if self.binds and ranks <= self.places:
            return ["mpirun", "-n", str(ranks), "--map-by", "core", "--bind-to", "core"]
        return ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none"]

    def measure(self, config, batch, ranks):
        """Trains once. Returns the samples per second of all ranks, and the shares of all-reduce and wait in the
        steps."""
        self.runs += 1
        run = self.folder / f"run{self.runs}"
        settings = [f"training.batch_size={batch}", "workers.threads=1", f"workers.device={'cuda' if self.options.gpus else 'cpu'}",
                    "log.level=warning"]
        genes = [word for gene in self.options.gene for word in ("--gene", gene)]
        command = self.launch(ranks) + [os.path.abspath(self.options.finch), "train", str(config), "--run", str(run), "--profile", *genes]
        done = subprocess.run(command + [word for setting in settings for word in ("--set", setting)], cwd=self.folder, env=environment(),
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        epochs = json.loads((run / "profile.json").read_text())["epochs"]
        epochs = epochs[1:] or epochs
        seconds = {name: sum(sum(epoch["seconds"][name]) for epoch in epochs) / ranks for name in epochs[0]["seconds"]}
        steps = sum(epoch["training_samples"] / epoch["training_samples_per_second"] for epoch in epochs)
        return {"speed": sum(epoch["training_samples"] for epoch in epochs) / steps, "all-reduce": seconds["all-reduce"] / steps,
                "wait": seconds["wait"] / steps}

    def sharing(self, ranks):
        return f"  {ranks} ranks share {self.places} cores" if not self.options.gpus and ranks > self.places else ""


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f} ... {max(values):.{digits}f}]"


def table(title, machine, turns, batches):
    """Prints a table. `turns` has for each turn {number of ranks: measurement}."""
    print(title)
    print(f"{'ranks':>5} {'batch/rank':>10}  {'samples/s':>26}  {'speed-up':>22}  {'efficiency':>22}  {'all-reduce':>10}  {'wait':>7}")
    first = min(batches)
    for ranks, batch in sorted(batches.items()):
        speed = [turn[ranks]["speed"] for turn in turns]
        speed_up = [turn[ranks]["speed"] / turn[first]["speed"] for turn in turns]
        efficiency = [value * first / ranks for value in speed_up]
        share = {name: 100 * statistics.median(turn[ranks][name] for turn in turns) for name in ("all-reduce", "wait")}
        print(f"{ranks:5} {batch / ranks:10g}  {spread(speed, 0):>26}  {spread(speed_up, 2):>22}  {spread(efficiency, 2):>22}  "
              f"{share['all-reduce']:8.1f} %  {share['wait']:5.1f} %{machine.sharing(ranks)}", flush=True)


def measure_all(name, config, batch, ranks, machine):
    strong, weak = [], []
    for _ in range(machine.options.repetitions):
        strong.append({})
        weak.append({})
        for count in ranks:
            strong[-1][count] = machine.measure(config, batch, count)
            weak[-1][count] = strong[-1][count] if count == 1 else machine.measure(config, batch * count, count)
    table(f"{name}, strong scaling: batch {batch} of all ranks", machine, strong, {count: batch for count in ranks})
    table(f"{name}, weak scaling: batch {batch} on each rank", machine, weak, {count: batch * count for count in ranks})


def main():
    options = arguments()
    machine = Machine(options)
    if options.gpus and machine.places == 0:
        sys.exit("scaling.py: --gpus: nvidia-smi names no GPU here")
    ranks = sorted(options.ranks or [2 ** power for power in range(machine.places.bit_length()) if 2 ** power <= machine.places])
    if options.gpus and ranks[-1] > machine.places:
        sys.exit(f"scaling.py: --ranks: {ranks[-1]} ranks for {machine.places} GPUs; one rank on each is measured")
    binding = "one rank on each" if options.gpus else "one core for each rank" if machine.binds else "ranks are not bound"
    load = os.getloadavg()[0]
    print(f"{machine.places} {'GPUs' if options.gpus else 'cores'}, {options.launcher or binding}, OMP_NUM_THREADS=1, load before: {load:.1f}; "
          f"{options.repetitions} turns, medians [least ... most]")
    configs = {options.config.name: options.config.resolve()} if options.config else {}
    for net in [] if options.config else options.net.split(","):
        size, model = NETS[net]
        configs[net] = machine.folder / f"{net}.yaml"
        configs[net].write_text(CONFIG.format(samples=options.samples, size=size, validation=max(10, options.samples // 30), model=model))
    for name, config in configs.items():
        for batch in options.batch:
            measure_all(name, config, batch, ranks, machine)


if __name__ == "__main__":
    main()
