"""Asks the program finch about a run."""
import json
import os
import pathlib
import shutil
import subprocess

TOOLS = pathlib.Path(__file__).resolve().parents[1]
PLACES = [os.path.normpath(TOOLS / place) for place in ("../build/finch", "../../../bin/finch")]  # of a checkout, of an installation


class NoAnswer(Exception):
    """The program cannot be found, or refuses the run. The message says what was expected."""


def finch():
    """Returns the program in FINCH, in the checkout or installation of this script, or in PATH, in this order."""
    given = os.environ.get("FINCH")
    known = [given] if given else [*PLACES, "finch"]
    found = next(filter(None, map(shutil.which, known)), None)
    if found is None:
        raise NoAnswer(f"there is no program {' or '.join(known)}; set FINCH to the path of the program finch")
    return found


def ask(*arguments, codes=(0,)):
    """Returns the output and the exit code of finch with `arguments`. Raises NoAnswer for a code that is not in `codes`."""
    try:
        ended = subprocess.run([finch(), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise NoAnswer(f"{finch()}: cannot be started ({error.strerror})") from error
    if ended.returncode not in codes:
        raise NoAnswer(ended.stderr.strip() or f"{finch()} {arguments[0]} ended with exit code {ended.returncode}")
    return ended.stdout, ended.returncode


def shown(run, *options):
    """Returns the JSON object of `finch show RUN` with more options."""
    return json.loads(ask("show", run, *options, "--json")[0])
