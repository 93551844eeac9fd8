"""Joules of individuals: the estimate, the processors' counters from a made folder tree, stops and resumes, programs, functions, runs of before;
in every table and file that has them."""
import csv
import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import SOURCE, TINY, Folder, check, end, end_of_short_form, individuals, outcome_words, passed, ranks_of, stop_in_training, wait_for, words_of

ALONE = TINY.replace("workers: {ranks: 2, islands: 2}", "workers: {ranks: 1, islands: 1, watts: 25}").replace("evaluations: 12", "evaluations: 5")
LONG = (ALONE.replace("samples: 600", "samples: 8000").replace("evaluations: 5", "evaluations: 1").replace("size: 12", "size: 20")
        .replace("epochs: 3", "epochs: 20"))
NO_COUNTERS = "/there/are/no/counters"


def joules_of(run):
    """[(outcome, seconds, joules, source)] of the individuals."""
    outcomes, sources = outcome_words(run), words_of(run, "energy_source")
    return [(outcomes[row["outcome"]], float(row["training_seconds"]), float(row["joules"]), sources[row["energy_source"]])
            for row in individuals(run).values()]


def shared_joules(run, watts):
    """[(seconds, joules, expected)] of the individuals, where those that run at a time share `watts` alike."""
    rows = list(individuals(run).values())
    spans = [(float(row["started"]), float(row["started"]) + float(row["training_seconds"])) for row in rows]
    moments = sorted({moment for span in spans for moment in span})
    expected = [0.0] * len(rows)
    for begin, end_of_piece in zip(moments, moments[1:]):
        running = [i for i, (first, last) in enumerate(spans) if first <= begin and last >= end_of_piece]
        for i in running:
            expected[i] += watts * (end_of_piece - begin) / len(running)
    return [(float(row["training_seconds"]), float(row["joules"]), one) for row, one in zip(rows, expected, strict=True)]


def near(value, expected, tolerance):
    return abs(value - expected) <= tolerance * abs(expected)


class Counters:
    """A tree as /sys/class/powercap has it: two processors that take 30 and 50 W, the first of which goes round every 200 J, after 3 s for the
    first time, a part of one of them, and what is around both."""
    RANGE = 200_000_000
    BEGIN = RANGE - 3 * 30_000_000
    ZONES = {"intel-rapl:0": ("package-0", 30), "intel-rapl:1": ("package-1", 50), "intel-rapl:0:0": ("core", 1000), "intel-rapl:2": ("psys", 1000)}

    def __init__(self, folder):
        self.path, self.ends = folder / "powercap", threading.Event()
        for zone, (name, _) in self.ZONES.items():
            (self.path / zone).mkdir(parents=True)
            (self.path / zone / "name").write_text(name + "\n")
            (self.path / zone / "max_energy_range_uj").write_text(f"{self.RANGE if zone == 'intel-rapl:0' else 1 << 60}\n")
        self.began = time.monotonic()
        self.count()
        self.thread = threading.Thread(target=self.run)

    def count(self):
        for zone, (_, watts) in self.ZONES.items():
            microjoules = int(self.BEGIN + 1e6 * watts * (time.monotonic() - self.began)) % (self.RANGE if zone == "intel-rapl:0" else 1 << 60)
            new = self.path / zone / "new"
            new.write_text(f"{microjoules}\n")
            new.rename(self.path / zone / "energy_uj")

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
    output = folder.run(1, "evolve", "alone.yaml", "--run", "runs/alone")
    check(output.count("energy: ") == 1 and "energy: estimated with 25 W for each rank (workers.watts); " in output, output)
    rows = joules_of(folder.path / "runs/alone")
    check(len(rows) == 5 and all(outcome == "evaluated" and source == "estimated" and seconds > 0 and near(joules, 25 * seconds, 1e-6)
                                 for outcome, seconds, joules, source in rows), f"{rows}")
    passed("one rank of 25 W: 25 J for each second of training, to 6 digits")

    output = folder.run(2, "evolve", "alone.yaml", "--run", "runs/two", "--set", "workers.ranks=2", "--set", "workers.watts=40")
    rows = joules_of(folder.path / "runs/two")
    check(all(source == "estimated" and near(joules, 2 * 40 * seconds, 0.03) for _, seconds, joules, source in rows), f"{rows}")
    passed("two ranks of 40 W: 80 J for each second")

    output = folder.run(1, "evolve", "alone.yaml", "--run", "runs/none", "--set", "workers.watts=null")
    check(output.count("energy: ") == 1 and "energy: not known (workers.watts: W would estimate it); " in output, output)
    check(all(math.isnan(joules) and source == "unknown" for _, _, joules, source in joules_of(folder.path / "runs/none")), "joules from nowhere")
    check("energy" not in folder.run(0, "show", "runs/none"), "finch show tells of energy that nobody knows")
    passed("without counters and without watts: NaN, unknown, in one line of the log")


