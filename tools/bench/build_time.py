#!/usr/bin/env python3
"""Measures how long builds of Finch take without a compiler cache.

    tools/bench/build_time.py [NAME ...]      (default: all builds; 15 minutes on two cores)

NAME is a build: `program` (without CUDA), `cuda` (for one GPU architecture) or `tests` (as tools/test.sh builds them).
`program` is also rebuilt after a change of one file, for several files. Prints the wall time and processor time of each
build, in seconds, and the name of the processor. The times are meaningful only on an idle machine.
"""
import argparse
import os
import pathlib
import resource
import subprocess
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILDS = {"program": ["-DBUILD_TESTING=OFF", "-DFINCH_CUDA=OFF"],
          "cuda": ["-DBUILD_TESTING=OFF", "-DFINCH_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=90"],
          "tests": ["-DBUILD_TESTING=ON", "-DCMAKE_CUDA_ARCHITECTURES=80-virtual"]}
CHANGES = ("src/search/propagators/swarm.cpp", "include/finch/search/individual.hpp", "src/evaluate/cnn_evaluator.cpp")


def measured(command):
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"CCACHE_DISABLE": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build(folder):
    return measured(["cmake", "--build", folder, "--parallel", str(os.cpu_count())])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BUILDS)}")
    names = parser.parse_args().names or list(BUILDS)
    model = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    print(f"{os.cpu_count()} cores of {model}, load {os.getloadavg()[0]:.1f}\n\nbuild: wall seconds, processor seconds")
    with tempfile.TemporaryDirectory(prefix="finch-bench-") as scratch:
        source = pathlib.Path(scratch) / "source"  # a clone, since touch() must not change the checkout
        subprocess.run(["git", "clone", "--quiet", SOURCE, source], check=True)
        if (SOURCE / ".cache").exists():
            (source / ".cache").symlink_to(SOURCE / ".cache")
        for name in names:
            folder = pathlib.Path(scratch) / name
            subprocess.run(["cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *BUILDS[name]],
                           check=True, stdout=subprocess.DEVNULL)
            print(f"{name}: {'%.0f, %.0f' % build(folder)}", flush=True)
            for change in CHANGES if name == "program" else ():
                (source / change).touch()
                print(f"{name} after a change of {change}: {'%.0f, %.0f' % build(folder)}", flush=True)


if __name__ == "__main__":
    main()
