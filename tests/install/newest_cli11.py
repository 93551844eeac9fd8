"""Compiles the command line against the newest CLI11 of Debian, prints the help of every verb, and checks mistaken
command lines (tests/end_to_end/command_lines.py). The other tests use the CLI11 of the system."""
import json
import lzma
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.request

from installed import BUILD, SKIPPED, SOURCE, check, passed, run, verbs_by_help

DEBIAN = "http://deb.debian.org/debian/"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def fetch(folder):
    """Unpacks the newest package, and returns its version and the folder of its headers."""
    try:
        with urllib.request.urlopen(f"{DEBIAN}dists/sid/main/binary-amd64/Packages.xz", timeout=60) as index:
            newest = re.search(r"^Filename: (\S*/libcli11-dev_\S*)$", lzma.decompress(index.read()).decode(), re.MULTILINE)[1]
        with urllib.request.urlopen(DEBIAN + newest, timeout=60) as package:
            (folder / "cli11.deb").write_bytes(package.read())
    except (OSError, lzma.LZMAError, TypeError) as problem:
        skip(f"the newest CLI11 cannot be fetched ({problem})")
    run("dpkg-deb", "--extract", folder / "cli11.deb", folder / "package")
    return newest.split("_")[1], folder / "package/usr/include"


if not shutil.which("dpkg-deb"):
    skip("there is no dpkg-deb")
with tempfile.TemporaryDirectory(prefix="finch-cli11-") as name:
    folder = pathlib.Path(name)
    version, headers = fetch(folder)
    sources = [entry for entry in json.loads((BUILD / "compile_commands.json").read_text()) if "/src/app/" in entry["file"]]
    objects = {}
    for entry in sources:
        words = shlex.split(entry["command"])
        output = words.index("-o") + 1
        objects[words[output]] = folder / f"{len(objects)}.o"
        words[output] = str(objects[words[output]])
        first = next(place for place, word in enumerate(words) if word.startswith("-I"))
        run(*words[:first], f"-I{headers}", *words[first:], cwd=entry["directory"])
    run("ar", "rcs", folder / "libfinch_app.a", *(path for name, path in objects.items() if "finch_app.dir" in name))
    link = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", "finch"], check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    finch = folder / "finch"
    main = "src/app/CMakeFiles/finch_main.dir/main.cpp.o"
    for old, new in ((main, objects[main]), ("src/app/libfinch_app.a", folder / "libfinch_app.a"), (" -o finch ", f" -o {finch} ")):
        check(old in link, f"{old} is not in {link}")
        link = link.replace(old, str(new))
    run("sh", "-c", link, cwd=BUILD)
    shutil.copy(BUILD / "finch-launcher", folder)
    passed(f"finch compiles with CLI11 {version}")

    passed(f"the help of {len(verbs_by_help(finch))} levels of the command line")
    run(sys.executable, SOURCE / "tests/end_to_end/command_lines.py", finch)
    passed("mistaken command lines have the same messages")
