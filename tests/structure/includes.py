#!/usr/bin/env python3
"""includes.py SOURCE_FOLDER: checks the #include lines and threads under include/finch and src.

The test fails on

- an include by a path with `..`, or of a module that the table of modules does not allow;
- a third-party header outside of the modules that may use it;
- an `#if` that names a backend outside of the backend;
- a new thread: Finch is single-threaded, except for loops of the CPU backend, the readers of images and the abort of an NCCL
  communicator.

    includes.py SOURCE_FOLDER      prints the violations; exit code 1 if there are any
    includes.py --self-test        writes violations to a temporary folder and checks that each is found
"""

import pathlib
import re
import sys
import tempfile

# module: (its level, the modules that it may include). It may also include the modules that these may include. All may include base.
MODULES = {
    "base": (0, []),
    "pixels": (0, []),
    "images": (0, []),
    "cluster": (1, []),
    "process": (1, []),
    "backend": (1, ["pixels"]),
    "hdf5": (1, []),
    "energy": (1, []),
    "search": (2, []),
    "comm": (2, ["cluster", "backend"]),
    "nn": (2, ["backend"]),
    "data": (2, ["cluster", "hdf5", "images", "pixels"]),
    "train": (3, ["nn", "data", "comm"]),
    "island": (3, ["search"]),  # and comm/mailbox.hpp, see SINGLE_HEADERS
    "store": (3, ["search", "hdf5"]),
    "config": (4, ["base", "cluster", "backend", "hdf5", "search", "comm", "nn", "data", "train", "island", "store"]),
    "report": (4, ["search", "store"]),
    "evaluate": (5, ["process", "energy", "island", "train", "store", "config"]),
    "run": (6, ["process", "energy", "evaluate", "config", "report", "train", "island", "store"]),
    "app": (7, ["run", "process", "evaluate", "config", "report", "train", "island", "store"]),
}

# Single headers that a module may include although it may not include the rest of their module.
SINGLE_HEADERS = {"island": ["comm/mailbox.hpp"]}

