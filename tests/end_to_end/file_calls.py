"""Counts the calls of a search of networks on its files, with the library of crash_points.

A new run makes no call for a name that it has not written, except once at its start. Each evaluation makes few calls.
tools/bench/file_calls.py prints all calls of a search."""
import collections
import os
import pathlib
import subprocess
import sys

from harness import FINCH, TINY, Folder, check, environment, passed

LIBRARY = os.path.abspath(sys.argv[2])
CONFIG = (TINY.replace("workers: {ranks: 2, islands: 2}", "workers: {ranks: 1, threads: 1}").replace("samples: 600", "samples: 300")
          .replace("validation_samples: 203", "validation_samples: 60")
          .replace("archive_seconds: 0.2, training_seconds: 0.5", "archive_seconds: 1000, training_seconds: %s"))


def calls(snapshot_seconds, evaluations, *settings):
    """Returns {name of a call: number} of a new run. A name ends with "!" if the file does not exist."""
    with Folder() as folder:
        folder.write("run.yaml", CONFIG % snapshot_seconds)
        # With an error mode, the library also counts calls of stat() and close(). At 0, no call fails.
        words = ["env", f"LD_PRELOAD={LIBRARY}", f"CRASH_FOLDER={folder.path}/run", "CRASH_RANK=0", "CRASH_AT=0", "CRASH_MODE=EIO",
                 f"CRASH_COUNT={folder.path}/count", FINCH, "evolve", "run.yaml", "--run", "run", "--set",
                 f"search.budget.evaluations={evaluations}", *[word for setting in settings for word in ("--set", setting)]]
        done = subprocess.run(words, cwd=folder.path, env=environment(), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=900)
        check(done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}")
        return collections.Counter(pathlib.Path(folder.path / "count").read_text().split()[1:])


few, many = calls(1000, 4), calls(1000, 24)
for name in ("unlink!", "remove!", "rename!"):
    check(many[name] == 0, f"{many[name]} calls of {name}")
check(many["stat!"] == few["stat!"], f"calls of stat() for absent names: {few['stat!']} with 4 evaluations, {many['stat!']} with 24")
passed("no call for an absent name belongs to an evaluation")

# An evaluation writes two records. Some are the best so far, which takes 9 calls. A sync is at most once a second.
more = sum((many - few).values()) / 20
check(more <= 6, f"{more} calls for each further evaluation: {many - few}")
passed(f"{more} calls for each further evaluation")

synced, lazy = (calls(1000, 24, f"checkpoint.sync_seconds={seconds}")["fdatasync"] for seconds in (0, 3600))
check(synced >= 24 and lazy == 0, f"{synced} syncs of the journal with sync_seconds: 0, and {lazy} with 3600: the last archive is synced")
passed(f"sync_seconds: {synced} syncs of the journal with 0, {lazy} with 3600")

often = calls(0.01, 8)
check(often["remove"] > 0, f"{often}: no snapshots were removed")
check(often["unlink!"] + often["remove!"] == 0, f"absent names with snapshots: {often}")
passed("a snapshot is removed without calls for absent names")
