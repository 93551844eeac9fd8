"""Checks the module file in Environment Modules: the variables of `module load`, from a moved folder and through a
link."""
import re
import shutil

from installed import Installed, check, passed, run, skip_without

modulecmd = skip_without("modulecmd", "environment-modules")
UNSET = ["MANPATH", "XDG_DATA_DIRS", "LOADEDMODULES", "_LMFILES_"]


def loaded(tree, module, verb="load", **variables):
    """Returns {variable: value} that `module load` sets."""
    text = run(modulecmd, "bash", verb, module, without=UNSET, MODULEPATH=str(tree), **variables)
    check("ERROR" not in text, text)
    return dict(re.findall(r"^(\w+)=(.*?);", text, re.MULTILINE))


with Installed() as installed:
    installed.move("moved")
    prefix = installed.prefix
    tree = prefix / "share/finch/modulefiles"
    alone = loaded(tree, "finch", PATH="/usr/bin:/bin")
    check(alone["PATH"] == f"{prefix}/bin:/usr/bin:/bin" and alone["FINCH_HOME"] == str(prefix), alone)
    check("MANPATH" not in alone, "MANPATH, which was not set, would hide the system's pages")
    check(alone["XDG_DATA_DIRS"] == f"{prefix}/share:/usr/local/share:/usr/share", alone)
    check((prefix / "bin/finch").samefile(shutil.which("finch", path=alone["PATH"])), "the PATH has another finch")
    check((prefix / "share/finch/jobs/evolve.sbatch").exists(), "the job script that the help names")
    passed("module load, where nothing is set")

    versions = installed.path / "site/finch"
    versions.mkdir(parents=True)
    (versions / "0.2.0").symlink_to(tree / "finch")
    linked = loaded(versions.parent, "finch/0.2.0", MANPATH="/site/man", XDG_DATA_DIRS="/site/share")
    check(linked["FINCH_HOME"] == str(prefix), linked)
    check(linked["MANPATH"] == f"{prefix}/share/man:/site/man" and linked["XDG_DATA_DIRS"] == f"{prefix}/share:/site/share", linked)
    passed("a site's link to it, beside what other modules have set")

    check("evolve.sbatch" in run(modulecmd, "bash", "help", "finch", MODULEPATH=str(tree)), "module help")
    check("Slurm" in run(modulecmd, "bash", "whatis", "finch", MODULEPATH=str(tree)), "module whatis")
