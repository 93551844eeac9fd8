"""Checks that every command of the documents works as written. Runs each line of the sh and console blocks in a
scratch folder with the layout of a checkout. A wrapper of finch makes the configurations smaller, and a fake sbatch
runs the job script immediately. NOT_RUN lists the commands that cannot run here, each with the reason. The test also
applies the diff blocks, and checks that the verbs and options in the text exist."""
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time

import numpy as np
from PIL import Image

from harness import FINCH, SKIPPED, SOURCE, Folder, check, environment, passed

TUTORIAL = [SOURCE / "docs" / "tutorial.md", SOURCE / "docs" / "tutorial_cluster.md"]
PAGES = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *TUTORIAL, *sorted(set((SOURCE / "docs").glob("*.md")) - set(TUTORIAL))]
BARE = "installs packages and builds: tests/install/newcomer.sh runs it in a bare Debian"
TESTS = "runs the tests, of which this is one"
MODULES = "needs the command module: tests/install/module.py has one"
INSTALLS = "tests/install/program.py installs into a folder of its own"
NOT_RUN = {
    "git clone https://HOST/finch.git && cd finch": "needs a network and the address of a copy: tests/install/newcomer.sh clones",
    "tools/demo.sh": BARE,
    "tools/install.sh": BARE,
    "tools/install.sh --report": BARE,
    "tools/build.sh": BARE,
    "tools/build.sh release -DBUILD_TESTING=ON && ctest --test-dir build -R REGEX": TESTS,
    "tools/test.sh": TESTS,
    "tools/test.sh --check": TESTS,
    "tools/test.sh --night": TESTS,
    "tools/test.sh --sanitize": TESTS,
    "FINCH_MNIST=data/mnist tools/test.sh": TESTS,
    "tools/fetch_mnist.sh data/mnist": "needs a network",
    "python3 best/example.py digit.png": "needs PyTorch: exported_network.py runs it",
    "/usr/bin/python3 photos-pytorch/example.py data/shapes/test/circle/0001.jpg": "the same",
    "cmake --install build --prefix /apps/finch/0.1.0": INSTALLS,
    "module use /apps/finch/0.1.0/share/finch/modulefiles && module load finch": MODULES,
    "module use /apps/finch/0.1.0/share/finch/modulefiles": MODULES,
    "module load finch": MODULES,
    "apptainer exec finch.sif cat /opt/finch/share/finch/jobs/evolve.sbatch > evolve.sbatch": "needs Apptainer",
    "FINCH=$PWD/finch.sif sbatch evolve.sbatch mine.yaml": "needs the image",
    "tools/install.sh --tests --cuda && tools/build.sh -DBUILD_TESTING=ON && ninja -C build bench_step": BARE,
    "tools/gpu_check.sh build gpu_check": "needs a GPU",
    "sbatch --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 --cpus-per-task=8 --time=10 jobs/evolve.sbatch configs/gallery/cifar10_residual.yaml --set workers.ranks=4":
        "needs CIFAR-10",
    "sbatch [sbatch's options] jobs/evolve.sbatch [CONFIG] [finch's options]": "a pattern; the lines below it are run",
}
# Replacements for placeholders in the documents, and for values that differ in this test (job numbers, ids).
STANDS_FOR = {"CONFIG": "configs/mnist.yaml", "JOBID": "7", "slurm-3": "slurm-7", r"\d+\.\d+\.\d+": "0.0.1"}
# The accepted exit codes of commands that may end with another code than 0.
CODES = {"doctor": (0, 1), "runs/*": (0, 75)}
# The settings that make a configuration smaller. All starts of a run must use the same settings: Finch refuses changes.
SMALLER = {
    "mnist.yaml": ["data.training_samples=240", "data.validation_samples=80", "training.epochs=2", "search.space.conv_layers={int: [2, 3]}",
                   "search.budget.evaluations=4"],
    "images.yaml": ["training.epochs=1", "search.budget.evaluations=3"],
    "sphere.yaml": ["search.budget.evaluations=50"],
    "quickstart.yaml": ["data.samples=400", "data.validation_samples=100", "training.epochs=1", "search.budget.evaluations=6"],
}
# Settings for the configurations that the documents create.
SMALLER["mine.yaml"] = SMALLER["wide.yaml"] = SMALLER["quickstart.yaml"]
SMALLER["digits.yaml"] = ["data.training_samples=240", *SMALLER["quickstart.yaml"][1:]]
SMALLER["photos.yaml"] = ["data.validation_samples=8", *SMALLER["quickstart.yaml"][2:]]

