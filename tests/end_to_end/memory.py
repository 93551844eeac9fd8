"""Checks networks that exceed the memory: Finch itself records them as out_of_memory, and the search is completed."""
import os
import pathlib
import subprocess

from harness import FINCH, Folder, check, environment, individuals, outcome_words, passed

LARGE = 400000  # units: 1.3 GB of weights, several times as much memory in training
LIMIT = 700 << 20
CONFIG = f"""
name: big
seed: 3
data: {{kind: generated, samples: 600, size: 28, validation_samples: 203}}
model:
  - flatten
  - linear: {{units: $units, activation: relu}}
  - linear: {{units: classes}}
training: {{epochs: 1, batch_size: 16, optimizer: adadelta, learning_rate: 0.1}}
search:
  space: {{units: {{choice: [8, 16, 32, {LARGE}]}}}}
  objective: validation_loss
  propagator: {{genetic: {{population: 4, random: 0.5}}}}
  budget: {{evaluations: 16}}
workers: {{ranks: 2, islands: 1, threads: 1}}
"""


def evolve(folder, name, settings=(), variables=(), before=None, launcher=()):
    command = [*launcher, "mpirun", "-n", "2", FINCH, "evolve", "big.yaml", "--run", name, *settings]
    done = subprocess.run(command, cwd=folder.path, env=dict(environment(), **dict(variables)), text=True, timeout=200,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=before)
    check(done.returncode == 0, f"{name}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def check_outcomes(folder, name, expected):
    words = outcome_words(folder.path / name)
    rows = individuals(folder.path / name)
    check(len(rows) == expected, f"{name}: {len(rows)} individuals, expected {expected}")
    found = {size: {words[row["outcome"]] for row in rows.values() if is_large(row) == size} for size in (False, True)}
    check(found[True] == {"out_of_memory"}, f"{name}: the large networks ended as {found[True]}")
    check(found[False] == {"evaluated"}, f"{name}: the others ended as {found[False]}")


def is_large(row):
    return int(row["units"]) == 3  # the index of the fourth choice


def make_group():
    """Makes a control group (version 1 or 2) with the memory limit. Returns None if that is not permitted here."""
    name = f"finch-test-{os.getpid()}"
    for group, limit in ((pathlib.Path("/sys/fs/cgroup/memory") / name, "memory.limit_in_bytes"),
                         (pathlib.Path("/sys/fs/cgroup") / name, "memory.max")):
        try:
            group.mkdir()
            try:
                (group / limit).write_text(str(LIMIT))
                return group
            except OSError:
                group.rmdir()
        except OSError:
            continue
    return None


with Folder() as folder:
    folder.write("big.yaml", CONFIG)
    evolve(folder, "told", variables={"FINCH_TEST_MEMORY_LIMIT": str(LIMIT)})
    check_outcomes(folder, "told", 16)

    address_space = ("bash", "-c", 'ulimit -v 4000000 && exec "$@"', "bash")
    evolve(folder, "ulimit", launcher=address_space)
    evolve(folder, "ulimit", ("--set", "search.budget.evaluations=20"), launcher=address_space)
    check_outcomes(folder, "ulimit", 20)

    group = make_group()
    if group:
        try:
            evolve(folder, "group", before=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
        finally:
            group.rmdir()
        check_outcomes(folder, "group", 16)
    passed("out_of_memory and complete: by a limit told, by ulimit -v and a resume, " +
           ("by a real control group" if group else "(not by a control group: this machine does not let us make one)"))
