"""Checks configs/gallery: README.md lists each configuration, each has a short header, and `finch plan` accepts it. At
night, the configurations with generated or local data run a few evaluations each."""
import ast
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace as Space

from harness import SOURCE, Folder, check, end_of_short_form, individuals, outcome_words, passed

GALLERY = SOURCE / "configs/gallery"
NAMES = sorted(path.stem for path in GALLERY.glob("*.yaml"))
MADE = {"images": "data/shapes", "unequal": "data/unequal", "regression": "data/discs.h5"}
os.environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"  # for the configurations that start python3


def check_texts():
    page = (GALLERY / "README.md").read_text()
    listed = re.findall(r"^\| [^|]*\| \[(\w+)\.yaml\]", page, re.MULTILINE)
    check(sorted(listed) == NAMES, f"README.md lists {sorted(listed)}; there are {NAMES}")
    for name in NAMES:
        lines = (GALLERY / f"{name}.yaml").read_text().splitlines()
        header = next(number for number, line in enumerate(lines) if not line.startswith("#"))
        check(1 <= header <= 8, f"{name}.yaml has a header of {header} lines; expected 1 to 8")
        check(f"configs/gallery/{name}.yaml" in "\n".join(lines[:header]), f"the header of {name}.yaml has no command that runs it")
        check(f"\nname: {name}\n" in "\n".join(lines), f"{name}.yaml has another name")
    passed(f"the table of the gallery has each of its {len(NAMES)} configurations")


def make_data(folder):
    (folder.path / "configs").symlink_to(SOURCE / "configs")
    for kind, target in MADE.items():
        subprocess.run([sys.executable, "configs/gallery/make_data.py", kind, target], cwd=folder.path, check=True)
    if os.environ.get("FINCH_MNIST"):
        (folder.path / "data/mnist").symlink_to(os.environ["FINCH_MNIST"])


def plan_all(folder):
    for name in NAMES:
        said = folder.run(0, "plan", f"configs/gallery/{name}.yaml", "--nodes", "2", "--ranks-per-node", "2")
        check(f"the run directory would be runs/{name}" in said, said)
    passed("finch plan accepts each configuration")


def check_stops(folder):
    """Runs the callbacks of the examples for frameworks, and Hugging Face's choice of a checkpoint, without frameworks."""
    strategy, torch = Space(reduce_boolean_decision=lambda asked, all: asked), Space(tensor=lambda value, **_: Space(item=lambda: value))
    names = {"TrainerCallback": object, "lightning": Space(Callback=object), "signal": signal, "json": json, "sys": sys, "torch": torch,
             "dist": Space(is_initialized=lambda: False), "finch": Space(checkpoint_dir=lambda: folder.path, resumes=lambda: True)}
    for name, begin, end, count in (("lightning", "on_fit_start", "on_train_epoch_end", 2), ("huggingface", "on_train_begin", "on_epoch_end", 3)):
        body = ast.parse((GALLERY / f"{name}_train.py").read_text()).body
        exec(compile(ast.Module([node for node in body if getattr(node, "name", "") in ("Report", "newest_whole")], []), name, "exec"), names)
        one, callback = Space(should_stop=False, should_training_stop=False, device="cpu", strategy=strategy), names["Report"]()
        getattr(callback, begin)(*[one] * count)
        for asked in (False, True):
            getattr(callback, end)(*[one] * count)
            check((one.should_stop or one.should_training_stop) == asked, f"{name} stops: {not asked}")
            os.kill(os.getpid(), signal.SIGUSR2)
    for step, last, text in ((47, "trainer_state.json", "{}"), (94, "trainer_state.json", '{"half'), (141, "optimizer.pt", "")):
        (folder.path / f"checkpoint-{step}").mkdir()
        folder.write(f"checkpoint-{step}/{last}", text)
    check(names["newest_whole"]() == str(folder.path / "checkpoint-47"), "not the newest complete checkpoint")
    passed("USR2 ends the trainings of Lightning and Hugging Face after the epoch; an incomplete checkpoint is not used")


def run_some(folder):
    def evolve(name, evaluations, *settings):
        words = [word for setting in settings for word in ("--set", setting)]
        folder.run(2, "evolve", f"configs/gallery/{name}.yaml", "--set", f"search.budget.evaluations={evaluations}", *words)
        run, names = folder.path / "runs" / name, outcome_words(folder.path / "runs" / name)
        outcomes = [names[row["outcome"]] for row in individuals(run).values()]
        check(len(outcomes) == evaluations and set(outcomes) <= {"evaluated", "pruned"} and "evaluated" in outcomes, f"{name}: {outcomes}")
        passed(f"{name}.yaml: {evaluations} evaluations")
        return min(row["loss"] for row in individuals(run).values() if names[row["outcome"]] == "evaluated")

    check(evolve("images", 4, "training.epochs=4") < 1.05, "the images teach nothing")  # log 3 = 1.0986 by chance
    evolve("imbalance", 3, "training.epochs=4")
    check(evolve("regression", 4) < 0.25, "the discs teach nothing")  # their variance is about 1/3
    check(evolve("persistent", 40) < 0.3, "the spirals teach nothing")  # 0.5 by chance
    check(evolve("inheritance", 30) < 0.8, "the spirals teach nothing")  # 1 by chance
    if shutil.which("mpicc"):
        subprocess.run(["mpicc", "-O2", "configs/gallery/mpi_sor.c", "-o", "mpi_sor", "-lm"], cwd=folder.path, check=True)
        check(evolve("mpi", 5) < -3, "SOR does not converge")
    if not os.environ.get("FINCH_MNIST"):
        print("not run: the configurations with MNIST (FINCH_MNIST names no folder)")
        return
    for name in ("error_and_parameters", "error_and_joules"):
        evolve(name, 4, "data.training_samples=1000", "data.validation_samples=1000", "training.epochs=1")
    evolve("pruning", 8, "data.training_samples=500", "data.validation_samples=500")
    for name, module in (("lightning", "lightning"), ("huggingface", "transformers")):
        if importlib.util.find_spec(module):
            evolve(name, 1)
        else:
            print(f"not run: {name}.yaml ({module} is not installed)")


with Folder() as folder:
    check_texts()
    make_data(folder)
    plan_all(folder)
    check_stops(folder)
    end_of_short_form()
    run_some(folder)