STANDINS = {
    # The wrapper appends its --set options: a later --set overrides an earlier one.
    "finch": """#!/bin/bash
more=()
case "$1 $2" in
    {cases}
esac
if [[ " $* " == *" --measure "* ]]; then more+=(--measure-seconds 1); fi
exec {finch} "$@" "${{more[@]}}"
""",
    "sbatch": """#!/bin/bash
while [[ ${1:-} == -* ]]; do
    option=${1%%=*}
    SBATCH_HELP || { echo "sbatch: no option $option" >&2; exit 1; }
    if [[ $1 == --array=* ]]; then export SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_JOB_ID=7; fi
    shift
done
echo "Submitted batch job 7"
SLURM_JOB_ID=7 SLURM_JOB_END_TIME=$(($(date +%s) + 3600)) SLURM_SUBMIT_DIR=$PWD bash "$@" >slurm-7.out 2>&1 || { cat slurm-7.out; exit 1; }
""",
    "srun": """#!/bin/bash
while [[ ${1:-} == -* ]]; do shift; done
exec mpirun -n 4 "$@"
""",
    "scontrol": """#!/bin/bash
echo "JobState=RUNNING Requeue=0"
""",
    "squeue": "#!/bin/bash\necho RUNNING\n",
    "scancel": "#!/bin/bash\n",
}


