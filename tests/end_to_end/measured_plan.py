"""Checks `finch plan --measure`: it prints all figures, and they are consistent. The printed sbatch line is for the
fastest layout. tools/bench/plan.py measures the accuracy of the
forecasts."""
import re

from harness import SOURCE, TINY, Folder, check, passed

CONFIG = TINY.replace("islands: 2", "islands: 1")
MEASURE = ("--measure", "--measure-seconds", "1")
LONGER = (10, 100, 1000)  # seconds to measure if a busy machine trained too few genomes


SECONDS = {"s": 1, "min": 60, "h": 3600}


def seconds_of(text):
    """Converts "1 min 05 s" to seconds."""
    words = text.split()
    return sum(float(number) * SECONDS[unit] for number, unit in zip(words[::2], words[1::2]))


def rows_of(output):
    """Reads the table: {ranks: (genomes, three times in seconds, workers, node-hours, evaluations, starts)}."""
    table = output[output.index(" ranks  threads  genomes"):].splitlines()[1:]
    rows = {}
    for line in table:
        cells = re.split(r"  +", line.strip())
        if len(cells) < 11 or not cells[0].isdigit():
            break
        rows[int(cells[0])] = (int(cells[2]), [seconds_of(cell) for cell in cells[3:6]], int(cells[-5]), float(cells[-3]), cells[-2], cells[-1])
    return rows


def figures(folder):
    output = folder.run(2, "plan", "tiny.yaml", *MEASURE, "--nodes", 2, "--ranks-per-node", 2)
    for seconds in LONGER:
        # On a busy machine, two ranks wait so long for each other that no layout ends within a start.
        if all(row[0] >= 4 for row in rows_of(output).values()) and "sbatch --nodes=2" in output:
            break
        output = folder.run(2, "plan", "tiny.yaml", "--measure", "--measure-seconds", seconds, "--nodes", 2, "--ranks-per-node", 2)
    rows = rows_of(output)
    check({ranks: row[2] for ranks, row in rows.items()} == {1: 4, 2: 2}, f"workers in {rows}\n{output}")
    for genomes, times, workers, node_hours, evaluations, starts in rows.values():
        check(genomes >= 4 and times == sorted(times), f"{genomes} genomes, {times}\n{output}")
        check(evaluations == "12" and int(starts) >= 1, f"{evaluations} evaluations in {starts} starts\n{output}")
        hours = 12 / workers * times[1] / 3600  # the table shows tenths of a second
        check(abs(node_hours - 2 * hours) <= 0.05 * node_hours + 2 * 12 / workers * 0.05 / 3600, f"{node_hours} node-hours, {hours} hours on 2 nodes\n{output}")
    submit = re.search(r"best with workers of (\d) ranks?:\n  sbatch --nodes=2 --ntasks-per-node=2 --cpus-per-task=(\d+) --mem-per-cpu=(\d+)M "
                       r"--time=\d+:\d\d:00 \S*jobs/evolve.sbatch tiny.yaml --set workers.ranks=(\d)", output)
    check(submit, f"no sbatch line\n{output}")
    best = int(submit[1])
    check(int(submit[4]) == best and rows[best][3] == min(row[3] for row in rows.values()), f"{submit[0]} is not for the fastest layout\n{output}")
    asked = re.search(r"--mem-per-cpu=(\d+)M", folder.run(0, "plan", "tiny.yaml", "--nodes", 2, "--ranks-per-node", 2, "--set",
                                                          f"workers.ranks={best}", "--set", f"workers.threads={submit[2]}"))
    check(submit[3] == asked[1], f"--mem-per-cpu={submit[3]}M, and plan says {asked[1]}M")
    check(not (folder.path / "runs").exists(), "measuring began a run")
    return output


def limits(folder):
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--time", 10, "--set", "search.budget={hours: 1}", "--set", "workers.ranks=1")
    check("--time=0:10:00" in output and [row[5] for row in rows_of(output).values()] == ["9"], f"an hour in starts of ten minutes\n{output}")
    check(all(re.fullmatch(r"\d+-\d+", row[4]) for row in rows_of(output).values()), f"evaluations without a range\n{output}")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--time", "3:00", "--set", "workers.ranks=1", expect=2)
    check("--time: 3:00 is 3 min 00 s, and a job stops 3 min 00 s before its limit" in output and "measured" not in output, f"a limit of three minutes\n{output}")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "search.budget={target_loss: 0.1}", "--set", "workers.ranks=1")
    check("cannot be foreseen" in output, f"a target loss\n{output}")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "training.early_stopping={patience: 2}", "--set", "workers.ranks=1")
    check("remark: training.early_stopping or search.pruning ends trainings early" in output, f"no remark\n{output}")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--nodes", 1, "--ranks-per-node", 1, "--set", "workers.islands=2", "--set", "workers.ranks=1", expect=2)
    check("islands" in output, f"two islands on one worker\n{output}")


def other_layouts(folder):
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "workers.ranks=2", "--nodes", 1, "--ranks-per-node", 2)
    check("remark: workers of 2 ranks, as configured, were not measured" in output, f"no remark\n{output}")
    line = re.search(r"^  sbatch .*$", output, re.MULTILINE)[0]
    check(line.count("workers.ranks=") == 1 and line.endswith("--set workers.ranks=1"), line)
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "workers.ranks=1", "--nodes", 1, "--ranks-per-node", 2, "--gpus-per-node", 2)
    check("no estimate: the times are of CPUs, and the plan is for nodes with GPUs" in output and "sbatch" not in output, f"GPUs by CPUs\n{output}")
    folder.run(1, "evolve", "tiny.yaml", "--run", "earlier", "--set", "workers.ranks=1", "--set", "search.budget.evaluations=2")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "workers.ranks=1", "--reuse", "earlier")
    check(re.search(r"^  sbatch .* --set 'search.reuse=.*earlier.*' --set workers.ranks=1$", output, re.MULTILINE), f"--reuse in the line\n{output}")
    return output


def refusals(folder):
    for words, config, arguments in (("--time: 1h is no time limit", "tiny.yaml", ("--time", "1h")),
                                     ("--measure: it trains networks", SOURCE / "configs/sphere.yaml", ())):
        output = folder.run(2, "plan", config, *MEASURE, *arguments, expect=2)
        check(output.count("finch: ") == 1 and words in output, f"'{words}' is not said once\n{output}")
    folder.run(0, "plan", "tiny.yaml", "--time", 30, expect=2)
    absent = ("tiny.yaml", "--set", "data={kind: idx, path: data/digits}", "--nodes", 1, "--ranks-per-node", 4)
    output = folder.run(2, "plan", *absent, *MEASURE, expect=2)
    check("data/digits" in output and output.count("finch: ") == 1, output)
    output = folder.run(0, "plan", *absent)
    check("data/digits is not here yet: images, classes and memory are not known" in output and "4 ranks" in output, output)


def main():
    with Folder() as folder:
        folder.write("tiny.yaml", CONFIG)
        figures(folder)
        limits(folder)
        other_layouts(folder)
        refusals(folder)
    passed("times and searches by ranks, limits, the sbatch line")


main()
