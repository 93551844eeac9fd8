#!/usr/bin/env python3
"""Compares the times of convolutions between two or more builds or settings of Finch, on one thread of a CPU.

    tools/bench/operations.py [--turns 3] [--cases grid|FILE] VARIANT VARIANT ...      (ninja -C build bench_operations)

A variant is a list of words in one argument: the program, and NAME=VALUE for its environment, for example
"build/bench_operations DNNL_MAX_CPU_ISA=AVX2". A case is a line that tools/bench/operations.cpp reads. The default is a
grid of 4 to 256 channels on 4 × 4 to 112 × 112 pixels. The variants take turns. Printed are, for each case, the least
processor time of forward and backward together in µs, and the time of the first variant divided by this time.
"""
import argparse
import os
import subprocess
import sys


def grid():
    for side in (4, 7, 8, 14, 16, 28, 32, 56, 112):
        for into, out in ((1, 10), (3, 16), (3, 64), (4, 4), (10, 10), (16, 16), (10, 40), (40, 10), (24, 24), (32, 32), (32, 64), (40, 40), (64, 64), (128, 128),
                          (256, 256)):
            pixels = side * side * into * out
            if pixels <= 7e7:
                yield f"conv float32 {max(1, min(64, int(2e7 / pixels)))} {side} {into} {out} 3"
    for side, into, out, kernel, stride in ((28, 10, 10, 1, 1), (28, 10, 10, 5, 1), (14, 10, 10, 5, 1), (28, 10, 10, 2, 1), (28, 10, 10, 4, 1), (28, 10, 20, 3, 2),
                                            (16, 64, 64, 1, 1), (16, 64, 64, 5, 1), (16, 64, 64, 3, 2), (32, 3, 32, 5, 1), (32, 32, 32, 1, 1), (32, 24, 24, 5, 1),
                                            (16, 32, 64, 1, 2), (28, 1, 10, 5, 1), (8, 128, 128, 1, 1), (28, 5, 5, 7, 1)):
        yield f"conv float32 16 {side} {into} {out} {kernel} {stride}"


class Program:
    def __init__(self, variant):
        words = variant.split()
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        self.process = subprocess.Popen([word for word in words if "=" not in word], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": "1", **settings})

    def measure(self, case):
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        forward, backward, implementation = self.process.stdout.readline().split(maxsplit=2)
        return float(forward) + float(backward), implementation.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--cases", default="grid")
    parser.add_argument("variants", nargs="+")
    options = parser.parse_args()
    cases = list(grid()) if options.cases == "grid" else open(options.cases).read().splitlines()
    programs = [Program(variant) for variant in options.variants]
    for case in cases:
        times = [min((program.measure(case) for _ in range(options.turns)), key=lambda measured: measured[0]) for program in programs]
        print(f"{case}: " + "; ".join(f"{time:.0f} µs, {times[0][0] / time:.2f} ({implementation})" for time, implementation in times))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
