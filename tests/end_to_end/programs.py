"""Checks programs as objectives: their input, reports and exits, stops and resumes, and several ranks."""
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys

import h5py

from harness import SOURCE, Folder, check, end, end_of_short_form, individuals, outcome_words, passed, ranks_of, wait_for

CLIENT = SOURCE / "tools/python"
SPACE = """
  space:
    lr: {real: [0.001, 1], scale: log}
    layers: {int: [1, 9]}
    activation: {choice: [relu, "it's $(touch hacked) \\"quoted\\""]}
    rate: {real: [0, 1], when: {activation: [relu]}}
"""


def config(command, more="", budget=4, workers="{islands: 1}", search=""):
    """Returns a configuration with the objective `command`, a text or a list of words."""
    text = command if isinstance(command, str) else " ".join(command)
    return f"""
name: run
search:
  objective:
    command: |-
      {text}
    {more}
{SPACE}
  budget: {{evaluations: {budget}}}
  {search}
workers: {workers}
checkpoint: {{archive_seconds: 0.2}}
"""


def script(folder, text):
    folder.write("program.py", "import glob, json, os, signal, sys, time\n" + text)
    return f"{sys.executable} program.py"


def problems(run):
    with h5py.File(pathlib.Path(run) / "population.h5", "r") as file:
        return [text.decode() if isinstance(text, bytes) else text for text in file["problems"]["text"]] if "problems" in file else []


def outcomes(run):
    words = outcome_words(run)
    return sorted(words[row["outcome"]] for row in individuals(run).values())


def left_behind(marker):
    """Returns the ids of the processes that have `marker` in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


with Folder() as folder:
    template = '{"lr": {lr}, "nested": {"layers": {layers}}, "literal": "{{lr}}"}'
    folder.write("input.template", template)
    program = script(folder, """
given = json.loads(sys.stdin.readline())
assert sys.stdin.read() == "", "standard input ends"
json.dump({"arguments": sys.argv[1:], "given": given, "environment": dict(os.environ), "input": json.load(open("sub/input.json")),
           "here": os.getcwd()}, open(os.environ["FINCH_RUN"] + "/../seen-" + given["id"], "w"))
