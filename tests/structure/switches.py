#!/usr/bin/env python3
"""switches.py SOURCE_FOLDER: finds every `default:` in a switch over an enum of Finch, in include, src and tests, including CUDA sources.

A new enumerator would silently use the default. Without one, the compiler (-Wswitch-enum) reports each switch that lacks a case.

    switches.py SOURCE_FOLDER      prints the switches that it finds; exit code 1 if there are any
    switches.py --self-test        writes switches to a temporary folder and checks which are found
"""

import pathlib
import re
import sys
import tempfile

from includes import SUFFIXES, without_comments

ENUM = re.compile(r"\benum\s+(class\s+|struct\s+)?(\w*)[^;{()]*\{([^}]*)\}")
CASE = re.compile(r"\bcase\s+((?:\w+\s*::\s*)*)(\w+)\s*:(?!:)")


def enums_of(texts):
    """Returns the names of all enums, and the enumerators of unscoped enums."""
    names, enumerators = set(), set()
    for text in texts:
        for scoped, name, body in ENUM.findall(text):
            names.add(name)
            enumerators.update([] if scoped else re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", body.strip()))
    return names - {""}, enumerators


def body_at(text, start):
    """Returns the text in the braces that open at `start`, with and without inner switches."""
    depth, place = 0, start
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            break
    body = text[start + 1:place]
    inner = re.search(r"\bswitch\s*\([^{;]*\)\s*\{", body)
    while inner:
        whole, _ = body_at(body, inner.end() - 1)
        body = body[:inner.start()] + body[inner.end() + len(whole) + 1:]
        inner = re.search(r"\bswitch\s*\([^{;]*\)\s*\{", body)
    return text[start + 1:place], body


def violations(root):
    """Returns all violations under `root`, and the number of files that were read."""
    paths = [path for folder in ("include", "src", "tests") for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES]
    texts = {path: without_comments(path.read_text(encoding="utf-8")) for path in paths}
    names, enumerators = enums_of(texts.values())
    found = []
    for path, text in texts.items():
        for switch in re.finditer(r"\bswitch\s*\([^{;]*\)\s*\{", text):
            _, body = body_at(text, switch.end() - 1)
            is_own = any(scope.replace(" ", "").split("::")[-2] in names if scope else word in enumerators for scope, word in CASE.findall(body))
            if is_own and re.search(r"\bdefault\s*:", body):
                number = text[:switch.start()].count("\n") + 1
                found.append(f"{path}:{number}: a switch over an enum of Finch's own has a default; write out its other cases")
    return found, len(paths)


PLANTED = [
    # (lines, whether they are a violation)
    ("switch (kind) { case Kind::one: return 1; default: return 2; }", True),
    ("switch (kind) { case backend::Kind::one: return 1; default: return 2; }", True),
    ("switch (kind) { case Kind::one: return 1; case Kind::two: return 2; }", False),
    ("switch (old) { case first: return 1; default: return 2; }", True),
    ("switch (number) { case 1: return 1; default: return 2; }", False),
    ("switch (type) { case H5T_FLOAT: return 1; default: return 2; }", False),
    ("switch (type) { case dnnl::kind::one: return 1; default: return 2; }", False),
    ("switch (kind) { case Kind::one: return 1; /* default: */ case Kind::two: return 2; }", False),
    ("switch (kind) { case Kind::one: switch (n) { case 1: return 1; default: return 2; } case Kind::two: return 2; }", False),
    ("switch (n) { case 1: switch (kind) { case Kind::one: return 1; default: return 2; } case 2: return 2; }", True),
    ("switch (of(kind)) { case Kind::one: { return 1; } default: { return 2; } }", True),
]


def self_test():
    wrong = 0
    for lines, is_violation in PLANTED:
        for name in ("a.cpp", "a.cu"):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "src" / name
                path.parent.mkdir()
                path.write_text("enum class Kind : int { one, two };\nenum Old { first = 0, second };\n" + lines + "\n", encoding="utf-8")
                found, _ = violations(pathlib.Path(folder))
                if bool(found) != is_violation:
                    wrong += 1
                    print(f"{lines!r}: {'not found' if is_violation else found}")
    print(f"{len(PLANTED)} planted switches, {wrong} judged wrongly")
    return 1 if wrong else 0


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    if sys.argv[1] == "--self-test":
        return self_test()
    found, files = violations(pathlib.Path(sys.argv[1]))
    print("\n".join(found + [f"{files} files, {len(found)} violations"]))
    # A wrong folder must fail: it contains too few files.
    return 1 if found or files < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
