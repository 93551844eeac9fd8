#!/usr/bin/env python3
"""budget.py SOURCE_FOLDER [--lower]: holds the size of the source tree to the numbers in tests/structure/budget.txt.

    module NAME LINES FILES     lines and files of include/finch/NAME and src/NAME
    tests LINES                 lines of *.cpp, *.hpp, *.py and *.sh in tests
    docs LINES                  lines of docs/*.md
    feature FILES WORDS         source files that mention a feature; WORDS is a regular expression

A larger number needs a comment in the table that says what it buys.

    budget.py SOURCE_FOLDER            prints what exceeds its number; exit code 1 if anything does
    budget.py SOURCE_FOLDER --lower    lowers each number to the present size
    budget.py --self-test              checks that each kind of growth is found
"""

import pathlib
import re
import sys
import tempfile

TABLE = "tests/structure/budget.txt"
SOURCES = {".hpp", ".cpp", ".h", ".cu", ".cuh"}
TESTS = {".cpp", ".hpp", ".py", ".sh"}


def files_of(folder, suffixes):
    return [path for path in folder.rglob("*") if path.suffix in suffixes and "__pycache__" not in path.parts]


def lines_of(paths):
    return sum(path.read_bytes().count(b"\n") for path in paths)


def sizes(root, words):
    """Returns the present sizes of the entry `words` of the table, in the order of its numbers."""
    if words[0] == "module":
        found = files_of(root / "include/finch" / words[1], SOURCES) + files_of(root / "src" / words[1], SOURCES)
        return [lines_of(found), len(found)]
    if words[0] == "tests":
        return [lines_of(files_of(root / "tests", TESTS))]
    if words[0] == "docs":
        return [lines_of((root / "docs").glob("*.md"))]
    pattern = re.compile(words[2], re.IGNORECASE)
    found = files_of(root / "include", SOURCES) + files_of(root / "src", SOURCES)
    return [sum(bool(pattern.search(path.read_text(encoding="utf-8"))) for path in found)]


def check(root):
    """Returns what exceeds its number, and the table with each number lowered to the present size."""
    problems, lowered, modules = [], [], set()
    for line in (root / TABLE).read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words or words[0] == "#":
            lowered.append(line)
            continue
        first = 2 if words[0] == "module" else 1
        modules.update(words[1:first])
        for place, size in enumerate(sizes(root, words), first):
            if size > int(words[place]):
                problems.append(f"{TABLE}: {line}: now {size} instead of {words[place]}")
            words[place] = str(min(size, int(words[place])))
        lowered.append(" ".join(words))
    present = {path.name for folder in ("src", "include/finch") for path in (root / folder).iterdir() if path.is_dir()}
    problems += [f"{TABLE}: module {name} has no line" for name in sorted(present - modules)]
    return problems, "\n".join(lowered) + "\n"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for place in ("src/a", "include/finch/a", "docs", "tests/structure"):
            (root / place).mkdir(parents=True)
        table = "module a 1 1\ntests 1\ndocs 1\nfeature 1 energy|joule\n"
        planted = [("src/a/a.cpp", "int x;\n", 0), ("src/a/a.cpp", "int x;\nint y;\n", 1), ("src/a/b.cpp", "int y;\n", 2), ("src/b/b.cpp", "", 1),
                   ("tests/t.py", "1\n2\n", 1), ("docs/d.md", "1\n2\n", 1), ("src/a/b.cpp", "// Joules of energy", 2)]
        wrong = 0
        for name, text, count in planted:
            (root / TABLE).write_text(table, encoding="utf-8")
            (root / "src/a/a.cpp").write_text("int energy;\n", encoding="utf-8")
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
            found = check(root)[0]
            wrong += len(found) != count
            (root / name).unlink()
            if name.startswith("src/b"):
                (root / "src/b").rmdir()
        (root / "src/a/a.cpp").write_text("", encoding="utf-8")
        wrong += check(root)[1] != table.replace("a 1 1", "a 0 1").replace("tests 1", "tests 0").replace("docs 1", "docs 0").replace("feature 1", "feature 0")
    print(f"{len(planted) + 1} trees, {wrong} judged wrongly")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1])
    problems, lowered = check(root)
    if sys.argv[2:] == ["--lower"]:
        (root / TABLE).write_text(lowered, encoding="utf-8")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