print("chatter")
print("finch loss=%r epoch=1 accuracy=0.5 top5=%r" % (float(given["genes"]["lr"]), 2 * float(given["genes"]["lr"])))
""")
    folder.write("run.yaml", config(program + " --lr={lr} '{activation}' {{}} {layers} {id} {seed} {folder}",
                                    "files: {sub/input.json: input.template}\n    keep: all", budget=12))
    folder.run(2, "evolve", "run.yaml")
    rows = individuals(folder.path / "runs/run")
    check(outcomes(folder.path / "runs/run") == ["evaluated"] * 12, f"{problems(folder.path / 'runs/run')}")
    check(not list(folder.path.glob("**/hacked")), "a gene's value was run by a shell")
    seen = [json.loads(path.read_text()) for path in folder.path.glob("runs/seen-*")]
    check(len(seen) == 12, f"{len(seen)} of 12 programs ran")
    for one in seen:
        given, words, variables = one["given"], one["arguments"], one["environment"]
        genes = given["genes"]
        check(words[0] == f"--lr={variables['FINCH_GENE_lr']}" and float(variables["FINCH_GENE_lr"]) == genes["lr"], f"{words}")
        check(words[1:] == [genes["activation"], "{}", str(genes["layers"]), given["id"], str(given["seed"]), one["here"]], f"{words}")
        check(isinstance(genes["layers"], int) and one["input"] == {"lr": genes["lr"], "nested": {"layers": genes["layers"]}, "literal": "{lr}"}, f"{one}")
        check(("rate" in genes) == (genes["activation"] == "relu") == ("FINCH_GENE_rate" in variables), f"{genes}")
        check(variables["FINCH_ID"] == given["id"] and variables["FINCH_SEED"] == str(given["seed"]) and "FINCH_RESUME" not in variables, "variables")
        check(one["here"] == variables["FINCH_FOLDER"] == given["folder"] and os.path.isdir(variables["FINCH_CHECKPOINT_DIR"]), "folder")
        check(not [name for name in variables if name.startswith(("OMPI_COMM", "PMIX_R", "PMIX_N"))], "MPI's variables are handed on")
        check((variables["RANK"], variables["WORLD_SIZE"], variables["LOCAL_WORLD_SIZE"]) == ("0", "1", "1") and int(variables["MASTER_PORT"]) > 0, "ranks")
        check(pathlib.Path(one["here"] + ".output").read_text().startswith("chatter\n"), "the output is not kept")
    check(len({one["given"]["seed"] for one in seen}) == 12, "two individuals have the same seed")
    check(sorted(row["loss"] for row in rows.values()) == sorted(one["given"]["genes"]["lr"] for one in seen), "the losses are others")
    check(all(row["accuracy"] == 0.5 and row["epochs"] == 1 for row in rows.values()), "accuracy and epochs")
    shown = folder.run(0, "show", "runs/run", seen[0]["given"]["id"])
    check(f"individual {seen[0]['given']['id']}: evaluated, loss " in shown and "  chatter\n" in shown and "learning curve  " in shown, shown)
    check(" top5" in shown, shown)
    with h5py.File(folder.path / "runs/run/population.h5") as file:
        metrics = {row["individual"]: (row["epoch"], row["name"], row["value"]) for row in file["metrics"][:]}
    check(metrics == {number: (1, b"top5", 2 * row["loss"]) for number, row in rows.items()}, f"{metrics}")
    table = list(csv.DictReader(folder.run(0, "show", "runs/run", "--csv").splitlines()))
    check(all(float(row["metric.top5"]) == 2 * float(row["loss"]) for row in table), "metrics as columns")
    again = shown.split("evaluate it again, once the files of search.objective.files are there:\n")[1]
    name = "again-" + seen[0]["given"]["id"]
    subprocess.run(["sh", "-ec", f"mkdir {name} && cp -r '{seen[0]['here']}/sub' {name}; " + again], cwd=folder.path, check=True)
    now = json.loads((folder.path / "runs" / ("seen-" + seen[0]["given"]["id"])).read_text())
    check(now["given"]["seed"] == seen[0]["given"]["seed"] and now["given"]["genes"] == seen[0]["given"]["genes"], "another seed, or other genes")
    check("equal to the last bit" in folder.run(1, "replay", "runs/run", seen[0]["given"]["id"]), "a replay differs")
    (folder.path / "input.template").write_text("{lr}")
    check("the templates have changed since the run" in folder.run(1, "replay", "runs/run", seen[0]["given"]["id"], expect=2), "a replay with another template")
    folder.write("input.template", template)
    check("there is no individual 7.7.7" in folder.run(0, "show", "runs/run", "7.7.7", expect=2), "show of nobody")
passed("a program gets its genes as arguments, variables, a line and files, and its loss is what it says")

with Folder() as folder:
    VALUES = {"version": "3.10", "site": "007", "scale": "1e3", "rate": "0.001", "width": "12"}
    folder.write("input.template", " ".join(f"{{{name}}}" for name in VALUES))
    program = script(folder, """
