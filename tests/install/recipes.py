"""Checks the recipes in tools/packaging: their syntax is valid, and they name every package of tools/install.sh."""
import ast
import re

from installed import SOURCE, check, passed, run

PACKAGING = SOURCE / "tools/packaging"
INSTALL = (SOURCE / "tools/install.sh").read_text()
# The packages of tools/install.sh, with their names in Spack and in EasyBuild. None: the package comes with the
# compiler, the toolchain or the system.
BUILD = {
    "g++": ("cxx", None), "cmake": ("cmake", "CMake"), "ninja-build": ("ninja", "Ninja"), "pkg-config": ("pkgconfig", "pkgconf"),
    "libopenmpi-dev": ("mpi", None), "openmpi-bin": ("mpi", None), "openssh-client": (None, None),
    "libhdf5-dev": ("hdf5", "HDF5"), "hdf5-tools": ("hdf5", "HDF5"), "libyaml-cpp-dev": ("yaml-cpp", "yaml-cpp"),
    "libdnnl-dev": ("onednn", "oneDNN"), "libcli11-dev": ("cli11", "CLI11"), "libfmt-dev": ("fmt", "fmt"),
    "libspdlog-dev": ("spdlog", "spdlog"), "zlib1g-dev": ("zlib-api", "zlib"), "libpng-dev": ("libpng", "libpng"),
    "libjpeg-dev": ("jpeg", "libjpeg-turbo"), "rapidjson-dev": ("rapidjson", "RapidJSON"),
    "libeigen3-dev": ("eigen", "Eigen"), "libnlopt-dev": ("nlopt", "NLopt"), "curl": (None, None), "ca-certificates": (None, None),
}
REPORT = {"python3": "python", "python3-h5py": "py-h5py", "python3-numpy": "py-numpy", "python3-pandas": "py-pandas", "python3-plotly": "py-plotly",
          "python3-sklearn": "py-scikit-learn", "python3-pil": "py-pillow", "python3-yaml": "py-pyyaml"}
CUDA = {"cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL"}


def packages(list_name):
    lines = re.search(rf'^{list_name}="\n(.*?)^"', INSTALL, re.MULTILINE | re.DOTALL)[1].splitlines()
    return [line.split()[0] for line in lines]


def spack_names(text):
    """Returns the packages in the depends_on() calls, without versions and variants."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "depends_on"]
    return {re.split(r"[@ ~+%]", call.args[0].value)[0] for call in calls}


def easyconfig(path):
    """Returns the values that an easyconfig sets. Like EasyBuild, executes it as Python with some predefined names."""
    values = {"SYSTEM": {"name": "system"}, "SHLIB_EXT": "so"}
    exec(compile(path.read_text(), path.name, "exec"), values)  # pylint: disable=exec-used
    return values


for name in packages("build_packages"):
    check(name in BUILD, f"tools/install.sh has {name}: name it in the recipes, and here")
check(set(BUILD) == set(packages("build_packages")), f"no longer in tools/install.sh: {set(BUILD) - set(packages('build_packages'))}")
check(set(REPORT) == set(packages("report_packages")), "tools/install.sh --report installs other packages than finch-report's here")

spack = spack_names((PACKAGING / "spack/package.py").read_text())
wanted = {spack_name for spack_name, _ in BUILD.values() if spack_name} | set(REPORT.values()) | set(CUDA)
check(wanted <= spack, f"spack/package.py does not name {wanted - spack}")
passed(f"Spack: {len(wanted)} packages")

easybuild = PACKAGING / "easybuild"
number = re.search(r"project\(finch VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
wanted = {name for _, name in BUILD.values() if name}
recipes = sorted(easybuild.glob("Finch-*.eb"))
for path in recipes:
    values = easyconfig(path)
    named = {entry[0]: entry[1] for entry in values["builddependencies"] + values["dependencies"]}
    more = set(CUDA.values()) if "CUDA" in path.name else set()
    check(set(named) == wanted | more, f"{path.name}: missing {(wanted | more) - set(named)}, too many {set(named) - wanted - more}")
    suffix = values.get("versionsuffix", "").replace("%(cudaver)s", named.get("CUDA", ""))
    full = f"{values['name']}-{values['version']}-{values['toolchain']['name']}-{values['toolchain']['version']}{suffix}.eb"
    check(path.name == full and values["version"] == number, f"{path.name} is the recipe of {full}; the project is {number}")
    own = easyconfig(next(easybuild.glob("oneDNN-*.eb")))
    check(own["version"] == named["oneDNN"], f"{path.name}: oneDNN {named['oneDNN']}, but there is a recipe of {own['version']}")
check(len(recipes) == 2, f"recipes: {recipes}")
passed(f"EasyBuild: {len(wanted)} packages, and {sorted(CUDA.values())}")

frontend = re.search(r"^frontend_version=(\S+)", INSTALL, re.MULTILINE)[1]
for path in (PACKAGING / "spack/package.py", *easybuild.glob("Finch-*CUDA*.eb")):
    check(re.search(rf"['\"]v?{re.escape(frontend)}['\"]", path.read_text()), f"{path.name}: cudnn-frontend is not {frontend}")
check(f'version("{number}", tag="v{number}")' in (PACKAGING / "spack/package.py").read_text(), f"spack/package.py has no version {number}")

for path in PACKAGING.glob("apptainer/*.def"):
    text = path.read_text()
    check(re.match(r"Bootstrap: docker\nFrom: debian:bookworm", text), f"{path.name}: another distribution than tools/install.sh's")
    sections = dict(re.findall(r"^%(\w+)\n((?:(?!%\w).*\n)*)", text, re.MULTILINE))
    check({"post", "environment", "test", "runscript", "help", "arguments"} <= set(sections), f"{path.name}: sections {sorted(sections)}")
    check("tools/install.sh" in sections["post"] and "cmake --install" in sections["post"], f"{path.name}: %post")
    given = set(re.findall(r"^ +(\w+)=", sections["arguments"], re.MULTILINE)) | {"source"}
    used = set(re.findall(r"{{ (\w+) }}", text))
    check(used == given, f"{path.name}: build arguments {used}, given or asked for {given}")
    for name in ("post", "environment", "test", "runscript"):
        run("sh", "-n", "-c", re.sub(r"{{ \w+ }}", "x", sections[name]))
passed("Apptainer: all packages, through tools/install.sh")
