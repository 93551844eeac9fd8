#!/usr/bin/env python3
"""What it costs to compile a module's sources together (FINCH_UNITY) and each alone.

    tools/bench/build_time.py [TARGET] ...

Compiles the sources of each target (finch_report, finch_island, test_island) both ways, without a cache, and prints the seconds of processor time and their ratio.
"""
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compile_all(build, target):
    commands = [command for command in json.loads((build / "compile_commands.json").read_text()) if f"/{target}.dir/" in command["command"]]
    before = processor_seconds()
    for command in commands:
        subprocess.run(re.sub(r" -o \S+ -c ", " -o /dev/null -c ", command["command"]), shell=True, cwd=command["directory"], check=True)
    return processor_seconds() - before, len(commands)


def main():
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as folder:
        builds = {}
        for unity in ("OFF", "ON"):
            builds[unity] = pathlib.Path(folder) / unity
            subprocess.run(["cmake", "-S", SOURCE, "-B", builds[unity], "-G", "Ninja", "-DFINCH_CUDA=OFF", f"-DFINCH_UNITY={unity}"], check=True, stdout=subprocess.DEVNULL)
        for target in sys.argv[1:] or ["finch_report", "finch_island", "test_island"]:
            alone, sources = compile_all(builds["OFF"], target)
            together, units = compile_all(builds["ON"], target)
            print(f"{target}: {sources} compilations {alone:.1f} s, {units} together {together:.1f} s: {alone / together:.2f} times", flush=True)


main()
