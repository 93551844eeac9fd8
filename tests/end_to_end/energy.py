"""Checks the joules of individuals. Finch measures them by (fake) RAPL counters or estimates them, also over a stop and
resume. Joules can be an objective, and all tables show them."""
import csv
import io
import json
import math
import os
import sys
import threading
import time

from harness import TINY, Folder, check, individuals, outcome_words, passed, stop_in_training

ALONE = TINY.replace("workers: {ranks: 2, islands: 2}", "workers: {ranks: 1, islands: 1, watts: 25}").replace("evaluations: 12", "evaluations: 5")
LONG = ALONE.replace("samples: 600", "samples: 8000").replace("evaluations: 5", "evaluations: 1").replace("size: 12", "size: 20").replace("epochs: 3", "epochs: 20")
NO_COUNTERS = "/there/are/no/counters"


def joules_of(run):
    """Returns [(outcome, seconds, joules)] of the individuals."""
    words = outcome_words(run)
    return [(words[row["outcome"]], float(row["training_seconds"]), float(row["joules"])) for row in individuals(run).values()]


def near(value, expected, tolerance):
    return abs(value - expected) <= tolerance * abs(expected)


class Counters:
    """A fake /sys/class/powercap with two processors. A thread increases their energy counters at 30 and 50 W."""

    def __init__(self, folder):
        self.path, self.ends = folder / "powercap", threading.Event()
        for number in (0, 1):
            zone = self.path / f"intel-rapl:{number}"
            zone.mkdir(parents=True)
            (zone / "name").write_text(f"package-{number}\n")
            (zone / "max_energy_range_uj").write_text("262143328850\n")
        self.count()
        self.thread = threading.Thread(target=self.run)

    def count(self):
        for number, watts in ((0, 30), (1, 50)):
            file = self.path / f"intel-rapl:{number}/energy_uj"
            file.with_suffix(".new").write_text(f"{int(watts * 1e6 * time.monotonic())}\n")
            file.with_suffix(".new").rename(file)

    def run(self):
        while not self.ends.wait(0.01):
            self.count()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def estimated(folder):
    folder.write("alone.yaml", ALONE)
    output = folder.run(1, "evolve", "alone.yaml")
    check(output.count("energy: estimated with 25 W for each rank (workers.watts); /there/are/no/counters: no processor") == 1, output)
    run = folder.path / "runs/tiny"
    rows = joules_of(run)
    check(len(rows) == 5 and all(near(joules, 25 * seconds, 1e-6) for _, seconds, joules in rows), f"{rows}")
    shown = csv.DictReader(io.StringIO(folder.run(0, "export", run, "--format", "csv")))
    check(sorted(float(row["joules"]) for row in shown) == sorted(joules for *_, joules in rows), "csv: other joules")
    check(near(json.loads(folder.run(0, "show", run, "--json"))["joules"], sum(joules for *_, joules in rows), 1e-9), "--json: another sum")
    check(folder.run(0, "show", run).count("energy") == 2, "no total, or no column")
    folder.run(2, "evolve", "alone.yaml", "--run", "runs/two", "--set", "workers.ranks=2")
    check(all(near(joules, 50 * seconds, 0.05) for _, seconds, joules in joules_of(folder.path / "runs/two")), "two ranks of 25 W")
    folder.run(1, "evolve", "alone.yaml", "--run", "runs/slots", "--set", "workers.slots=2")
    check(all(near(joules, 25 * seconds, 0.05) for _, seconds, joules in joules_of(folder.path / "runs/slots")), "two slots that take turns")
    passed("an individual has the watts of its ranks times its seconds, in every table")

    output = folder.run(1, "evolve", "alone.yaml", "--run", "runs/none", "--set", "workers.watts=null")
    check("energy: not known (workers.watts: W would estimate it)" in output, output)
    check(all(math.isnan(joules) for *_, joules in joules_of(folder.path / "runs/none")) and "energy" not in folder.run(0, "show", "runs/none"), "joules from nowhere")
    refused = folder.run(1, "evolve", "alone.yaml", "--run", "runs/no", "--set", "workers.watts=null", "--set", "search.objective=[validation_loss, joules]", expect=2)
    check("search.objective: joules are not known (workers.watts: W would estimate it)" in refused, refused)
    folder.run(1, "evolve", "alone.yaml", "--run", "runs/front", "--set", "search.objective=[validation_loss, joules]")
    check("the front: " in folder.run(0, "show", "runs/front"), "no front of loss and joules")
    passed("without counters and watts: NaN, one line of the log, no objective; with watts joules are one")


def measured(folder):
    folder.write("alone.yaml", ALONE)
    with Counters(folder.path) as counters:
        os.environ["FINCH_TEST_RAPL"] = str(counters.path)
        output = folder.run(2, "evolve", "alone.yaml", "--run", "runs/measured", "--set", "training.epochs=30", "--set", "search.budget.evaluations=2",
                            "--set", "workers.ranks=2")
        doctor = folder.run(1, "doctor")
        os.environ["FINCH_TEST_RAPL"] = NO_COUNTERS
    check("energy: measured by the CPUs (RAPL)\n" in output, output)
    rows = joules_of(folder.path / "runs/measured")
    seconds, joules = (sum(row[place] for row in rows) for place in (1, 2))
    check(near(joules, 80 * seconds, 0.15), f"{joules} J in {seconds} s of training, on processors of 80 W: {rows}")
    check("CPUs (RAPL)" in doctor and "measured\n" in doctor, doctor)
    passed("two processors of 80 W together are measured, also where two ranks share them")


def stopped(folder):
    folder.write("long.yaml", LONG)
    stop_in_training(folder, "runs/long", "long.yaml")
    (outcome, seconds, joules), = joules_of(folder.path / "runs/long")
    check(outcome == "unfinished" and near(joules, 25 * seconds, 1e-6), f"stopped: {seconds} s, {joules} J")
    folder.run(2, "evolve", "long.yaml", "--run", "runs/long", "--set", "workers.watts=100")
    (outcome, all_seconds, all_joules), = joules_of(folder.path / "runs/long")
    check(outcome == "evaluated" and all_seconds > seconds and near(all_joules - joules, 100 * (all_seconds - seconds), 1e-6),
          f"{joules} J in {seconds} s, then {all_joules} in {all_seconds}")
    passed("what a stop interrupted has the joules of both starts, each at its own watts")

    folder.write("program.yaml", f"name: p\nsearch:\n  objective: {{command: '{sys.executable} program.py'}}\n  space: {{x: {{real: [0, 1]}}}}\n"
                                 "  budget: {evaluations: 2}\nworkers: {islands: 1, watts: 50}\n")
    folder.write("program.py", "import time\ntime.sleep(1)\nprint('finch loss=1')\n")
    folder.run(1, "evolve", "program.yaml", "--run", "runs/program")
    check(all(near(joules, 50 * seconds, 0.05) for _, seconds, joules in joules_of(folder.path / "runs/program")), "programs")
    passed("a program takes the watts of its worker's ranks while it runs")


os.environ["FINCH_TEST_RAPL"] = NO_COUNTERS
for scenario in (estimated, measured, stopped):
    with Folder() as folder:
        scenario(folder)