given = json.loads(sys.stdin.readline())
seen = [given["genes"], sys.argv[1:], {name: value for name, value in os.environ.items() if name.startswith("FINCH_GENE_")}, open("input").read()]
open(os.environ["FINCH_RUN"] + "/seen", "w").write(json.dumps(seen))
print("finch loss=1")
""")
    command = " ".join(f"{{{name}}}" for name in VALUES)
    searched = "{version: {choice: [3.9, 3.10]}, site: {choice: [007, 008]}, scale: {choice: [1e3, 1e4]}, rate: {real: [0.001, 1]}, width: {int: [1, 20]}}"
    folder.write("run.yaml", f"search: {{objective: {{command: '{program} {command}', files: {{input: input.template}}}}, space: {searched}, duplicates: train, budget: {{evaluations: 1}}}}\n"
                             "workers: {ranks: 1}\n")
    first = "search.first=[{version: 3.10, site: 007, scale: 1e3, rate: 1e-3, width: 12}]"
    frozen = [word for name, value in VALUES.items() for word in ("--set", f"search.space.{name}={'1e-3' if name == 'rate' else value}")]
    folder.run(0, "evolve", "run.yaml", "--run", "searched", "--set", first)
    folder.run(0, "evolve", "run.yaml", "--run", "frozen", *frozen)
    seen = {run: json.loads((folder.path / run / "seen").read_text()) for run in ("searched", "frozen")}
    check(seen["searched"] == seen["frozen"], f"{seen}")
    check(seen["frozen"][0] == {**VALUES, "rate": 0.001, "width": 12} and seen["frozen"][1] == list(VALUES.values()), f"{seen['frozen']}")
    for run in ("searched", "frozen"):
        row = next(csv.DictReader(folder.run(0, "show", run, "--csv").splitlines()))
        check({name: row[name] for name in VALUES} == VALUES, f"--csv of {run}: {row}")
        shown = json.loads(folder.run(0, "show", run, row["id"], "--json"))["genes"]
        check(shown == seen[run][0], f"--json of {run}: {shown}")
    folder.run(0, "evolve", "run.yaml", "--run", "frozen", *frozen, "--set", "search.budget.evaluations=2")
    other = [word.replace("3.10", "3.9") for word in frozen]
    check("search.space.version.value: 3.10 → 3.9" in folder.run(0, "evolve", "run.yaml", "--run", "frozen", *other, expect=2), "another value goes on")
    (folder.path / "frozen/seen").unlink()
    folder.run(0, "evolve", "frozen/config.yaml", "--run", "frozen", "--set", "search.budget.evaluations=3")
    check(json.loads((folder.path / "frozen/seen").read_text()) == seen["frozen"], "config.yaml gives other values")
    alone = {"lr": "0.00001", "tiny": "1e-5", "large": "1.0E3", "version": "3.10", "site": "007", "word": "yes"}
    folder.write("input.template", "")
    folder.write("alone.yaml", f"search: {{objective: {{command: '{program} {' '.join(f'{{{name}}}' for name in alone)}', files: {{input: input.template}}}}, "
                               f"space: {{{', '.join(f'{name}: {value}' for name, value in alone.items())}}}, duplicates: train, budget: {{evaluations: 1}}}}\n"
                               "workers: {ranks: 1}\n")
    folder.run(0, "evolve", "alone.yaml", "--run", "alone")
    genes, arguments, variables, _ = json.loads((folder.path / "alone/seen").read_text())
    check(genes == {**alone, "lr": 1e-5, "tiny": 1e-5, "large": 1000}, f"values alone in JSON: {genes}")
    texts = {**alone, "tiny": "0.00001", "large": "1000"}
    check(arguments == list(texts.values()) and variables == {f"FINCH_GENE_{name}": value for name, value in texts.items()}, f"{arguments}, {variables}")
    (folder.path / "alone/seen").unlink()
    folder.run(0, "evolve", "alone.yaml", "--run", "alone", "--set", "search.budget.evaluations=2")
    check(json.loads((folder.path / "alone/seen").read_text())[0] == genes, "a resume gives other values")
    shown = json.loads(folder.run(0, "show", "alone", "0.0.1", "--json"))["genes"]
    check(shown == genes, f"--json: {shown}")
passed("a value that is frozen is the one that the search gives, on every way to the program and back")

with Folder() as folder:
    text = (SOURCE / "configs/gallery/shell.yaml").read_text()
    folder.write("run.yaml", text)
    folder.run(2, "evolve", "run.yaml", "--run", "run")
    best = min(individuals(folder.path / "run").values(), key=lambda row: row["loss"])
    check(abs((best["a"] - 1) ** 2 + (best["b"] + 2) ** 2 - best["loss"]) < 1e-3 * (1 + best["loss"]), "configs/gallery/shell.yaml")
    check(not list((folder.path / "run/evaluations").glob("*/*")), "keep: none left folders behind")
    output = folder.run(0, "plan", "run.yaml", "--set", "search.objective.command='echo {c}'", expect=2)
    check("{c} names no gene" in output and "accepted: " in output, output)
    output = folder.run(1, "evolve", "run.yaml", "--run", "other", "--set", "search.objective.shell=false", "--set", "search.objective.command=no-such-program {a}", expect=2)
    check("there is no program 'no-such-program' in PATH" in output, output)
passed("configs/gallery/shell.yaml runs; a command without a program, or with an unknown name, is refused at once")

with Folder() as folder:
    program = script(folder, """
