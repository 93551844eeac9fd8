"""Builds the CPU backend against oneDNN 3 and runs its unit tests and those of nn, also without AVX-512. The other tests
use the oneDNN of the system, which is version 2 in Debian 12. Fetches oneDNN 3.2 (for g++'s OpenMP) by pip."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

from installed import SKIPPED, SOURCE, check, passed, run

VERSION = "2023.2.0"  # of the packages; oneDNN 3.2
TESTS = ("test_backend", "test_nn")

with tempfile.TemporaryDirectory(prefix="finch-onednn3-") as name:
    folder = pathlib.Path(name)
    wheels = [f"{package}=={VERSION}" for package in ("onednn-cpu-gomp", "onednn-devel-cpu-gomp")]
    fetched = subprocess.run(["python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, *wheels],
                             text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if fetched.returncode != 0:
        reason = (fetched.stdout.strip().splitlines() or ["no output"])[-1]
        print(f"skipped: pip cannot fetch oneDNN 3 ({reason})")
        sys.exit(SKIPPED)
    for wheel in folder.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(folder / "wheels")
    for data in (folder / "wheels").glob("*.data/data"):
        shutil.copytree(data, folder / "onednn", dirs_exist_ok=True)
    passed(f"oneDNN 3 is in a folder ({', '.join(wheels)})")

    build = folder / "build"
    options = [f"-DCMAKE_PREFIX_PATH={folder / 'onednn'}", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=ON", "-DFINCH_CUDA=OFF"]
    if shutil.which("ccache"):
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    run("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", *options)
    cache = (build / "CMakeCache.txt").read_text()
    for variable in ("FINCH_DNNL_INCLUDE_DIR:PATH", "FINCH_DNNL_LIBRARY:FILEPATH"):
        check(f"{variable}={folder}/onednn/" in cache, f"{variable} is not in {folder}/onednn")
    run("cmake", "--build", build, "--parallel", "2", "--target", *TESTS)
    for test in TESTS:
        check("libdnnl.so.3" in run("ldd", build / "tests" / test), f"{test} uses another oneDNN")
    passed("the backend and its tests compile")

    for instructions in ({}, {"DNNL_MAX_CPU_ISA": "AVX2"}):
        for test in TESTS:
            run(build / "tests" / test, without=("DNNL_MAX_CPU_ISA",), FINCH_SOURCE_DIR=str(SOURCE), **instructions)
        passed(f"{' and '.join(TESTS)} with {instructions or 'all instructions'}")
