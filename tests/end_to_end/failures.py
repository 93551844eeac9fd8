"""Checks a search in which all evaluations fail: it gives up early, prints the reason and a count, and its exit code is
not 0."""
import os
import re
import sys

from harness import TINY, Folder, check, end_of_short_form, individuals, outcome_words, passed

PROGRAM = """
import os, sys, time
time.sleep(0.3)
print("begins", flush=True)
if not os.path.exists(os.environ["FINCH_RUN"] + "/../mended"):
    open("data/x.h5")
print("finch loss=" + os.environ["FINCH_GENE_x"] + " top5=0.25")
"""
CONFIG = f"""
name: run
search:
  objective: {{command: "{sys.executable} program.py", grace_seconds: 0.1}}
  space: {{x: {{real: [0, 1]}}}}
  budget: {{evaluations: 40}}
workers: {{islands: 2}}
checkpoint: {{archive_seconds: 0.2}}
log: {{interval_seconds: 0.2}}
"""
REASON = "FileNotFoundError: [Errno 2] No such file or directory: 'data/x.h5'"


def outcomes(run):
    words = outcome_words(run)
    return [words[row["outcome"]] for row in individuals(run).values()]


def failed_lines(output):
    """Returns the number of failures that the warnings of a log report."""
    told = sum(int(number) for number in re.findall(r" W (\d+) evaluations? failed since the last line", output))
    return told + len(re.findall(r" W \d+\.\d+\.\d+: (?:failed|out_of_memory)", output))


def last_state(folder, run, expect):
    line = folder.run(0, "status", run, expect=expect).strip()
    progress = folder.run(0, "status", run, "--progress", expect=expect).split(maxsplit=2)
    check(float(progress[0]) >= 0 and re.fullmatch(r"[0-9a-f]{16}/\d+", progress[1]) and progress[2].strip() == line, f"{progress}")
    return line


with Folder() as folder:
    folder.write("program.py", PROGRAM)
    folder.write("run.yaml", CONFIG)
    output = folder.run(4, "evolve", "run.yaml", expect=75)
    run = folder.path / "runs/run"
    ended = [word for word in outcomes(run) if word != "unfinished"]
    check(set(ended) == {"failed"} and 8 <= len(ended) <= 20, f"{ended}\n{output}")
    check(failed_lines(output) == len(ended), f"warnings tell of {failed_lines(output)} of {len(ended)} failures\n{output}")
    check(f"gave up without a result: 0 evaluated, {len(ended)} failed, {len(outcomes(run)) - len(ended)} unfinished: {len(ended)} × {REASON}; "
          "the rest of the budget is kept" in output, output)
    check(re.search(r" I \d+/40( ·|,) \d+ failed( ·|,) \d running", output), f"no count in the progress line\n{output}")
    line = last_state(folder, "runs/run", 78)
    check(line.startswith(f"gave up: runs/run, {len(ended)} of 40 evaluations") and f"0 evaluated, {len(ended)} failed: {len(ended)} × {REASON}" in line, line)
    shown = folder.run(0, "show", "runs/run")
    check("run runs/run: gave up" in shown and f"{len(ended)} failed: {len(ended)} × {REASON}" in shown.replace(f", {len(outcomes(run)) - len(ended)} unfinished", ""), shown)

    output = folder.run(2, "evolve", "run.yaml", "--set", "workers.ranks=1", "--set", "search.give_up_after=3", expect=75)
    again = [word for word in outcomes(run) if word != "unfinished"]
    check(3 <= len(again) - len(ended) <= 8, f"{len(again) - len(ended)} more\n{output}")
    (run.parent / "mended").touch()
    output = folder.run(4, "evolve", "run.yaml")
    words = outcomes(run)
    check(len(words) == 40 and words.count("failed") == len(again) and words.count("evaluated") == 40 - len(again), f"{words}")
    check(f"complete: {40 - len(again)} evaluated, {len(again)} failed, 0 unfinished: {len(again)} × {REASON}" in output, output)
    line = last_state(folder, "runs/run", 0)
    check(line.startswith("complete: runs/run, 40 of 40 evaluations, best loss ") and f"{len(again)} failed" in line, line)
passed("a program that always fails stops the run, which keeps its budget and goes on once the cause is fixed")

with Folder() as folder:
    folder.write("program.py", PROGRAM)
    folder.write("run.yaml", CONFIG)
    output = folder.run(4, "evolve", "run.yaml", "--set", "search.budget.evaluations=4", "--set", "workers.ranks=2", expect=1)
    check(f"complete without a result: 0 evaluated, 4 failed, 0 unfinished: 4 × {REASON}" in output, output)
    check(last_state(folder, "runs/run", 78).startswith("complete without a result: runs/run, 4 of 4 evaluations, 0 evaluated, 4 failed: 4 × "), "status")
    shown = folder.run(0, "show", "runs/run", "0.0.1")
    check("run runs/run: complete without a result" in folder.run(0, "show", "runs/run"), "show")
    check(re.search(r"problem: rank [01]: exit code 1: FileNotFoundError", shown), shown)
    output = folder.run(2, "evolve", "run.yaml", "--run", "all", "--set", "search.budget.evaluations=12", "--set", "search.give_up_after=none", expect=1)
    check(outcomes(folder.path / "all") == ["failed"] * 12, f"{output}")
    folder.run(1, "train", "run.yaml", "--gene", "x=0.5", expect=1)
    folder.write("nan.sh", "echo finch loss=nan\n")
    output = folder.run(2, "evolve", "run.yaml", "--run", "nan", "--set", "search.objective.command=sh nan.sh", expect=75)
    check("gave up without a result: 0 evaluated, " in output and " diverged, " in output and failed_lines(output) == 0, output)
    output = folder.run(2, "evolve", "run.yaml", "--run", "short", "--set", "search.budget={hours: 0.0003}",
                        "--set", "search.objective.command=sleep 600", expect=1)
    check("complete without a result: 0 evaluated, 2 unfinished; no evaluation ended within search.budget"
          in output and "mend what failed" not in output, output)