genes = json.loads(sys.stdin.readline())["genes"]
mark = os.environ["FINCH_RUN"] + "/../seen-" + str(genes["layers"])
tries = len(glob.glob(mark + "-*"))
open(mark + "-" + os.environ["FINCH_ID"], "w").close()
if tries < genes["layers"]:
    sys.exit("not yet")
print("finch loss=%r" % genes["layers"])
""")
    guesses = ", ".join(f"{{layers: {number}}}" for number in (0, 1, 2, 3))
    folder.write("run.yaml", config(program, budget=9, search=f"retries: 2\n  first: [{guesses}]").replace("[1, 9]", "[0, 3]"))
    folder.run(1, "evolve", "run.yaml")
    rows = individuals(folder.path / "runs/run")
    tries = {}
    for number, row in rows.items():
        tries.setdefault(row["layers"], []).append((number, row["retry_of"], row["loss"]))
    words = outcome_words(folder.path / "runs/run")
    for layers, chain in tries.items():
        chain.sort()
        check(len(chain) == min(layers, 2) + 1, f"{layers}: {chain}")
        check([one[1] for one in chain] == [0] + [one[0] for one in chain[:-1]], f"{layers}: {chain}")
        check(words[rows[chain[-1][0]]["outcome"]] == ("evaluated" if layers < 3 else "failed"), f"{layers}: {chain}")
    shown = folder.run(0, "show", "runs/run", f"0.0.{int(tries[1][1][0]) & 0xFFFFFFFF}")
    check(f"again after 0.0.{int(tries[1][0][0]) & 0xFFFFFFFF} failed" in shown, shown)
passed("what failed is tried again as often as it may, as another individual of the budget, and then left alone")

QUICK = {
    "sys.exit(3)": "exit code 3: a last word",
    "os.kill(os.getpid(), signal.SIGSEGV)": "ended by signal 11",
    "pass": "it ended without a loss",
    "print('finch loss=abc')": "invalid report: 'loss=abc'",
    "print('finch {\"loss\": 1')": "invalid report: Missing a comma",
    "os.close(1); sys.stdout = None": "it ended without a loss",
    "os.setsid() if os.fork() == 0 else sys.exit(4); time.sleep(1000)": "exit code 4",
}
ENDLESS = {
    "print('finch loss=1', flush=True); time.sleep(1000)": "it did not end within 1 s",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)": "it did not end within 1 s",
}


def check_endings(folder, endings, seconds):
    """Runs a search of one program for each entry of `endings`, {code: problem}. `seconds`: the time limit of a
    program."""
    marker = f"FINCH_TEST_LEFT={os.getpid()}"
    os.environ["LEFT_BEHIND"] = marker
    cases = "\n".join(f"    lambda: exec({text!r})," for text in endings)
    program = script(folder, f"""
