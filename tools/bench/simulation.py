#!/usr/bin/env python3
"""Compares simulations with real runs, and the busy share of asynchronous workers with the share of generations.

    tools/bench/simulation.py [FINCH] [REPETITIONS] [pairs|busy|large|networks]

The real evaluations of rastrigin sleep instead of computing, so 16 ranks may share 2 cores. The busy share is the part
of the workers' time, until the last evaluation ended, in which they evaluated. The parts are
  pairs     2 to 16 real ranks, and simulations of them: prints the medians of both, and simulated / real as median
            [least … most] of the repetitions
  busy      4 real ranks with 400 evaluations each: prints the busy share, and the busy share with the same durations if
            each generation (one evaluation per worker) waited for its slowest evaluation
  large     both shares for half an hour of 10 000 simulated workers in a ring of 1 000 islands. The generations have
            durations of the same distribution
  networks  4 real ranks with about 400 evaluations each. The evaluations are programs that sleep as long as 1 to 10 passes
            of a network of 1 to 10 layers take. Prints their busy share, the share with generations, and the share of
            a simulation with the recorded durations. Then simulates 10 000 workers with the recorded durations
"""
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import h5py

FINCH = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/finch")
SIMULATE = os.path.join(os.path.dirname(FINCH), "bench_simulate")
REPETITIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
PART = sys.argv[3] if len(sys.argv) > 3 else "pairs busy large networks"
EVALUATIONS_PER_RANK = 100
CASES = [(2, 0.02), (2, 0.1), (4, 0.02), (4, 0.1), (8, 0.1), (16, 0.1)]
MEDIAN, SPREAD = 60, 0.5  # seconds, and the standard deviation of the logarithm, of simulated durations
LARGE_GENERATIONS = 25
CONFIG = """
name: rastrigin
search:
  objective: {{function: rastrigin, seconds: {seconds}, spread: 0.5}}
  propagator: {{genetic: {{population: 8}}}}
  exchange: {{kind: pollination, topology: {topology}, probability: 0.9}}
  budget: {budget}
workers: {{islands: {islands}}}
log: {{level: warning}}
"""
# Sleeps as long as a training of the tutorial's network takes. The network has `layers` convolutions (3 x 3, 10
# channels, 28 x 28 pixels) and a linear layer. The training makes `passes` passes over the data.
SLEEPER = """import json, sys, time
for line in sys.stdin:
    genes = json.loads(line)["genes"]
    operations = 2 * 28 * 28 * 9 * (10 + 100 * (genes["layers"] - 1)) + 2 * 28 * 28 * 10 * 10
    time.sleep(operations * genes["passes"] * 11.2e-9)
    sys.stdout.write(f"finch loss={genes['x'] ** 2}\\nfinch done\\n")
    sys.stdout.flush()
"""
NETWORKS = """
name: rastrigin
search:
  objective: {command: "/usr/bin/python3 %s/sleeper.py", persistent: true, keep: none}
  space: {x: {real: [-5, 5]}, layers: {int: [1, 10]}, passes: {int: [1, 10]}}
  propagator: {genetic: {population: 8}}
  exchange: {kind: pollination, probability: 0.9}
  budget: {evaluations: 1600}
workers: {islands: 2}
log: {level: warning}
"""