passed("a search that is complete without a result ends with 1, whatever its evaluations ended as")
end_of_short_form()

with Folder() as folder:
    folder.write("program.py", PROGRAM)
    folder.write("run.yaml", CONFIG)
    before = sorted(folder.path.rglob("*"))
    output = folder.run(2, "plan", "run.yaml", "--try", expect=1)
    check("individual 0.0.1: failed, 0 epochs" in output and output.count(REASON) == 2 and "the first individual gives no result" in output, output)
    check(sorted(folder.path.rglob("*")) == before, "a try leaves something behind")
    (folder.path / "runs").mkdir()
    (folder.path / "mended").touch()
    (folder.path / "runs/mended").touch()
    output = folder.run(0, "plan", "run.yaml", "--try", "--nodes", "2", "--ranks-per-node", "4")
    check("8 ranks, 8 workers of 1 rank, 2 islands" in output and "individual 0.0.1: evaluated, loss 0." in output and " top5" in output, output)
    check("  begins\n" in output and [path.name for path in (folder.path / "runs").iterdir()] == ["mended"], output)
    folder.write("result.txt", "")
    shared = ("--set", f"search.objective.command={sys.executable} program.py ./result.txt")
    on_nodes = ("--nodes", "2", "--ranks-per-node", "4")
    for ranks, *command in ((0, "plan", "run.yaml", *on_nodes), (0, "plan", "run.yaml", "--try"),
                            (0, "plan", "run.yaml", "--try", *on_nodes), (2, "evolve", "run.yaml", "--run", "shared")):
        output = folder.run(ranks, *command, *shared)
        for name, level in (("program.py", "remark:| I"), ("./result.txt", "warning:| W")):
            told = rf"(?:{level}) search\.objective\.command: '{name}' is taken to be the file {folder.path / name}, one for"
            check(len(re.findall(told, output)) == 1, f"{name}\n{output}")
        check("shell: true" not in output, output)
        check("one for all workers; if programs write it, write {folder}/result.txt" in output, output)
    check("there is no" in folder.run(0, "plan", "run.yaml", "--try", "--set", "search.objective.command=no-such-program", expect=2), "no program")
    for command in (("plan", "run.yaml", *on_nodes), ("plan", "run.yaml", "--try")):
        output = folder.run(0, *command, "--set", "search.objective.command=sh -c 'echo finch loss=1' | cat")
        check("warning: search.objective.command: '|' is a plain argument of the program; shell: true" in output, output)
    folder.write("tiny.yaml", TINY)
    output = folder.run(2, "plan", "tiny.yaml", "--try")
    check("individual 0.0.1: evaluated, loss " in output and "learning curve" in output and "on 2 ranks" not in output, output)
    check([path.name for path in (folder.path / "runs").iterdir()] == ["mended"], "a try of a network leaves something behind")
passed("finch plan --try runs the first individual once, prints its result, and keeps nothing")

with Folder() as folder:
    os.environ["FINCH_TEST_MEMORY_LIMIT"] = str(2000 << 20)
    folder.write("tiny.yaml", TINY.replace("  - flatten\n", "  - flatten\n  - linear: {units: $units}\n").replace("    layers:", "    units: {int: [2000000, 3000000]}\n    layers:"))
    output = folder.run(4, "evolve", "tiny.yaml", "--set", "search.budget.evaluations=2000", "--set", "log.level=warning", expect=75)
    ended = outcomes(folder.path / "runs/tiny")
    check(set(ended) <= {"out_of_memory", "unfinished"} and 8 <= len(ended) <= 20, f"{ended}\n{output}")
    check(failed_lines(output) == ended.count("out_of_memory"), f"warnings tell of {failed_lines(output)} failures\n{output}")
    check(re.search(r"gave up without a result: 0 evaluated, \d+ out_of_memory, \d+ unfinished: \d+ × out of memory on rank \d of the worker: it needs \d+ MiB, and \d+ MiB are left;", output), output)
    output = folder.run(2, "plan", "tiny.yaml", "--try", expect=1)
    check("individual 0.0.1: out_of_memory" in output and " MiB are left" in output, output)
    check("no trained network yet" in folder.run(1, "test", "runs/tiny", expect=2), "finch test")
passed("networks that all are out of memory stop the run; each says what it needs and what is left")