endings = [
{cases}
]
print("a last word", file=sys.stderr, flush=True)
endings[(json.loads(sys.stdin.readline())["genes"]["layers"] - 1) % len(endings)]()
""")
    guesses = ", ".join(f"{{layers: {number + 1}}}" for number in range(len(endings)))
    folder.write("run.yaml", config(program, f"timeout_seconds: {seconds}\n    grace_seconds: 0.5", budget=len(endings), search=f"first: [{guesses}]"))
    folder.run(1, "evolve", "run.yaml", expect=1)  # exit code 1: no evaluation has a result
    run = folder.path / "runs/run"
    found = problems(run)
    for expected in endings.values():
        check(any(text.startswith(expected) for text in found), f"no problem says '{expected}': {found}")
    check(outcomes(run) == ["failed"] * len(endings), f"{outcomes(run)}")
    check(not left_behind(marker), f"left behind: {left_behind(marker)}")
    check(len(list(run.glob("evaluations/*/*.errors"))) == len(endings), "the folders of what failed are not kept")


for endings, seconds in ((QUICK, 300), (ENDLESS, 1)):
    with Folder() as folder:
        check_endings(folder, endings, seconds)
passed("a program that fails in whatever way is failed, says why, and leaves nothing behind; the others go on")

with Folder() as folder:
    program = script(folder, """
epochs = int(json.loads(sys.stdin.readline())["genes"]["layers"])
print("finch loss=nan") if epochs > 4 else [print(f"finch {{\\"loss\\": {1 / e}, \\"epoch\\": {e}}}") for e in range(1, epochs + 1)]
""")
    folder.write("run.yaml", config(program, budget=8))
    folder.run(2, "evolve", "run.yaml")
    words = outcome_words(folder.path / "runs/run")
    for row in individuals(folder.path / "runs/run").values():
        expected = ("diverged", 1) if row["layers"] > 4 else ("evaluated", row["layers"])
        check((words[row["outcome"]], row["epochs"]) == expected, f"{row}")
        check(row["layers"] > 4 or row["loss"] == 1 / row["layers"], "the last line counts")
    with h5py.File(folder.path / "runs/run/population.h5", "r") as file:
        check(len(file["curves"]) == sum(row["epochs"] for row in individuals(folder.path / "runs/run").values()), "curves")
passed("each report is an epoch, the last one counts, and one that is no number diverges")

with Folder() as folder:
    program = script(folder, """
given = json.loads(sys.stdin.readline())
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
import socket
if rank == 0:
    server = socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    peer = server.accept()[0]
    assert peer.recv(100) == given["id"].encode()
else:
    for _ in range(3000):
        try:
            peer = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
            break
        except OSError:
            time.sleep(0.01)
    peer.send(given["id"].encode())
    print("finch loss=-5")
    if given["genes"]["layers"] > 6:
        print("the second rank fails", file=sys.stderr)
        sys.exit(9)
if rank == 0:
    print(f"finch loss={given['genes']['layers']} epoch=1")
    time.sleep(0.1 if given["genes"]["layers"] <= 6 else 1000)