# First folder (or whole name) of a third-party header: (pattern of the modules that may include it, pattern of their files or None
# for all files).
THIRD_PARTY = {
    "mpi.h": ("comm", None),
    "nccl.h": ("comm", r"nccl"),
    "hdf5.h": ("hdf5", None),
    "yaml-cpp": ("config", None),
    "oneapi": ("backend", None),
    "dnnl.hpp": ("backend", None),
    "dnnl.h": ("backend", None),
    "CLI": ("app", None),
    "fmt": ("base", None),
    "spdlog": ("base", None),
    "Eigen": ("search", None),
    "nlopt.h": ("search", r"minimize"),
    "rapidjson": ("evaluate|report", None),  # evaluate parses JSON, report writes it
    "zlib.h": ("data", None),
    "png.h": ("images", None),
    "jpeglib.h": ("images", None),
    "jerror.h": ("images", None),
    "doctest": ("nobody", None),
}
# Headers of CUDA and its libraries: only module backend may include them, and the NCCL files of module comm.
CUDA = re.compile(r"^(cuda|cudnn|cublas|curand|nvrtc|nvml|thrust|cub)")
CUDA_CONDITION = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*(CUDA|NVCC|NCCL|DNNL)", re.IGNORECASE)
# Code that creates a thread, and the files in which it is allowed. std::this_thread creates none.
THREAD = re.compile(r"\bstd::(?:jthread|thread|async)\b|\bpthread_create\b|\bthrd_create\b|\bomp\s+(?:parallel|task)\b|\bstd::execution::par")
THREAD_PLACES = {
    "#pragma omp parallel for": r"^src/backend/cpu/",
    "std::thread(std::move(abort)).detach()": r"^src/comm/nccl_all_reduce\.cpp$",
    "std::jthread": r"^src/data/image_files\.cpp$",
    "pthread_create": r"^src/(cluster/signals|pixels/loader)\.cpp$",  # signals.cpp replaces this function; loader.cpp calls it
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh"}


def reachable(module):
    """Returns all modules that `module` may include, and `module` itself."""
    found, waiting = {"base", module}, list(MODULES[module][1])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += MODULES[name][1]
    return found


def without_comments(text):
    """Replaces comments in `text` by spaces and keeps the line breaks."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"[^\n]", " ", match[0]), text)


def finch_violation(module, header):
    """Returns why `module` may not include "finch/`header`", or None if it may."""
    target = header.split("/")[0]
    if target not in MODULES:
        return f"finch/{header} is in no module"
    if target in reachable(module) or header in SINGLE_HEADERS.get(module, []):
        return None
    if MODULES[target][0] > MODULES[module][0]:
        return f"finch/{header} goes up, from {module} to {target}"
    return f"finch/{header}: {module} may not include {target}"


def third_party_violation(module, name, header):
    """Returns why `module` may not include the third-party `header` in the file `name`, or None if it may."""
    top = header.split("/")[0]
    if CUDA.match(top):
        if module == "backend" or (module == "comm" and "nccl" in name):
            return None
        return f"{header} belongs to backend (and to comm's file for NCCL)"
    if top not in THIRD_PARTY:
        return None
    owner, files = THIRD_PARTY[top]
    if not re.fullmatch(owner, module) or (files and not re.search(files, name)):
        return f"{header} belongs to {owner}"
    return None


def thread_violation(place, line):
    """Returns why `line` of the file `place` may not create a thread. Returns None if it creates none or is allowed to."""
    if not THREAD.search(line) or any(re.search(where, place) and what in line for what, where in THREAD_PLACES.items()):
        return None
    return "makes a thread: Finch runs one, whose state nothing guards"


def file_violations(path, module, place):
    for number, line in enumerate(without_comments(path.read_text(encoding="utf-8")).splitlines(), 1):
        include = INCLUDE.match(line)
        found = None
        if include and include[2].startswith("finch/"):
            found = finch_violation(module, include[2].removeprefix("finch/"))
        elif include and include[1] == '"' and "/" in include[2] and ".." in include[2]:
            found = f"{include[2]} climbs out of its folder; write finch/MODULE/…"
        elif include:
            found = third_party_violation(module, path.name, include[2])
        elif CUDA_CONDITION.match(line) and module != "backend":
            found = "an #if on a backend outside of backend"
        else:
            found = thread_violation(place, line)
        if found:
            yield f"{path}:{number}: {found}"


def violations(root):
    """Returns all violations under `root`, and the number of files that were read."""
    found, files = [], 0
    for folder in (root / "include" / "finch", root / "src"):
        for path in sorted(folder.rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            files += 1
            module = path.relative_to(folder).parts[0]
            if module not in MODULES:
                found.append(f"{path}: is in no module")
            else:
                found += file_violations(path, module, path.relative_to(root).as_posix())
    return found, files


PLANTED = [
    # (file, line, whether it is a violation)
    ("src/base/a.cpp", '#include "finch/cluster/layout.hpp"', True),
    ("src/base/a.cpp", "#include <fmt/format.h>", False),
    ("src/cluster/a.cpp", "#include <fmt/format.h>", True),
    ("src/cluster/a.cpp", '#include "finch/base/log.hpp"', False),
    ("src/cluster/a.cpp", '#include "finch/backend/device.hpp"', True),
    ("src/cluster/a.cpp", "  #  include <spdlog/spdlog.h>", True),
    ("src/search/a.cpp", '#include "finch/energy/meter.hpp"', True),
    ("src/train/a.cpp", '#include "finch/energy/shares.hpp"', True),
    ("src/energy/a.cpp", '#include "finch/cluster/layout.hpp"', True),
    ("src/energy/a.cpp", "#include <nvml.h>", True),
    ("src/search/a.cpp", "#include <mpi.h>", True),
    ("src/search/a.cpp", "// #include <mpi.h>", False),
    ("src/search/a.cpp", "/*\n#include <mpi.h>\n*/", False),
    ("src/search/a.cpp", "#include <Eigen/Dense>", False),
    ("src/nn/a.cpp", "#include <Eigen/Dense>", True),
    ("src/backend/a.cpp", '#include "finch/pixels/loader.hpp"', False),
    ("src/hdf5/a.cpp", '#include "finch/pixels/store.hpp"', True),
    ("src/pixels/a.cpp", '#include "finch/backend/device.hpp"', True),
    ("src/nn/a.cpp", "#include <vector>", False),
    ("src/nn/a.cpp", "#include <oneapi/dnnl/dnnl.hpp>", True),
    ("src/nn/a.cpp", '#include "finch/data/dataset.hpp"', True),
    ("src/nn/a.cpp", "#include <cuda_runtime.h>", True),
    ("src/nn/a.cpp", "#ifdef FINCH_CUDA", True),
    ("src/nn/a.cpp", "#if defined(__AVX2__)", False),
    ("src/backend/cuda/a.cpp", "#include <cudnn.h>", False),
    ("src/backend/cuda/a.cpp", "#ifdef FINCH_CUDA", False),
    ("src/comm/nccl.cpp", "#include <cuda_runtime.h>", False),
    ("src/comm/nccl.cpp", "#include <nccl.h>", False),
    ("src/comm/group.cpp", "#include <nccl.h>", True),
    ("src/comm/group.cpp", "#include <mpi.h>", False),
    ("src/data/a.cpp", "#include <zlib.h>", False),
    ("src/images/a.cpp", "#include <png.h>", False),
    ("src/data/a.cpp", "#include <jpeglib.h>", True),
    ("src/train/a.cpp", "#include <zlib.h>", True),
    ("src/train/a.cpp", '#include "finch/backend/device.hpp"', False),
    ("src/train/a.cpp", '#include "finch/search/individual.hpp"', True),
    ("src/train/a.cpp", '#include "finch/island/worker.hpp"', True),
    ("src/island/a.cpp", '#include "finch/comm/mailbox.hpp"', False),
    ("src/island/a.cpp", '#include "finch/comm/mpi.hpp"', True),
    ("src/island/a.cpp", '#include "finch/train/training.hpp"', True),
    ("src/store/a.cpp", "#include <hdf5.h>", True),
    ("src/store/a.cpp", '#include "finch/hdf5/file.hpp"', False),
    ("src/config/a.cpp", "#include <yaml-cpp/yaml.h>", False),
    ("src/config/a.cpp", '#include "finch/train/training.hpp"', False),
    ("src/config/a.cpp", '#include "finch/report/table.hpp"', True),
    ("src/report/a.cpp", '#include "finch/train/training.hpp"', True),
    ("src/report/a.cpp", "#include <yaml-cpp/yaml.h>", True),
    ("src/evaluate/a.cpp", '#include "finch/island/evaluator.hpp"', False),
    ("src/evaluate/a.cpp", '#include "finch/train/training.hpp"', False),
    ("src/evaluate/a.cpp", '#include "finch/report/tables.hpp"', True),
    ("src/evaluate/a.cpp", '#include "finch/run/startup.hpp"', True),
    ("src/run/a.cpp", '#include "finch/app/plan.hpp"', True),
    ("src/train/a.cpp", '#include "finch/evaluate/order.hpp"', True),
    ("src/app/a.cpp", "#include <CLI/CLI.hpp>", False),
    ("src/app/a.cpp", '#include "finch/evaluate/order.hpp"', False),
    ("src/app/a.cpp", '#include "finch/report/table.hpp"', False),
    ("src/app/a.cpp", '#include "finch/cluster/signals.hpp"', False),
    ("src/app/a.cpp", '#include "../train/inner.hpp"', True),
    ("include/finch/island/a.hpp", "#include <mpi.h>", True),
    ("include/finch/comm/a.hpp", "#include <doctest/doctest.h>", True),
    ("src/island/a.cpp", "    std::jthread helper(work);", True),
    ("src/island/a.cpp", "    const auto later = std::async(work);", True),
    ("src/island/a.cpp", "    std::this_thread::sleep_for(pause);", False),
    ("src/data/image_files.cpp", "    std::jthread helper(work);", False),
    ("src/search/a.cpp", "#pragma omp parallel for", True),
    ("src/backend/cpu/a.cpp", "#pragma omp parallel for schedule(static)", False),
    ("src/backend/cpu/a.cpp", "    std::thread helper(work);", True),
    ("src/comm/nccl_all_reduce.cpp", "            std::thread(std::move(abort)).detach();", False),
    ("src/comm/nccl_all_reduce.cpp", "    std::thread helper(work);", True),
    ("src/cluster/signals.cpp", 'extern "C" int pthread_create(pthread_t* thread,', False),
    ("src/pixels/loader.cpp", "    code = ::pthread_create(&thread, &attributes, body, this);", False),
    ("src/pixels/store.cpp", "    pthread_create(&thread, nullptr, body, nullptr);", True),
    ("src/pixels/loader.cpp", "    std::thread helper(work);", True),
    ("src/cluster/layout.cpp", "    pthread_create(&thread, nullptr, body, nullptr);", True),
    ("include/finch/kitchen/a.hpp", "#include <vector>", True),
    ("src/app/a.cpp", '#include "finch/kitchen/a.hpp"', True),
]


def self_test():
    wrong = 0
    for file, line, is_violation in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / file
            path.parent.mkdir(parents=True)
            path.write_text("#pragma once\n" + line + "\n", encoding="utf-8")
            found, _ = violations(pathlib.Path(folder))
            if bool(found) != is_violation:
                wrong += 1
                print(f"{file}: {line!r}: {'not found' if is_violation else found}")
    print(f"{len(PLANTED)} planted lines, {wrong} judged wrongly")
    return 1 if wrong else 0


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    if sys.argv[1] == "--self-test":
        return self_test()
    found, files = violations(pathlib.Path(sys.argv[1]))
    print("\n".join(found + [f"{files} files, {len(found)} violations"]))
    # A wrong folder must fail: it contains too few files.
    return 1 if found or files < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
