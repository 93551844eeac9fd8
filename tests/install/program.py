"""Checks `cmake --install` into a new folder: the installed files; the program runs, and finds its libraries and its
job script; the folder can be moved."""
import importlib.util
import re
import sys

from installed import BUILD, Installed, check, passed, run

EXPECTED = """
bin/finch bin/finch-launcher bin/finch-report bin/finch-export
share/finch/jobs/evolve.sbatch share/finch/configs/sphere.yaml share/finch/configs/gallery/pytorch_ddp.py share/finch/modulefiles/finch
share/finch/tools/report.py share/finch/tools/reporting/page.py share/finch/tools/reporting/page.css share/finch/tools/reporting/page.js share/finch/tools/python/finch_objective.py
share/doc/finch/README.md share/doc/finch/CHANGELOG.md share/doc/finch/docs/slurm.md
share/bash-completion/completions/finch
""".split()
GENES = [word for gene in ("channels=4", "more_layers=1", "activation=relu", "learning_rate=0.01") for word in ("--gene", gene)]
PLACES = r"bin/finch(-launcher|-report|-export)?|share/(finch/(jobs|configs|modulefiles|tools)|doc/finch|bash-completion/completions)/.*"


def runpath(program):
    return re.findall(r"R(?:UN)?PATH.*\[(.*)\]", run("readelf", "--dynamic", program))


def check_libraries(prefix):
    folders = [folder for text in runpath(prefix / "bin/finch") for folder in text.split(":")]
    of_build = [folder for text in runpath(BUILD / "finch") for folder in text.split(":")]
    check(set(folders) == {folder for folder in of_build if folder and not folder.startswith(str(BUILD))},
          f"libraries are searched for in {folders}; when it was linked, in {of_build}")
    check("not found" not in run("ldd", prefix / "bin/finch"), "a library is not found")


def check_it_runs(installed):
    program = installed.prefix / "bin/finch"
    elsewhere = installed.path / "elsewhere"
    elsewhere.mkdir()
    version = run(program, "--version", cwd=elsewhere)
    check(version == run(BUILD / "finch", "--version") and re.match(r"Finch \d+\.\d+\.\d+", version), version)
    run("mpirun", "-n", 2, program, "evolve", installed.prefix / "share/finch/configs/sphere.yaml", cwd=elsewhere)
    check("complete" in run(program, "status", "runs/sphere", cwd=elsewhere), "status")
    run(program, "plan", installed.prefix / "share/finch/configs/quickstart.yaml", "--nodes", 1, "--ranks-per-node", 4, cwd=elsewhere)
    if all(importlib.util.find_spec(name) for name in ("h5py", "numpy", "pandas", "plotly", "PIL", "sklearn", "yaml")):
        check("RUN" in run(sys.executable, installed.prefix / "bin/finch-report", "--help", cwd=elsewhere), "finch-report --help")
        run(program, "train", installed.prefix / "share/finch/configs/quickstart.yaml", "--run", "runs/one", "--set", "training.epochs=1", *GENES, cwd=elsewhere)
        run(sys.executable, installed.prefix / "bin/finch-export", "runs/one", "--format", "pytorch", cwd=elsewhere)
        check((elsewhere / "one-pytorch/model.py").is_file(), "finch-export")
    output = run("bash", installed.prefix / "share/finch/jobs/evolve.sbatch", "configs/sphere.yaml", "--run", "runs/job", cwd=elsewhere,
                 FINCH_RANKS="2")
    check(f"{program} evolve {installed.prefix}/share/finch/configs/sphere.yaml" in output, output)
    check("complete" in run(program, "status", "runs/job", cwd=elsewhere), "status of the job script's run")
    elsewhere.rename(f"{installed.prefix}-was-used")


with Installed() as installed:
    files = sorted(str(path.relative_to(installed.prefix)) for path in installed.prefix.rglob("*") if not path.is_dir())
    check(set(EXPECTED) <= set(files), f"not installed: {set(EXPECTED) - set(files)}")
    strangers = [name for name in files if not re.fullmatch(PLACES, name) or re.search(r"test|bench_|__pycache__|\.a$", name)]
    check(not strangers, f"installed, but for nobody: {strangers}")
    passed(f"{len(files)} files, the program's own alone")
    check_libraries(installed.prefix)
    passed(f"libraries are found in {runpath(installed.prefix / 'bin/finch')}")
    check_it_runs(installed)
    passed("a search, a plan and the job script from another folder")
    installed.move("moved to here")
    check_it_runs(installed)
    passed("the same after the folder was moved")
    run("cmake", "--install", BUILD, "--prefix", installed.path / "slim", "--component", "program")
    check((installed.path / "slim/bin/finch").exists() and not (installed.path / "slim/share/doc").exists(), "the component program")
    passed("the component `program` is without documentation")