print(f"rank {rank} of {ranks}, {os.environ['LOCAL_RANK']} of {os.environ['LOCAL_WORLD_SIZE']}")
""")
    folder.write("run.yaml", config(program, "keep: all\n    grace_seconds: 0.5", budget=8, workers="{ranks: 2, islands: 1}"))
    folder.run(4, "evolve", "run.yaml")
    run = folder.path / "runs/run"
    words = outcome_words(run)
    for row in individuals(run).values():
        expected = ("failed", "NaN") if row["layers"] > 6 else ("evaluated", row["layers"])
        check(words[row["outcome"]] == expected[0], f"layers {row['layers']}: {words[row['outcome']]}, {problems(run)}")
        check(row["layers"] > 6 or row["loss"] == row["layers"], "a rank other than 0 was listened to")
    failed = sum(row["layers"] > 6 for row in individuals(run).values())
    check([text.startswith("rank 1: exit code 9: the second rank fails") for text in problems(run)] == [True] * failed, f"{problems(run)}")
    check(any("rank 1 of 2, 1 of 2" in path.read_text() for path in run.glob("evaluations/*/*.output-1")), "the second rank's output")
passed("a worker of two ranks is a torchrun: both start it and meet, rank 0 is listened to, a failure on either fails it")

SAVES = """
given = json.loads(sys.stdin.readline())
saved = os.environ["FINCH_CHECKPOINT_DIR"] + "/epoch-" + os.environ["RANK"]
first = int(open(saved).read()) + 1 if os.path.exists(saved) else 1
assert (first > 1) <= ("FINCH_RESUME" in os.environ) == given["resume"]
asked = []
signal.signal(signal.SIGUSR2, lambda *_: asked.append(1))
print(f"begins at {first}", file=open(os.environ["FINCH_RUN"] + "/../begun", "a"))
for epoch in range(first, 41):
    time.sleep(0.05)
    open(saved + ".new", "w").write(str(epoch)), os.replace(saved + ".new", saved)
    print(f"finch loss={1 / epoch} epoch={epoch}", flush=True)
    if asked:
        sys.exit(0)
"""
with Folder() as folder:
    marker = f"FINCH_TEST_LEFT={os.getpid()}.2"
    os.environ["LEFT_BEHIND"] = marker
    folder.write("run.yaml", config(script(folder, SAVES), "grace_seconds: 20\n    epochs: 40", budget=4))
    process = folder.start(2, "evolve", "run.yaml")
    begun = folder.path / "runs/begun"
    wait_for(lambda: len(list(folder.path.glob("runs/run/evaluations/*/*/checkpoints/epoch-0"))) >= 2, "the first epochs")
    for pid in ranks_of(process):
        os.kill(pid, signal.SIGUSR2)
    check(end(process) == 75, f"USR2 ended with {process.returncode}\n{folder.output()}")
    check(not left_behind(marker), "a program outlives a stop")
    check(outcomes(folder.path / "runs/run").count("unfinished") == 2, f"{outcomes(folder.path / 'runs/run')}")
    output = folder.run(2, "evolve", "run.yaml")
    rows = individuals(folder.path / "runs/run")
    check(outcomes(folder.path / "runs/run") == ["evaluated"] * 4 and all(row["epochs"] == 40 for row in rows.values()), f"{outcomes(folder.path / 'runs/run')}")
    with h5py.File(folder.path / "runs/run/population.h5", "r") as file:
        check(len(file["curves"]) == 160, f"{len(file['curves'])} of 160 epochs in the curves")
    starts = [int(line.split()[-1]) for line in begun.read_text().splitlines()]
    check(len(starts) == 6 and sum(first > 1 for first in starts) == 2, f"programs began at {starts}")
passed("USR2 is handed on, programs save, and the next start has them go on with the budget exact")
end_of_short_form()

for victim in (0, 1):
    with Folder() as folder:
        marker = f"FINCH_TEST_LEFT={os.getpid()}.3.{victim}"
        os.environ["LEFT_BEHIND"] = marker
        folder.write("run.yaml", config(script(folder, SAVES), budget=4))
        process = folder.start(2, "evolve", "run.yaml")
        wait_for(lambda: len(list(folder.path.glob("runs/run/evaluations/*/*/checkpoints/epoch-0"))) >= 2, "the first epochs")
        os.kill(ranks_of(process)[victim], signal.SIGKILL)
        end(process)
        wait_for(lambda: not left_behind(marker), "the end of all programs")
        folder.run(2, "evolve", "run.yaml")
        check(outcomes(folder.path / "runs/run") == ["evaluated"] * 4, f"{outcomes(folder.path / 'runs/run')} {problems(folder.path / 'runs/run')}")
passed("SIGKILL of a rank ends its programs too, and the next start completes the budget")

with Folder() as folder:
    program = script(folder, f"""
