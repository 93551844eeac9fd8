#!/usr/bin/env python3
"""Counts the calls of a search on the files of its run directory, with strace (apt-get install strace).

    tools/bench/file_calls.py [FINCH] [CONFIG] [--ranks 8] [--evaluations 40] [--set KEY=VALUE ...] [--show KIND]

Runs `finch evolve CONFIG` with one rank per worker on RANKS ranks. Prints a table: a row is a kind of file, a column a
kind of call. "absent" are the calls that fail because the name does not exist (ENOENT); the other columns include them.
The sum has no closes and reads: each file that is opened is closed, and reads come from the page cache. --show KIND
prints each call on the files of this kind (journal, archive …; all).
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_hwloc_base_binding_policy="none",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none", PMIX_MCA_gds="hash")
COLUMNS = {
    "stat": "stat lstat fstat newfstatat fstatat64 statx access faccessat faccessat2 readlink readlinkat statfs fstatfs",
    "open": "open openat creat",
    "write": "write pwrite64 writev pwritev ftruncate fallocate",
    "sync": "fsync fdatasync",
    "rename": "rename renameat renameat2",
    "link": "link linkat symlink symlinkat",
    "unlink": "unlink unlinkat rmdir",
    "mkdir": "mkdir mkdirat",
    "list": "getdents64",
    "other": "flock utimensat chmod fchmod fchmodat",
    "close": "close",
    "read": "read pread64 readv",
}
COLUMN_OF = {call: column for column, calls in COLUMNS.items() for call in calls.split()}
COUNTED = [column for column in COLUMNS if column not in ("close", "read")]
KINDS = [("journal", r"\.journal"), ("archive", r"population\.h5"), ("snapshot", r"training-.*\.h5"), ("best", r"best\.h5"),
         ("weights", r"(repeat|weights)-.*\.h5"), ("lock", r"^lock"), ("log", r"\.log"), ("text", r"^(summary\.txt|config\.yaml|profile\.json)"),
         ("notes", r"end-notes|^\.probe-")]
LINE = re.compile(r"^(?:\d+ +)?(?:[\d.]+ )?(\w+)\((.*)\)\s+= (-?\d+|\?)(.*)$")


def kind_of(path, run):
    """Returns the kind of file, or nothing for a path outside of the run directory."""
    path = os.path.normpath(path)
    if path != run and not path.startswith(run + "/"):
        return None
    if path.startswith(run + "/evaluations"):
        return "program"
    name = os.path.basename(path)
    return next((kind for kind, pattern in KINDS if re.search(pattern, name)), "folder")


def path_of(words):
    """Returns the last path in the arguments of a call: a quoted name, relative to its folder, or a descriptor's."""
    names = re.findall(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)"', words)
    if names:
        folder, name = names[-1]
        return os.path.join(folder, name)
    found = re.match(r"\d+<([^>]*)>", words)
    return found.group(1) if found else ""


def calls_of(folder, run):
    """Yields (column, kind, path, is absent, bytes written, line) of each call on a file of the run."""
    for trace in sorted(folder.iterdir()):
        for line in trace.read_text(errors="replace").splitlines():
            found = LINE.match(line)
            if not found or found.group(1) not in COLUMN_OF:
                continue
            call, words, result, reason = found.groups()
            if call in ("write", "pwrite64", "writev", "read", "pread64", "readv"):
                words = words.split('"')[0]  # the content is no path
            path = path_of(words)
            kind = kind_of(path, run)
            if kind:
                size = int(result) if call in ("write", "pwrite64", "writev") and result.isdigit() else 0
                yield COLUMN_OF[call], kind, os.path.relpath(path, run), " ENOENT" in reason, size, line


def run_traced(options, folder, run):
    """Runs the search with one strace per rank. Returns its seconds."""
    (folder / "traces").mkdir()
    wanted = ",".join("?" + call for call in COLUMN_OF)
    trace = (f"exec strace -ff -y -s 0 --seccomp-bpf -e signal=none -e trace={wanted} "
             f"-o {folder}/traces/$OMPI_COMM_WORLD_RANK \"$0\" \"$@\"")
    settings = ["workers.ranks=1", "workers.threads=1", f"search.budget={{evaluations: {options.evaluations}}}", *options.set]
    command = ["mpirun", "--oversubscribe", "-n", str(options.ranks), "sh", "-c", trace, os.path.abspath(options.finch), "evolve",
               os.path.abspath(options.config), "--run", run, *[word for setting in settings for word in ("--set", setting)]]
    begun = time.time()
    with open(folder / "output", "w") as output:
        code = subprocess.run(command, cwd=SOURCE, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT).returncode
    if code != 0:
        sys.exit(f"finch evolve: exit code {code}\n{(folder / 'output').read_text()}")
    return time.time() - begun


def print_table(counts, absent, sizes, evaluations, seconds):
    print(f"{'':14}" + "".join(f"{column:>8}" for column in [*COLUMNS, "absent", "calls", "bytes"]))

    def line(name, numbers, missing, size, form):
        total = sum(numbers[column] for column in COUNTED)
        print(f"{name:14}" + "".join(form.format(number) for number in [*[numbers[column] for column in COLUMNS], missing, total, size]))

    whole = "{:8}"
    every = collections.Counter()
    for kind in sorted(counts, key=lambda kind: -sum(counts[kind].values())):
        line(kind, counts[kind], sum(absent[kind].values()), sizes[kind], whole)
        every += counts[kind]
    missing = collections.Counter()
    for kind in absent:
        missing += absent[kind]
    line("all", every, sum(missing.values()), sum(sizes.values()), whole)
    for name, divisor in (("an evaluation", evaluations), ("a second", seconds)):
        scaled = collections.Counter({column: number / divisor for column, number in every.items()})
        line(name, scaled, sum(missing.values()) / divisor, sum(sizes.values()) / divisor, "{:8.1f}")
    print("absent: " + ", ".join(f"{number} {column}" for column, number in missing.most_common()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("finch", nargs="?", default="build/finch")
    parser.add_argument("config", nargs="?", default=str(SOURCE / "configs/quickstart.yaml"))
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--show", metavar="KIND")
    options = parser.parse_args()
    if shutil.which("strace") is None:
        sys.exit("strace is not installed: apt-get install strace")
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as place:
        folder = pathlib.Path(place)
        run = str(folder / "run")
        seconds = run_traced(options, folder, run)
        counts, absent = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        sizes = collections.Counter()
        for column, kind, path, is_absent, size, line in calls_of(folder / "traces", run):
            counts[kind][column] += 1
            absent[kind][column] += is_absent
            sizes[kind] += size
            if options.show in (kind, "all"):
                print(f"{path:40} {line}")
    print(f"{options.evaluations} evaluations on {options.ranks} ranks in {seconds:.0f} s")
    print_table(counts, absent, sizes, options.evaluations, seconds)


if __name__ == "__main__":
    main()