def in_every_table(folder):
    run = folder.path / "runs/alone"
    rows = individuals(run)
    total = sum(float(row["joules"]) for row in rows.values())
    text = folder.run(0, "show", run)
    check("  energy: " in text and ", 100 % estimated\n" in text and text.count("energy") == 2, f"no total, or no column:\n{text}")
    shown = {row["id"]: row for row in csv.DictReader(io.StringIO(folder.run(0, "export", run, "--format", "csv")))}
    check(sorted(float(row["joules"]) for row in shown.values()) == sorted(float(row["joules"]) for row in rows.values()), f"{shown}")
    check({row["energy_source"] for row in shown.values()} == {"estimated"}, f"{shown}")
    whole = json.loads(folder.run(0, "show", run, "--json"))
    check(near(whole["energy"]["joules"], total, 1e-9) and near(whole["energy"]["estimated"], total, 1e-9), f"{whole['energy']}")
    check(whole["energy"]["measured_gpu"] == 0 and whole["energy"]["unknown_individuals"] == 0, f"{whole['energy']}")
    one = whole["islands"][0]["best"][0]
    check(near(one["joules"], float(shown[one["id"]]["joules"]), 1e-9) and one["energy_source"] == "estimated", f"{one}")
    check(" (estimated)" in folder.run(0, "show", run, one["id"]), "finch show RUN ID does not tell its energy")
    passed("show, show ID, --json and csv tell the same joules")

    for runs, has_axis in (([run], True), ([run, folder.path / "runs/two"], True), ([run, folder.path / "runs/none"], False)):
        made = subprocess.run([sys.executable, SOURCE / "tools/report.py", *runs, "-o", folder.path / "report.html"], capture_output=True, text=True,
                              check=False)
        if "needs the Python package" in made.stderr:
            print(f"not looked at: {made.stderr}")
            return
        check(made.returncode == 0, f"report.py: {made.stderr}")
        page = (folder.path / "report.html").read_text()
        check("energy, all workers" in page and "100 % estimated" in page, "the report does not tell the run's energy")
        check(('"label":"kWh"' in page.replace(" ", "")) == has_axis, f"the report of {runs}: an axis of energy, expected: {has_axis}")
    passed("the report has the run's energy, and an axis of it where all of it is known")


def measured(folder):
    folder.write("alone.yaml", ALONE)
    with Counters(folder.path) as counters:
        os.environ["FINCH_TEST_RAPL"] = str(counters.path)
        longer = ("--set", "training.epochs=30", "--set", "search.budget.evaluations=2")
        output = folder.run(1, "evolve", "alone.yaml", "--run", "runs/measured", *longer)
        shared = folder.run(2, "evolve", "alone.yaml", "--run", "runs/shared", *longer, "--set", "workers.ranks=2")
        doctor = folder.run(1, "doctor")
    check("energy: measured by the CPUs (RAPL)\n" in output and "energy: measured by the CPUs (RAPL)\n" in shared, output + shared)
    for name in ("measured", "shared"):
        rows = joules_of(folder.path / "runs" / name)
        check({source for *_, source in rows} == {"measured_cpu"}, f"{name}: {rows}")
        seconds, joules = (sum(row[place] for row in rows) for place in (1, 2))
        check(near(joules, 80 * seconds, 0.15), f"{name}: {joules} J in {seconds} s of training, on processors of 80 W: {rows}")
    check("measured, 2 packages" in doctor, doctor)
    passed("two processors of 80 W together are measured, round after round, also where two ranks share them")

    os.environ["FINCH_TEST_RAPL"] = str(folder.path / "locked")
    shutil.copytree(counters.path, folder.path / "locked")
    (folder.path / "locked/intel-rapl:1/energy_uj").unlink()
    (folder.path / "locked/intel-rapl:1/energy_uj").mkdir()  # root may read anything but this
    output = folder.run(2, "evolve", "alone.yaml", "--run", "runs/locked", "--set", "workers.ranks=2")
    check(output.count("energy_uj") == 1 and "energy: estimated with 25 W" in output, f"not one line of counters that cannot be read\n{output}")
    check("not measured: " in folder.run(1, "doctor"), "the doctor does not say that nothing is measured")
    os.environ["FINCH_TEST_RAPL"] = NO_COUNTERS
    passed("a counter that cannot be read: the estimate, and one line of the log")
    end_of_short_form()