sys.path.insert(0, {str(CLIENT)!r})
import finch_objective as finch
for individual in finch.individuals():
    if individual.genes["layers"] == 9:
        sys.exit(5)
    finch.report(loss=individual.genes["lr"] + individual.genes["layers"])
    print(os.getpid(), file=open("pids", "a"))
""")
    folder.write("run.yaml", config(program, "persistent: true", budget=300, search="duplicates: train"))
    folder.run(2, "evolve", "run.yaml")
    run = folder.path / "runs/run"
    rows = individuals(run).values()
    words = outcome_words(run)
    check(len(rows) == 300, f"{len(rows)} of 300")
    for row in rows:
        good = row["layers"] < 9
        check(words[row["outcome"]] == ("evaluated" if good else "failed") and (not good or row["loss"] == row["lr"] + row["layers"]), f"{row}")
    failed = sum(row["layers"] == 9 for row in rows)
    pids = set((run / "evaluations/pids").read_text().split())
    check(len(pids) <= 2 + failed, f"{len(pids)} processes for 300 individuals of which {failed} ended theirs")
passed("a persistent program evaluates one individual after the other, and is started again where it ended")

for interactive in (False, True):
    with Folder() as folder:
        ask = "finch.should_stop()" if interactive else "False"
        program = script(folder, f"""
sys.path.insert(0, {str(CLIENT)!r})
import finch_objective as finch
lr = finch.genes()["lr"]
for epoch in range(1, 28):
    finch.report(loss=lr + 1 / epoch, epoch=epoch)
    time.sleep(0.01)
    if {ask}:
        print("stops by itself", flush=True)
        sys.exit(0)
""")
        folder.write("run.yaml", config(program, f"interactive: {str(interactive).lower()}\n    epochs: 27\n    keep: all", budget=30, search="pruning: halving"))
        folder.run(2, "evolve", "run.yaml")
        run = folder.path / "runs/run"
        words = outcome_words(run)
        rows = individuals(run).values()
        pruned = [row for row in rows if words[row["outcome"]] == "pruned"]
        check({words[row["outcome"]] for row in rows} == {"pruned", "evaluated"}, f"{outcomes(run)}")
        check(all(row["epochs"] < 27 for row in pruned) and all(row["epochs"] == 27 for row in rows if words[row["outcome"]] == "evaluated"), "epochs")
        stopped = sum("stops by itself" in path.read_text() for path in run.glob("evaluations/*/*.output"))
        check(stopped == (len(pruned) if interactive else 0), f"{stopped} stopped by themselves, {len(pruned)} were pruned")
passed("programs are pruned at the epochs that they report, and may ask")

with Folder() as folder:
    program = script(folder, f"""
sys.path.insert(0, {str(CLIENT)!r})
import finch_objective as finch
layers, rank = finch.genes()["layers"], int(os.environ["RANK"])
for epoch in range(1, 6):
    finch.report(loss=1 / epoch)
    time.sleep(0.1 * rank)
    if finch.should_stop():
        sys.exit(0)
