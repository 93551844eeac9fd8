"""Checks build/bench_simulate: its output, a search that is equal to that of a real worker, and its refusals."""
import csv
import os
import re
import statistics
import subprocess
import sys

from harness import TINY, Folder, check, individuals, passed

SIMULATE = os.path.abspath(sys.argv[2])

CONFIG = """
name: rastrigin
seed: 5
search:
  objective: {function: rastrigin, dimensions: 6, shift: true, rotate: true, instance: 2}
  propagator: {genetic: {population: 10}}
  budget: {evaluations: 400}
workers: {islands: 3}
"""
AUTO = """
name: auto
search:
  objective: {function: FUNCTION, dimensions: DIMENSIONS}
  propagator: PROPAGATOR
  budget: {evaluations: 4096}
"""
# The median of the best losses that searches with 16 workers must reach. Each limit is far below the results of
# `genetic`, and far above those of `auto` with any seed: rounding on another processor leads to another search.
BARS = {("rosenbrock", 2): 1e-12, ("rastrigin", 2): 1e-6}
REFUSED = {
    "a bad duration": (("--durations", "lognormal:60"), "--durations: 'lognormal:60'"),
    "no run": (("--durations", "recorded:runs/none"), "runs/none"),
    "no seeds": (("--seeds", "5..1"), "--seeds: '5..1'"),
    "too few workers": (("--set", "workers.islands=12"), "--workers: 9 are too few for 12 islands"),
    "other island sizes": (("--set", "workers.islands=[3, 4]"), "--workers: 9 where workers.islands asks for 7"),
    "node hours": (("--set", "search.budget.node_hours=1"), "search.budget.node_hours"),
    "no place for a file": (("--csv", "nowhere/a.csv"), "--csv: nowhere/a.csv"),
    "an unknown function": (("--set", "search.objective.function=rastrgin"), "rastrigin"),
}


def simulated(folder, *arguments, expect=0):
    done = subprocess.run([SIMULATE, *arguments], cwd=folder.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == expect, f"{arguments}: exit code {done.returncode}, expected {expect}\n{done.stdout}")
    return done.stdout


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def median_best(folder, function, dimensions, propagator):
    folder.write("auto.yaml", AUTO.replace("FUNCTION", function).replace("DIMENSIONS", str(dimensions)).replace("PROPAGATOR", propagator))
    simulated(folder, "auto.yaml", "--workers", "16", "--durations", "lognormal:60,0.5", "--seeds", "101..103", "--csv", "auto.csv")
    return statistics.median(float(row["best"]) for row in rows_of(folder.path / "auto.csv"))


with Folder() as folder:
    for (function, dimensions), bar in BARS.items():
        auto, genetic = (median_best(folder, function, dimensions, propagator) for propagator in ("auto", "genetic"))
        check(auto <= bar < genetic, f"{function}: auto found {auto}, genetic {genetic}, the bar is {bar}")
    passed("auto, from its model to its evolution, finds the optimum to many digits where the genetic chain comes near it")

with Folder() as folder:
    folder.write("rastrigin.yaml", CONFIG)
    simulate = ("rastrigin.yaml", "--workers", "9")
    output = simulated(folder, *simulate, "--durations", "lognormal:60,0.5", "--seeds", "1..4", "--csv", "a.csv")
    for text in ("function rastrigin, dimensions 6, shifted and rotated, instance 2; workers 9, islands 3",
                 "60 s (median; log-normal, deviation 0.5)", "messages/evaluation", "memory/leader", "busy_fraction", "median"):
        check(text in output, f"the output does not say '{text}'\n{output}")
    labels = [line.split()[0] for line in output.splitlines()[2:]]
    check(labels == ["seed", "1", "2", "3", "4", "quarter", "median", "3/4"], f"rows {labels}\n{output}")
    rows = rows_of(folder.path / "a.csv")
    check(list(rows[0]) == ["function", "dimensions", "seed", "workers", "evaluations", "best", "busy_fraction"], f"{rows[0]}")
    check([row["seed"] for row in rows] == ["1", "2", "3", "4"], f"{rows}")
    for row in rows:
        check((row["function"], row["dimensions"], row["workers"], row["evaluations"]) == ("rastrigin", "6", "9", "400"), f"{row}")
        check(0 < float(row["best"]) < 100 and 0.5 < float(row["busy_fraction"]) <= 1, f"{row}")
    simulated(folder, *simulate, "--seeds", "4,3,2,1", "--csv", "b.csv")
    check(sorted(map(str, rows_of(folder.path / "b.csv"))) == sorted(map(str, rows)), "the same seeds gave other rows")
    check(not (folder.path / "runs").exists(), "a simulation made a run directory")
    passed("4 seeds: a table with quartiles and a file with a row each, the same when asked again")

    folder.write("tiny.yaml", TINY)
    # With one worker, the order of breeding does not depend on the durations of evaluations.
    folder.run(1, "evolve", "rastrigin.yaml", "--set", "workers.islands=1", "--set", "search.budget.evaluations=150")
    real = min(row["loss"] for row in individuals(folder.path / "runs/rastrigin").values())
    simulated(folder, "rastrigin.yaml", "--workers", "1", "--set", "workers.islands=1", "--set",
               "search.budget.evaluations=150", "--csv", "c.csv")
    rows = rows_of(folder.path / "c.csv")
    check(float(rows[0]["best"]) == real and rows[0]["seed"] == "5", f"one real worker found {real}, simulated {rows}")
    passed("one simulated worker finds what one real worker finds, to the last bit")

    folder.run(1, "evolve", "tiny.yaml", "--run", "runs/trained", "--set", "workers.ranks=1", "--set", "workers.islands=1")
    seconds = sorted(row["finished"] - row["started"] for row in individuals(folder.path / "runs/trained").values())
    output = simulated(folder, *simulate, "--durations", "recorded:runs/trained", "--set", "search.budget.evaluations=3000")
    described = re.search(r"lasts (\S+) s \(median of 12 recorded: (\S+) to (\S+)\)", output)
    expected = ((seconds[5] + seconds[6]) / 2, seconds[0], seconds[-1])
    check(described and all(abs(float(told) / one - 1) < 1e-3 for told, one in zip(described.groups(), expected)), f"{expected}\n{output}")
    hours = float(output.splitlines()[-1].split()[output.splitlines()[-2].split().index("hours")])
    check(abs(hours * 3600 * 9 / (3000 * sum(seconds) / 12) - 1) < 0.1, f"3 000 trainings like {seconds} on 9 workers last {hours} hours\n{output}")
    passed("evaluations last as long as the recorded trainings of a run of networks")

    for name, (arguments, text) in REFUSED.items():
        output = simulated(folder, *simulate, *arguments, expect=2)
        messages = [line for line in output.splitlines() if line.startswith("bench_simulate: ")]
        check(len(messages) == 1 and text in messages[0], f"{name}\n{output}")
    output = simulated(folder, "tiny.yaml", "--workers", "4", expect=2)
    check(re.fullmatch(r"bench_simulate: .*trains networks.*benchmark functions only.*\n", output), f"a training is not refused\n{output}")
    check("--workers" in simulated(folder, "rastrigin.yaml", expect=2), "no workers are accepted")
    simulated(folder, "rastrigin.yaml", "--workers", "0", expect=2)
    simulated(folder, *simulate, "--message-seconds", "-1", expect=2)
    passed(f"{len(REFUSED) + 4} refusals, each one message")