def stopped(folder):
    folder.write("long.yaml", LONG)
    stop_in_training(folder, "runs/long", "long.yaml")
    (outcome, seconds, joules, source), = joules_of(folder.path / "runs/long")
    check(outcome == "unfinished" and source == "estimated" and near(joules, 25 * seconds, 1e-6), f"stopped: {seconds} s, {joules} J, {source}")
    folder.run(2, "evolve", "long.yaml", "--run", "runs/long", "--set", "workers.watts=100")
    (outcome, all_seconds, all_joules, source), = joules_of(folder.path / "runs/long")
    check(outcome == "evaluated" and source == "estimated" and all_seconds > seconds, f"{outcome}, {all_seconds} s")
    check(near(all_joules - joules, 100 * (all_seconds - seconds), 1e-6), f"{joules} J in {seconds} s, then {all_joules} in {all_seconds}")
    passed("what a stop interrupted has the joules of both starts, each at its own watts")


def programs(folder):
    folder.write("program.py", "import time\ntime.sleep(1)\nprint('finch loss=1')\n")
    folder.write("program.yaml", f"name: p\nsearch:\n  objective: {{command: '{sys.executable} program.py'}}\n  space: {{x: {{real: [0, 1]}}}}\n"
                                 "  budget: {evaluations: 4}\nworkers: {islands: 1, watts: 50}\n")
    folder.run(1, "evolve", "program.yaml", "--run", "runs/program")
    rows = joules_of(folder.path / "runs/program")
    check(len(rows) == 4 and all(seconds >= 1 and source == "estimated" and near(joules, 50 * seconds, 0.1) for _, seconds, joules, source in rows), f"{rows}")
    folder.run(2, "evolve", "program.yaml", "--run", "runs/slots", "--set", "workers.slots=2", "--set", "workers.ranks=2")
    rows = shared_joules(folder.path / "runs/slots", 2 * 50)
    check(len(rows) == 4 and all(near(joules, expected, 0.25) for _, joules, expected in rows), f"two at once on two ranks: {rows}")
    check(any(joules < 0.9 * 100 * seconds for seconds, joules, _ in rows), f"no two ran at once: {rows}")
    passed("a program takes the watts of its worker's ranks while it runs; two at once share them")

    folder.write("program.py", "import os, time\ntime.sleep(3 if os.path.exists(os.path.dirname(__file__) + '/again') else 600)\nprint('finch loss=1')\n")
    process = folder.start(1, "evolve", "program.yaml", "--run", "runs/stopped", "--set", "search.budget.evaluations=1")
    journal = folder.path / "runs/stopped/state/worker-00000.journal"
    wait_for(lambda: journal.exists() and journal.stat().st_size > 0, "the program")
    time.sleep(1)
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGUSR2)
    check(end(process) == 75, folder.output())
    (outcome, seconds, joules, _), = joules_of(folder.path / "runs/stopped")
    check(outcome == "unfinished" and seconds > 0.5 and near(joules, 50 * seconds, 0.1), f"stopped: {outcome}, {seconds} s, {joules} J")
    folder.write("again", "")
    folder.run(1, "evolve", "program.yaml", "--run", "runs/stopped", "--set", "search.budget.evaluations=1", "--set", "workers.watts=5")
    (outcome, all_seconds, all_joules, _), = joules_of(folder.path / "runs/stopped")
    check(outcome == "evaluated" and all_seconds > seconds + 2.9 and near(all_joules - joules, 5 * (all_seconds - seconds), 0.1),
          f"{joules} J in {seconds} s, then {all_joules} J in {all_seconds} s")
    passed("a program that was stopped has the joules of both starts")

    folder.write("function.yaml", "name: f\nsearch:\n  objective: {function: sphere, dimensions: 2}\n  budget: {evaluations: 10}\n"
                                  "workers: {islands: 1, watts: 50}\n")
    output = folder.run(1, "evolve", "function.yaml", "--run", "runs/function")
    check("energy" not in output and all(math.isnan(joules) for _, _, joules, _ in joules_of(folder.path / "runs/function")), output)
    passed("functions take none")


os.environ["FINCH_TEST_RAPL"] = NO_COUNTERS
with Folder() as folder:
    estimated(folder)
    in_every_table(folder)
for scenario in (measured, stopped, programs):
    with Folder() as folder:
        scenario(folder)
