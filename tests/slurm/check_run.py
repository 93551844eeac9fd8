#!/usr/bin/python3
"""check_run.py ARCHIVE: checks population.h5 of a finished run against its budget and against earlier copies.

check_run.py RUN/population.h5 --evaluations N [--earlier COPY.h5]... [--carried]

Every id must occur once. Exactly N individuals must have an outcome, and none may be unfinished. Every result of an
earlier copy must be present with the same bytes. --carried: at least one individual that was unfinished in an earlier
copy must have a result now, under the same id.
"""
import argparse
import sys

import h5py
import numpy


def read(path):
    """Returns ({id: row} of /individuals, the number of the outcome `unfinished`)."""
    with h5py.File(path, "r") as file:
        table = file["individuals"]
        unfinished = h5py.check_enum_dtype(table.dtype["outcome"])["unfinished"]
        rows = table[:]
    ids = rows["id"].tolist()
    if len(set(map(str, ids))) != len(ids):
        sys.exit(f"{path}: an id stands twice: {sorted(map(str, ids))}")
    return {str(name): row for name, row in zip(ids, rows)}, unfinished


def same(a, b):
    """True if two rows are equal in every column; NaN equals NaN."""
    return all(numpy.array_equal(a[name], b[name], equal_nan=a.dtype[name].kind == "f") for name in a.dtype.names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("archive")
    parser.add_argument("--evaluations", type=int)
    parser.add_argument("--earlier", action="append", default=[])
    parser.add_argument("--carried", action="store_true")
    arguments = parser.parse_args()

    final, unfinished = read(arguments.archive)
    finished = {name: row for name, row in final.items() if row["outcome"] != unfinished}
    problems = []
    if len(finished) != arguments.evaluations:
        problems.append(f"{len(finished)} individuals have an outcome, the budget is {arguments.evaluations}")
    if len(final) != len(finished):
        problems.append(f"{len(final) - len(finished)} individuals are still unfinished")
    carried = 0
    for path in arguments.earlier:
        for name, row in read(path)[0].items():
            if row["outcome"] == unfinished:
                carried += name in finished
            elif name not in final:
                problems.append(f"{name} of {path} is lost")
            elif not same(row, final[name]):
                problems.append(f"{name} of {path} has changed: {row} -> {final[name]}")
    if arguments.carried and not carried:
        problems.append("no individual that was unfinished before was trained to its end later")
    print("\n".join(problems) or f"{len(finished)} results, each once; {carried} went on after a stop")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
