"""Compares the CPU kernels with loops in float64 (tests/backend/kernels_alone.cpp): those of the build on this processor,
and those for Arm (NEON) under qemu. Also checks that all of src/backend/cpu compiles for Arm. Needs a cross compiler."""
import pathlib
import platform
import re
import tempfile

from installed import BUILD, SOURCE, check, passed, run, skip_without

CPU = SOURCE / "src/backend/cpu"
DRIVER = SOURCE / "tests/backend/kernels_alone.cpp"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wswitch-enum", "-Wno-restrict", "-Werror")
# Namespace of the kernels: their flag in /proc/cpuinfo, only on x86-64.
EXTENSIONS = {"avx2": "avx2", "avx512": "avx512dq"}


def cached(variable):
    return re.search(rf"^{variable}:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]


def compile_driver(compiler, program, kernels, *arguments):
    run(compiler, "-std=c++20", "-O2", *WARNINGS, "-I", SOURCE / "include", f"-DFINCH_KERNELS={kernels}", "-o", program, DRIVER, *arguments)
    return program


if platform.machine() != "aarch64":
    compiler = skip_without("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")
    qemu = skip_without("qemu-aarch64", "qemu-user")

with tempfile.TemporaryDirectory(prefix="finch-neon-") as name:
    folder = pathlib.Path(name)
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    for kernels in ["baseline", *(kernels for kernels, flag in EXTENSIONS.items() if flag in flags)]:
        program = compile_driver(cached("CMAKE_CXX_COMPILER"), folder / kernels, kernels, BUILD / "src/backend/libfinch_backend.a")
        print(run(program), end="")
        passed(f"the kernels of the build: {kernels}")

    if platform.machine() != "aarch64":
        print(run(qemu, compile_driver(compiler, folder / "neon", "baseline", "-O3", CPU / "kernels_baseline.cpp", "-static")), end="")
        passed("the kernels for NEON")
        sources = sorted(CPU.glob("*.cpp"))
        check(sources, f"no sources in {CPU}")
        for source in sources:
            # The headers of the libraries do not depend on the processor. Those of the cross compiler come first.
            if source.stem.removeprefix("kernels_") not in EXTENSIONS:
                run(compiler, "-std=c++20", "-O1", "-fopenmp", *WARNINGS, "-fsyntax-only", "-I", SOURCE / "include", "-idirafter",
                    cached("FINCH_DNNL_INCLUDE_DIR"), "-idirafter", "/usr/include", source)
        passed("src/backend/cpu compiles for Arm")
