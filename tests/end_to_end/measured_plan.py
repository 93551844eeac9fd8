"""Checks `finch plan --measure`: it prints all figures, and they are consistent. The printed sbatch line is for the
fastest layout. tools/bench/plan.py measures the accuracy of the
forecasts."""
import re

from harness import SOURCE, TINY, Folder, check, passed

CONFIG = TINY.replace("islands: 2", "islands: 1")
MEASURE = ("--measure", "--measure-seconds", "1")
LONGER = (10, 100, 1000)  # seconds to measure if a busy machine trained too few genomes


def number(text):
    return float(text)


def individuals(output):
    """Reads the table of training times: {ranks: (genomes, five times, efficiency)}."""
    rows = re.findall(r"^ +(\d+) +(\d+) +(\d+)((?: +[\d.e+-]+){5})  ([\d.]*)", output, re.MULTILINE)
    return {int(ranks): (int(genomes), list(map(number, times.split())), number(share or "nan")) for ranks, _, genomes, times, share in rows}


def layouts(output):
    """Reads the forecasts: {ranks: (workers, (time, low, high), node-hours, evaluations, starts)}."""
    rows = re.findall(r"^ +(\d+) +(\d+) +([\d.e+-]+) \(([\d.e+-]+) to ([\d.e+-]+)\) +([\d.e+-]+) +([\d.e+]+)(?: \([^)]*\))? +(\w+)$", output, re.MULTILINE)
    return {int(row[0]): (int(row[1]), tuple(map(number, row[2:5])), number(row[5]), number(row[6]), row[7]) for row in rows}


def figures(folder):
    output = folder.run(2, "plan", "tiny.yaml", *MEASURE, "--nodes", 2, "--ranks-per-node", 2)
    for seconds in LONGER:
        # On a busy machine, two ranks wait so long for each other that no layout ends within a start.
        if all(genomes >= 4 for genomes, _, _ in individuals(output).values()) and "sbatch --nodes=2" in output:
            break
        output = folder.run(2, "plan", "tiny.yaml", "--measure", "--measure-seconds", seconds, "--nodes", 2, "--ranks-per-node", 2)
    found = individuals(output)
    check(sorted(found) == [1, 2], f"individuals on {sorted(found)} ranks\n{output}")
    for genomes, times, _ in found.values():
        check(genomes >= 4 and times == sorted(times) and times[0] > 0, f"{genomes} genomes, {times}\n{output}")
    check(0 <= found[2][2] < 2, f"efficiency of two ranks {found[2][2]}\n{output}")
    late = re.search(r"for want of time not: (.*) \(", output)
    for gene, line in {"layers": r"  layers +1: \S+  3: \S+", "activation": r"  activation +relu: \S+  sigmoid: \S+  tanh: \S+", "lr": r"  lr +0.1: \S+  1: \S+"}.items():
        check(re.search(line, output) or (gene != "layers" and late and gene in late[1].split(", ")), f"no line '{line}'\n{output}")
    unit = re.search(r"ranks +workers +(hours|minutes|seconds)", output)[1]
    found = layouts(output)
    check({ranks: row[0] for ranks, row in found.items()} == {1: 4, 2: 2}, f"{found}\n{output}")
    for _, (middle, low, high), node_hours, evaluations, starts in found.values():
        check(low <= middle <= high and evaluations == 12, f"{found}")
        hours = middle / {"hours": 1, "minutes": 60, "seconds": 3600}[unit]
        # A start has a limit of 5 minutes and stops 3 minutes before it. A slow machine may need several starts.
        check(starts == "1" or 3600 * hours > 30, f"{starts} starts for {3600 * hours} s")
        check(abs(node_hours - 2 * hours) < 0.02 * node_hours, f"{node_hours} node-hours, {hours} hours on 2 nodes")
    submit = re.search(r"sbatch --nodes=2 --ntasks-per-node=2 --cpus-per-task=(\d+) --mem-per-cpu=(\d+)M --time=\d+:\d\d:00 jobs/evolve.sbatch "
                       r"tiny.yaml --set workers.ranks=(\d)", output)
    check(submit, f"no sbatch line\n{output}")
    best = min(found, key=lambda ranks: found[ranks][1][0])
    check(int(submit[3]) == best, f"{submit[0]} is not for the fastest layout, workers of {best}\n{output}")
    asked = re.search(r"--mem-per-cpu=(\d+)M", folder.run(0, "plan", "tiny.yaml", "--nodes", 2, "--ranks-per-node", 2, "--set",
                                                          f"workers.ranks={best}", "--set", f"workers.threads={submit[1]}"))
    check(submit[2] == asked[1], f"--mem-per-cpu={submit[2]}M, and plan says {asked[1]}M")
    check(not (folder.path / "runs").exists(), "measuring began a run")
    return output


def limits(folder):
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--time", 10, "--set", "search.budget={hours: 1}", "--set", "workers.ranks=1")
    check(re.search(r"0:10:00", output) and [row[4] for row in layouts(output).values()] == ["9"], f"an hour in starts of ten minutes\n{output}")
    check("submit it" in output and re.search(r"\d \([\d.e+]+ to [\d.e+]+\) +9$", output, re.MULTILINE), f"evaluations without their spread\n{output}")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--time", "3:00", "--set", "workers.ranks=1", expect=2)
    check("--time: 3:00 is 3 min 00 s, and a job stops 3 min 00 s before its limit" in output and "measured" not in output, f"a limit of three minutes\n{output}")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "search.budget={target_loss: 0.1}", "--set", "workers.ranks=1")
    check("cannot be foreseen" in output, f"a target loss\n{output}")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "training.early_stopping={patience: 2}", "--set", "workers.ranks=1")
    check("training.early_stopping ends trainings early" in output, f"no remark\n{output}")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--nodes", 1, "--ranks-per-node", 1, "--set", "workers.islands=2", "--set", "workers.ranks=1", expect=2)
    check("islands" in output, f"two islands on one worker\n{output}")


def other_layouts(folder):
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "workers.ranks=2", "--nodes", 1, "--ranks-per-node", 2)
    check("remark: workers of 2 ranks, as configured, were not measured" in output, f"no remark\n{output}")
    line = re.search(r"^  sbatch .*$", output, re.MULTILINE)[0]
    check(line.count("workers.ranks=") == 1 and line.endswith("--set workers.ranks=1"), line)
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "workers.ranks=1", "--nodes", 1, "--ranks-per-node", 2, "--gpus-per-node", 2)
    check("no forecast: these times are of CPUs, and the plan is for nodes with GPUs" in output and "sbatch" not in output, f"GPUs by CPUs\n{output}")
    folder.run(1, "evolve", "tiny.yaml", "--run", "earlier", "--set", "workers.ranks=1", "--set", "search.budget.evaluations=2")
    output = folder.run(1, "plan", "tiny.yaml", *MEASURE, "--set", "workers.ranks=1", "--reuse", "earlier")
    check(re.search(r"^  sbatch .* --set 'search.reuse=.*earlier.*' --set workers.ranks=1$", output, re.MULTILINE), f"--reuse in the line\n{output}")
    folder.write("pools.yaml", CONFIG.replace("kernel: 2}", "kernel: $pool}").replace("    layers:", "    pool: {int: [1, 40]}\n    layers:"))
    output = folder.run(1, "plan", "pools.yaml", *MEASURE, "--set", "workers.ranks=1")
    check(re.search(r"  pool +1: \S+  40: no network", output), f"a bound without a network\n{output}")
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
    passed("times by ranks and genes, layouts, limits, the sbatch line")


main()
