"""Checks cmake/FinchVersion.cmake: the version of a checkout, of a git archive and of a folder without git, and its use
in a build."""
import pathlib
import re
import shutil
import subprocess
import tempfile

from installed import SOURCE, check, passed, run

SCRIPT = SOURCE / "cmake/FinchVersion.cmake"


def git(folder, *words):
    return run("git", "-C", folder, "-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *words, GIT_CONFIG_GLOBAL="/dev/null").strip()


def written(folder, given=""):
    run("cmake", "-D", f"SOURCE={folder}", "-D", "NUMBER=0.1.0", "-D", f"FINCH_VERSION={given}", "-D", f"TEMPLATE={SOURCE}/src/base/version.cpp.in",
        "-D", f"OUTPUT={folder}/../version.cpp", "-P", SCRIPT)
    return folder / "../version.cpp"


def version(folder, given=""):
    return re.search(r'return "(.*)";', written(folder, given).read_text())[1]


def commit(folder):
    with open(folder / "file", "a") as file:
        file.write("more\n")
    git(folder, "commit", "--quiet", "--all", "--message", "more")
    return git(folder, "rev-parse", "HEAD")[:12]


def archived(folder):
    out = folder.parent / "archive"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    subprocess.run(f"git -C '{folder}' archive HEAD | tar -x -C '{out}'", shell=True, check=True)
    return out


with tempfile.TemporaryDirectory(prefix="finch-version-") as name:
    folder = pathlib.Path(name) / "source"
    (folder / "cmake").mkdir(parents=True)
    shutil.copy(SOURCE / "cmake/version_of_archive.txt", folder / "cmake")
    check(version(folder) == "0.1.0", f"without git: {version(folder)}")
    shutil.copy(SOURCE / ".gitattributes", folder)
    (folder / "file").touch()
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    head = commit(folder)
    check(version(folder) == f"0.1.0-g{head}", f"before any tag: {version(folder)}, {head}")
    check(version(archived(folder)) == f"0.1.0-g{head}", f"its archive: {version(archived(folder))}")
    git(folder, "tag", "verified")
    check(version(folder) == f"0.1.0-g{head}", "a tag that is no version counts")
    git(folder, "tag", "v0.2.0")
    check(version(folder) == "0.2.0", f"at a tag: {version(folder)}")
    check(version(archived(folder)) == "0.2.0", f"its archive: {version(archived(folder))}")
    before = written(folder).stat().st_mtime_ns
    check(written(folder).stat().st_mtime_ns == before, "nothing has changed, and yet there is something to compile")
    with open(folder / "file", "a") as file:
        file.write("changed\n")
    check(version(folder) == "0.2.0-dirty", f"changed: {version(folder)}")
    head = commit(folder)
    check(version(folder) == f"0.2.0-1-g{head}", f"after a tag: {version(folder)}")
    check(version(archived(folder)) == f"0.2.0-1-g{head}", f"its archive: {version(archived(folder))}")
    check(version(folder, "2024.1") == "2024.1", "what is given does not win")
    inner = folder / "inner"
    shutil.copytree(archived(folder), inner)
    commit(folder)
    check(version(inner) == f"0.2.0-1-g{head}", "an archive within another project's repository")
    passed("checkouts, tags, archives, changes")

number = re.search(r"project\(finch VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
cited = dict(re.findall(r"^([a-z-]+): *(.*)$", (SOURCE / "CITATION.cff").read_text(), re.MULTILINE))
check(cited["version"] == number, f"CITATION.cff says {cited['version']}, CMakeLists.txt {number}")
check(cited["cff-version"] == "1.2.0" and cited["message"] and cited["title"] and cited["type"] == "software", f"CITATION.cff: {cited}")
check("  - name: The Finch developers" in (SOURCE / "CITATION.cff").read_text(), "CITATION.cff: its authors")
passed(f"CITATION.cff is of {number}, as the project is")
