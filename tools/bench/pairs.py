#!/usr/bin/env python3
"""Whether a change made training steps slower: two builds of bench_step, one after the other, again and again.

    tools/bench/pairs.py OLD/bench_step NEW/bench_step [--pairs 30] [--case "6 8 400"] ...

A case is "LAYERS BATCH STEPS" (tools/bench/step.cpp). Prints for each the median of old ÷ new seconds of processor time a
step (above 1: the new one is faster), its 95 % interval by resampling the pairs, and the least and the most. One thread each.
"""
import argparse
import os
import random
import statistics
import subprocess
import time

CASES = ["2 8 400", "6 8 200", "6 64 40", "6 256 10"]


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, OMP_NUM_THREADS="1"))

    def seconds(self, case):
        clock = ~self.process.pid << 3 | 2  # clock_getcpuclockid(3)
        begin = time.clock_gettime(clock)
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()
        return (time.clock_gettime(clock) - begin) / int(case.split()[2])


def interval(ratios, rounds=4000):
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[rounds // 40], medians[-rounds // 40]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--case", action="append")
    arguments = parser.parse_args()
    old, new = Program(arguments.old), Program(arguments.new)
    for case in arguments.case or CASES:
        old.seconds(case), new.seconds(case)  # warm
        ratios, spent = [], []
        for pair in range(arguments.pairs):
            first, second = (old, new) if pair % 2 == 0 else (new, old)
            times = {first: first.seconds(case), second: second.seconds(case)}
            ratios.append(times[old] / times[new])
            spent.append(times[new])
        low, high = interval(ratios)
        print(f"{case:>12}: old/new {statistics.median(ratios):.3f} [{low:.3f} ... {high:.3f}], "
              f"all {min(ratios):.3f} ... {max(ratios):.3f}, "
              f"{1e6 * statistics.median(spent):.0f} us a step", flush=True)


if __name__ == "__main__":
    main()