def real_rows(folder, ranks, seed):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    subprocess.run(["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", FINCH, "evolve", "config.yaml", "--fresh",
                    "--set", f"seed={seed}"], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    with h5py.File(folder / "runs/rastrigin/population.h5", "r") as file:
        return file["individuals"][:]


def real(folder, ranks, seed):
    """Runs Finch. Returns the busy share and the evaluations per hour."""
    rows = real_rows(folder, ranks, seed)
    seconds = rows["finished"].max() - rows["started"].min()
    return (rows["finished"] - rows["started"]).sum() / (ranks * seconds), len(rows) / seconds * 3600


def simulated(folder, ranks, seed, *options):
    output = subprocess.run([SIMULATE, "config.yaml", "--workers", str(ranks), "--seeds", str(seed), *options], cwd=folder, check=True,
                            stdout=subprocess.PIPE, text=True).stdout.splitlines()
    columns, row = output[-2].split(), output[-1].split()
    hours = float(row[columns.index("hours")])
    return float(row[columns.index("busy_fraction")]), float(row[columns.index("evaluations")]) / hours


def spread(values):
    return f"{statistics.median(values):.3f} [{min(values):.3f} … {max(values):.3f}]"


def write_config(folder, seconds, budget, islands, topology="all"):
    (folder / "config.yaml").write_text(CONFIG.format(seconds=seconds, budget=budget, islands=islands, topology=topology))


def print_pairs(folder):
    print("| ranks, s | busy, real | busy, simulated | ratio | evaluations/h, real | simulated | ratio |\n| --- | --- | --- | --- | --- | --- | --- |")
    for ranks, seconds in CASES:
        write_config(folder, seconds, f"{{evaluations: {EVALUATIONS_PER_RANK * ranks}}}", 2)
        pairs = [(real(folder, ranks, seed), simulated(folder, ranks, seed)) for seed in range(1, REPETITIONS + 1)]
        cells = [f"{ranks}, {seconds}"]
        for number, form in ((0, "{:.3f}"), (1, "{:.0f}")):
            cells += [form.format(statistics.median(pair[side][number] for pair in pairs)) for side in (0, 1)]
            cells.append(spread([pair[1][number] / pair[0][number] for pair in pairs]))
        print("| " + " | ".join(cells) + " |", flush=True)


def busy_with_a_barrier(generations):
    """Returns the busy share if all workers wait for the slowest evaluation of each generation of durations."""
    return sum(map(sum, generations)) / sum(len(generation) * max(generation) for generation in generations)


def real_busy(folder, seed):
    rows = real_rows(folder, 4, seed)
    by_worker = [sorted(rows[rows["worker"] == worker], key=lambda row: row["started"]) for worker in range(4)]
    generations = [[row["finished"] - row["started"] for row in generation] for generation in zip(*by_worker)]
    return (rows["finished"] - rows["started"]).sum() / (4 * (rows["finished"].max() - rows["started"].min())), busy_with_a_barrier(generations)


def print_busy(folder):
    write_config(folder, 0.1, "{evaluations: 1600}", 2)
    rows = [real_busy(folder, seed) for seed in range(1, REPETITIONS + 1)]
    print("4 real ranks: busy, and with a barrier after each generation: " + ", ".join(map(spread, zip(*rows))), flush=True)


def print_large(folder):
    write_config(folder, 0.1, "{hours: 0.5}", 1000, "ring")
    busy, _ = simulated(folder, 10_000, 1, "--durations", f"lognormal:{MEDIAN},{SPREAD}")
    durations = random.Random(1)
    generations = [[MEDIAN * durations.lognormvariate(0, SPREAD) for _ in range(10_000)] for _ in range(LARGE_GENERATIONS)]
    print(f"10 000 simulated workers: busy {busy:.4f}, with a barrier {busy_with_a_barrier(generations):.3f}")


def print_networks(folder):
    (folder / "sleeper.py").write_text(SLEEPER)
    recorded, rows = "runs/rastrigin", []
    for seed in range(1, REPETITIONS + 1):
        (folder / "config.yaml").write_text(NETWORKS % folder)
        busy, with_barrier = real_busy(folder, seed)
        write_config(folder, 0.1, "{evaluations: 1600}", 2)
        rows.append((busy, with_barrier, simulated(folder, 4, seed, "--durations", f"recorded:{recorded}")[0]))
    print("networks, 4 real ranks: busy, with a barrier after each generation, simulated: " + ", ".join(map(spread, zip(*rows))))
    with h5py.File(folder / recorded / "population.h5", "r") as file:
        seconds = sorted(file["individuals"]["finished"] - file["individuals"]["started"])
    print(f"durations: least {seconds[0]:.4f}, median {statistics.median(seconds):.4f}, mean {statistics.mean(seconds):.4f}, most {seconds[-1]:.4f} s")
    write_config(folder, 0.1, "{hours: %f}" % (LARGE_GENERATIONS * statistics.mean(seconds) / 3600), 1000, "ring")
    busy, _ = simulated(folder, 10_000, 1, "--durations", f"recorded:{recorded}")
    dice = random.Random(1)
    generations = [dice.choices(seconds, k=10_000) for _ in range(LARGE_GENERATIONS)]
    print(f"networks, 10 000 simulated workers: busy {busy:.4f}, with a barrier {busy_with_a_barrier(generations):.3f}")


with tempfile.TemporaryDirectory(prefix="finch-bench-") as name:
    for part, print_part in (("pairs", print_pairs), ("busy", print_busy), ("large", print_large), ("networks", print_networks)):
        if part in PART:
            print_part(pathlib.Path(name))