def blocks(page):
    """Yields (language, lines) of each code block of a page, in order."""
    fences = re.findall(r"^ *```\w*$", page.read_text(), re.MULTILINE)
    check(len(fences) % 2 == 0 and page.read_text().count("```") == len(fences), f"{page.name}: a block of code that does not begin or end on a line of its own")
    for language, text in re.findall(r"^ *```(\w*)\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE):
        yield language, text.splitlines()


def without_comment(line):
    """Returns the line without its shell comment, which begins with the first # at the start of a word outside
    quotes."""
    quote = ""
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"" and not (letter == "'" and re.match(r"\w's\b", line[at - 1:at + 3])):
            quote = letter
        elif letter == "#" and (at == 0 or line[at - 1].isspace()):
            return line[:at].rstrip()
    return line.rstrip()


def commands_of(language, lines):
    if language == "console":
        taken, goes_on = [], False
        for line in lines:
            if line.startswith("$ ") or goes_on:
                taken.append(line.removeprefix("$ "))
                goes_on = line.endswith("\\")
        lines = taken
    text = "\n".join(without_comment(line) for line in lines)
    return [" ".join(command.split()) for command in text.replace("\\\n", " ").splitlines() if command.strip()]


def executable(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def sbatch_options():
    """Returns a shell test that is true if sbatch has the option $option. The options come from `sbatch --help`, if
    sbatch is installed."""
    told = subprocess.run(["sbatch", "--help"], capture_output=True, text=True, check=False).stdout if shutil.which("sbatch") else ""
    known = sorted(set(re.findall(r"--[a-z-]+", told)) or {"--nodes", "--ntasks-per-node", "--cpus-per-task", "--gpus-per-node", "--time", "--array", "--dependency",
                                                          "--job-name", "--mem", "--mem-per-cpu", "--signal", "--partition", "--account", "--parsable"})
    return f'[[ " {" ".join(known)} " == *" $option "* ]]'


def make_checkout(folder):
    """Makes the files that a reader has: a checkout with a built program, an installed Finch, data, a configuration."""
    root = folder.path
    for name in ("configs", "jobs", "tools", "docs"):
        shutil.copytree(SOURCE / name, root / name)
    places = [root / "build", root / "bin", root / "installed" / "bin"]
    cases = "\n    ".join(f'"{verb} "*{name}) more=({" ".join("--set " + shlex.quote(setting) for setting in settings if verb != "train" or "search" not in setting)}) ;;'
                          for verb in ("plan", "evolve", "train") for name, settings in SMALLER.items())
    for place in places:
        place.mkdir(parents=True)
        executable(place / "finch", STANDINS["finch"].format(cases=cases, finch=FINCH))
    (root / "build" / "bench_simulate").symlink_to(pathlib.Path(FINCH).with_name("bench_simulate").resolve())
    for name, text in STANDINS.items():
        if name != "finch":
            executable(root / "bin" / name, text.replace("SBATCH_HELP", sbatch_options()))
    (root / "bin" / "python3").symlink_to(sys.executable)
    shutil.copytree(SOURCE / "jobs", root / "installed" / "share" / "finch" / "jobs")
    shutil.copy(SOURCE / "configs" / "quickstart.yaml", root / "mine.yaml")
    folder.run(0, "data", "generate", "data/mnist", "--samples", 400)
    generator = np.random.default_rng(1)
    for group, count in (("training", 40), ("test", 10)):
        for number, name in enumerate(("cat", "dog")):
            (root / "photos" / group / name).mkdir(parents=True)
            for image in range(count):
                pixels = generator.normal(90 + 80 * number, 30, (40 + image, 50, 3)).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(root / f"photos/{group}/{name}/{image:03}.png")
    variables = dict(environment(), PATH=f"{root}/bin:{os.environ['PATH']}", FINCH_HOME=str(root / "installed"), OMPI_MCA_mpi_yield_when_idle="1",
                     FINCH_REQUEUES="0", PYTHONDONTWRITEBYTECODE="1")
    run_command("mpirun -n 4 build/finch evolve configs/quickstart.yaml", folder, variables)  # like tools/demo.sh
    return variables


def made_change(root, page, lines):
    """Applies a diff block. The first line of the block names the file. The file must contain the old lines exactly
    once."""
    check(lines[0].startswith("--- "), f"{page.name}: a diff block whose first line names no file: {lines[0]}")
    path = root / lines[0].removeprefix("--- ").strip()
    old = "\n".join(line[1:] for line in lines[1:] if line[:1] != "+")
    new = "\n".join(line[1:] for line in lines[1:] if line[:1] != "-")
    text = path.read_text()
    check(text.count(old) == 1, f"{page.name}: the change of {path.name} takes away what stands there {text.count(old)} times:\n{old}")
    path.write_text(text.replace(old, new))


def run_command(command, folder, variables):
    if "runs/mnist-halving" in command:
        shutil.copytree(folder.path / "runs/mnist", folder.path / "runs/mnist-halving", dirs_exist_ok=True)
    line = command
    for word, thing in STANDS_FOR.items():
        line = re.sub(rf"(?<![\w./-]){word}(?![\w=/])", thing, line)
    began = time.time()
    done = subprocess.run(["bash", "-c", line], cwd=folder.path, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=240, check=False)
    codes = next((right for word, right in CODES.items() if command.split()[-1] == word), (0,))
    check(done.returncode in codes, f"{command}\nexit code {done.returncode}\n{done.stdout}")
    print(f"{time.time() - began:6.1f} s  {command}", flush=True)


def check_script(command):
    """Checks a command that is not run: its script exists and has no syntax error."""
    for word in command.split():
        if re.fullmatch(r"(tools|jobs|tests)/[\w./]+", word):
            check((SOURCE / word).is_file(), f"{command}: there is no {word}")
            if word.endswith((".sh", ".sbatch")):
                checked = subprocess.run(["bash", "-n", SOURCE / word], capture_output=True, text=True, check=False)
                check(checked.returncode == 0, checked.stderr)


def run_pages(folder):
    variables = make_checkout(folder)
    seen, ran = set(), set()
    for page in PAGES:
        for language, lines in blocks(page):
            if language == "diff":
                made_change(folder.path, page, lines)
            for command in commands_of(language, lines) if language in ("sh", "console") else []:
                seen.add(command)
                if command in NOT_RUN:
                    check_script(command)
                elif command not in ran:
                    ran.add(command)
                    run_command(command, folder, variables)
    check(set(NOT_RUN) <= seen, f"NOT_RUN names what no document says: {sorted(set(NOT_RUN) - seen)}")
    passed(f"{len(ran)} commands of the documents run as they are written; {len(NOT_RUN)} cannot be run here")


def verbs(folder):
    """Returns {verb: options} from `finch --completion-table`, which bash completion uses."""
    table = folder.run(0, "--completion-table")
    found = {}
    for verb, name in re.findall(r'^"?([a-z ]+)\|([\w,-]*)\|', table, re.MULTILINE):
        found.setdefault(verb.split()[0], {"--help", "--version"}).update(re.findall(r"--[a-z-]+", name))
    check({"evolve", "show", "plan", "data"} <= set(found), f"verbs {sorted(found)} of\n{table}")
    return found


def running_text(folder):
    """Checks that verb and options of each `finch VERB … --option` in the text exist."""
    known, count = verbs(folder), 0
    for page in PAGES:
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for verb, rest in re.findall(r"`(?:srun [^`]*|mpirun [^`]*)?(?:build/)?finch ([a-z]+)((?: [^`]*)?)`", text):
            if re.match(r" ?(?:loss|stop|done)", verb + rest) or (verb, rest) == ("loss", ""):
                continue  # a line that a program prints for Finch, not a command
            check(verb in known, f"{page.name}: finch has no verb {verb}; verbs are {sorted(known)}")
            for option in re.findall(r"(?<!\S)\[?(--[a-z-]+)", rest):
                check(option in known[verb], f"{page.name}: finch {verb} has no option {option}; it has {sorted(known[verb])}")
            count += 1
    check(count > 40, f"only {count} commands found in the text")
    passed(f"{count} commands in the running text name verbs and options that exist")


def main():
    if not shutil.which("mpirun") or not shutil.which("h5dump"):
        print("skipped: no mpirun or no h5dump")
        sys.exit(SKIPPED)
    with Folder() as folder:
        running_text(folder)
        run_pages(folder)


if __name__ == "__main__":
    main()
