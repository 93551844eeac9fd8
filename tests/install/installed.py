"""Shared functions of the installation tests: they install the build into a temporary folder."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "tests/end_to_end"))
from harness import SKIPPED, check, environment, passed  # noqa: E402


def skip_without(program, package):
    path = shutil.which(program)
    if not path:
        print(f"skipped: there is no {program} (Debian: {package})")
        sys.exit(SKIPPED)
    return path


def run(*command, expect=0, cwd=None, without=(), **variables):
    """Runs `command` and returns its output. The environment lacks FINCH…, SLURM…, LD_LIBRARY_PATH and the names in
    `without`."""
    given = {name: value for name, value in environment().items()
             if name not in without and not re.match("FINCH|SLURM|LD_LIBRARY_PATH", name)}
    ended = subprocess.run([str(word) for word in command], cwd=cwd, env=dict(given, **variables), text=True, check=False,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(ended.returncode == expect, f"{command}: exit code {ended.returncode}, expected {expect}\n{ended.stdout}")
    return ended.stdout


class Installed:
    """A new folder `path` with an installed Finch in `prefix`. The `with` block removes `path` at its end."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="finch-install-"))
        self.prefix = self.path / "prefix"
        run("cmake", "--install", BUILD, "--prefix", self.prefix)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def move(self, name):
        self.prefix = self.prefix.rename(self.path / name)


def verbs_by_help(program, *verb):
    """Returns {verb: options} of `program` and all its subcommands, from `--help`. A verb is a tuple of words. From
    version 2.4 on, CLI11 refuses an argument that has the name of an option, so such a pair fails the check."""
    text = run(program, *verb, "--help")
    sections = {name.capitalize(): lines for name, lines in re.findall(r"^(\w+):\n((?: .*\n?)*)", text, re.MULTILINE)}
    options = [name for line in re.findall(r"^  (-\S+)", sections.get("Options", ""), re.MULTILINE) for name in line.split(",")]
    for name in re.findall(r"^  (\w+)", sections.get("Positionals", ""), re.MULTILINE):
        check(name.lower() not in [option.lstrip("-").lower() for option in options], f"finch {verb}: {name} and --{name}")
    found = {verb: options}
    for word in re.findall(r"^  (\w+)", sections.get("Subcommands", ""), re.MULTILINE):
        found |= verbs_by_help(program, *verb, word)
    return found