""")
    folder.write("run.yaml", config(program, "interactive: true\n    epochs: 5", budget=3, workers="{ranks: 2, islands: 1}"))
    folder.run(2, "evolve", "run.yaml")
    check(outcomes(folder.path / "runs/run") == ["evaluated"] * 3, f"{problems(folder.path / 'runs/run')}")
    folder.run(1, "evolve", "run.yaml", "--run", "closed", "--set", "search.objective.interactive=false", "--set", "workers.ranks=1")
    check([row["epochs"] for row in individuals(folder.path / "closed").values()] == [5] * 3, "a program that got no answer stopped")
passed("ranks that ask at other times get the same answers, and none means to go on")

with Folder() as folder:
    folder.write("program.py", "import json, os, signal, sys, time\n" + SAVES)
    folder.write("wrapper.sh", f"#!/bin/sh\n{sys.executable} {folder.path}/program.py\necho behind it\n")
    (folder.path / "wrapper.sh").chmod(0o755)
    folder.write("run.yaml", config("./wrapper.sh", "grace_seconds: 30\n    epochs: 40", budget=4, workers="{ranks: 2, islands: 1}"))
    process = folder.start(4, "evolve", "run.yaml")
    wait_for(lambda: len(list(folder.path.glob("runs/run/evaluations/*/*/checkpoints/epoch-[01]"))) >= 4, "the first epochs")
    by_rank = {next(entry.split(b"=")[1] for entry in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if entry.startswith(b"OMPI_COMM_WORLD_RANK=")): pid
               for pid in ranks_of(process)}
    os.kill(by_rank[b"3"], signal.SIGUSR2)
    check(end(process) == 75, f"USR2 to the follower of worker 1 ended with {process.returncode}\n{folder.output()}")
    begun = (folder.path / "runs/begun").read_text().splitlines()
    folder.run(4, "evolve", "run.yaml")
    check(outcomes(folder.path / "runs/run") == ["evaluated"] * 4, f"{outcomes(folder.path / 'runs/run')}")
    again = [int(line.split()[-1]) for line in (folder.path / "runs/begun").read_text().splitlines()[len(begun):]]
    check(sum(first > 1 for first in again) == 4, f"after a stop the ranks of two programs behind a wrapper began at {again}")
passed("USR2 to a follower of any worker stops the run, and programs behind a wrapper script save")

with Folder() as folder:
    for run, how, said in (("a", 'chmod -x "$0"', "Permission denied, 3 times in a row"), ("b", 'mv "$0" "$0.away"', "file or directory, 3 times in a row")):
        program = folder.write("program.sh", f"#!/bin/sh\necho finch loss=1\n[ -e {folder.path}/{run} ] || {{ touch {folder.path}/{run}; {how}; }}\n")
        program.chmod(0o755)
        folder.write("run.yaml", config("./program.sh", budget=9, search="duplicates: train"))
        output = folder.run(1, "evolve", "run.yaml", "--run", f"runs/{run}", expect=75)
        check(said in output, output)
        folder.write("program.sh", "#!/bin/sh\necho finch loss=1\n").chmod(0o755)
        folder.run(1, "evolve", "run.yaml", "--run", f"runs/{run}")
        check(outcomes(folder.path / "runs" / run) == ["evaluated"] * 7 + ["failed"] * 2, f"{outcomes(folder.path / 'runs' / run)}")
passed("a program that can no longer be started stops the run, to be resumed, before it eats the budget")

with Folder() as folder:
    program = script(folder, """
given = json.loads(sys.stdin.readline())
print("finch loss=1\\nfinch is loading\\nfinch done", flush=True)
print("\\033[31m" + "a" * 5000, file=sys.stderr)
sys.stderr.buffer.write(b"\\xff\\xfe last")
here = os.getcwd()
if given["genes"]["layers"] > 4:
    os.system(f"rm -rf {here}; touch {here}")
    sys.exit(6 if given["genes"]["layers"] > 7 else 0)
""")
    folder.write("run.yaml", config(program, budget=12))
    folder.run(2, "evolve", "run.yaml")
    words = outcome_words(folder.path / "runs/run")
    for row in individuals(folder.path / "runs/run").values():
        check(words[row["outcome"]] == ("failed" if row["layers"] > 7 else "evaluated"), f"{row}")
    check(all(len(text) < 2000 and "\033" not in text and text.endswith("?? last") for text in problems(folder.path / "runs/run")), f"{problems(folder.path / 'runs/run')}")
    folder.run(2, "evolve", "run.yaml", "--run", "persistent", "--set", "search.objective.persistent=true", "--set", "search.space.layers={int: [1, 4]}")
    check(outcomes(folder.path / "persistent") == ["evaluated"] * 12, f"{problems(folder.path / 'persistent')}")
passed("a program that removes its folder, writes bytes that are no text, or ends after each individual harms nobody")
