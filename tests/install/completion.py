"""Checks the completion of finch in a real bash: the words that Tab offers after a partial command line."""
import subprocess

from installed import Installed, check, passed, skip_without, verbs_by_help

bash = skip_without("bash", "bash")


def offered(script, folder, *words):
    """Returns the words that bash completion offers for the last of `words`, which may be empty."""
    ended = subprocess.run(
        [bash, "--norc", "-c", 'set -u; . "$1"; shift; complete -p finch >/dev/null || exit; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
         'COMPREPLY=(); _finch; for one in "${COMPREPLY[@]}"; do printf "%s\\n" "$one"; done', "bash", script, "finch", *words],
        cwd=folder, capture_output=True, text=True, check=False, restore_signals=False)  # SIGPIPE stays ignored, as in some terminals
    check(ended.returncode == 0 and not ended.stderr, f"{words}: {ended.stderr}")
    return sorted(ended.stdout.splitlines())


with Installed() as installed:
    script = installed.prefix / "share/bash-completion/completions/finch"
    here = installed.path / "here"
    for name in ("runs/one", "runs/two words", "old/three", "data"):
        (here / name).mkdir(parents=True)
    for name in ("runs/one/population.h5", "runs/two words/population.h5", "old/three/population.h5", "mine.yaml", "mine.txt"):
        (here / name).touch()

    known = verbs_by_help(installed.prefix / "bin/finch")
    for verb, options in known.items():
        after = sorted(other[len(verb)] for other in known if len(other) == len(verb) + 1 and other[:len(verb)] == verb)
        if after:
            check(offered(script, here, *verb, "") == after, f"after {verb}: {offered(script, here, *verb, '')}, not {after}")
        if not after or not verb:
            check(offered(script, here, *verb, "-") == sorted(options), f"options of {verb}: {offered(script, here, *verb, '-')}, not {sorted(options)}")
    passed(f"the verbs and options of {len(known)} levels of the command line")

    for words, expected in [
        (["ev"], ["evolve"]),
        (["evolve", "m"], ["mine.yaml"]),
        (["evolve", "mine.yaml", "--ru"], ["--run"]),
        (["evolve", "mine.yaml", "--run", "o"], ["old"]),
        (["evolve", "--set", "search.budget.evaluations", "=", "3", "mi"], ["mine.yaml"]),
        (["evolve", "--run", "=", "runs/t"], ["runs/two words"]),
        (["evolve", "--run", "="], ["data", "old", "runs"]),
        (["evolve", "--fresh", "m"], ["mine.yaml"]),
        (["show", ""], ["runs/one", "runs/two words"]),
        (["show", "o"], ["old"]),
        (["show", "d"], []),
        (["show", "old/"], ["old/three"]),
        (["evolve", "--reuse", "runs/"], ["runs/one", "runs/two words"]),
        (["show", "runs/one", ""], []),
        (["show", "--top", ""], []),
        (["export", "runs/one", "--format", "j"], ["json"]),
        (["export", "runs/one", "-o", "mine.t"], ["mine.txt"]),
        (["test", "runs/one", "--data", "da"], ["data"]),
        (["data", "ge"], ["generate"]),
        (["data", "generate", "d"], ["data"]),
        (["evolve", "evolve", "--re"], ["--reuse"]),
    ]:
        check(offered(script, here, *words) == expected, f"finch {words}: {offered(script, here, *words)}, not {expected}")
    passed("files, run directories, words and nothing, each where it is due")
