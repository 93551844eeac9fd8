#!/usr/bin/env bash
# Installs the packages that Finch needs, on Debian 12 and 13 (docs/platforms.md). This is the only list of packages.
#
#   tools/install.sh            packages to build and run Finch
#   tools/install.sh --tests    also packages for the tests
#   tools/install.sh --report   also packages for tools/report.py
#   tools/install.sh --cuda     fails if the CUDA backend cannot be built
#   tools/install.sh --peers    also packages for the tests, and PyTorch, to regenerate the test fixtures
#
# If all packages are installed, the script does nothing and needs no root rights. On other distributions, it only
# prints the list of packages.
#
# The script does not install CUDA, cuDNN and NCCL: install them from NVIDIA's repositories. If CUDA and cuDNN are
# installed, the script downloads the headers of cudnn-frontend into .cache/, since no distribution that Finch is tested
# on has a package of them.
set -euo pipefail

# One line per package: its name and its purpose.
build_packages="
g++                the compiler: C++20, 12 or later
cmake              the build system, 3.25 or later
ninja-build        runs the build
pkg-config         finds libraries that bring no CMake file
libopenmpi-dev     MPI: ranks talk to each other
openmpi-bin        mpirun
openssh-client     Open MPI asks for a remote shell, also where it starts nothing remotely
libhdf5-dev        HDF5: the run's files
hdf5-tools         h5dump shows them
libyaml-cpp-dev    the configuration
libdnnl-dev        oneDNN, 2.6 or later, or 3: convolutions on the CPU
libcli11-dev       the command line
libfmt-dev         formatted text (g++ 12 has no std::format)
libspdlog-dev      the log
zlib1g-dev         reads gzipped data sets
libpng-dev         reads folders of PNG images
libjpeg-dev        reads folders of JPEG images
rapidjson-dev      the reports of programs
libeigen3-dev      linear algebra of the search
libnlopt-dev       fits the models of the search
curl               tools/fetch_mnist.sh
ca-certificates    the same
"
test_packages="
doctest-dev        the unit tests
clang-format       the format check
slurm-wlm          a real Slurm of two nodes on this machine
munge              Slurm's authentication
iproute2           the network between those nodes
util-linux         namespaces: unshare, nsenter
procps             finds the rank that a test kills
python3            reads runs independently of Finch
python3-numpy      the same
python3-h5py       the same
python3-pil        tools/images_to_hdf5.py reads images with it
python3-networkx   tools/export.py writes and the test reads GraphML with it
git                versions of checkouts
environment-modules  loads the module file
"
report_packages="
python3            tools/report.py is written in it
python3-h5py       reads runs there
python3-numpy      the same
python3-pandas     its tables
python3-plotly     its figures, and what draws them in a browser
python3-sklearn    the forest that tells which genes mattered
python3-pil        its pictures
python3-yaml       reads configurations there
"
browser_packages="
chromium           opens reports in a test
"
arm_packages="
g++-aarch64-linux-gnu  compiles the CPU kernels for Arm in a test
qemu-user          runs them there
"
peer_packages="
python3-torch      the other implementation that recorded fixtures come from; runs exported networks in a test
"

# cudnn-frontend is NVIDIA's C++ interface to cuDNN's graphs. It consists of headers (MIT license), which its Python
# package contains.
cuda_packages="
python3-pip        fetches cudnn-frontend's headers
"
frontend_version=1.32.0
frontend_folder=$(cd "$(dirname "$0")/.." && pwd)/.cache/cudnn-frontend

cuda_is_here() {
    { command -v nvcc || [ -x /usr/local/cuda/bin/nvcc ]; } >/dev/null &&
        find /usr/local/cuda/include/ /usr/include ${CPATH:+$(tr : ' ' <<<"$CPATH")} -name cudnn_graph.h -print -quit 2>/dev/null | grep -q .
}

fetch_frontend() {
    [ "$(cat "$frontend_folder/version" 2>/dev/null)" != "$frontend_version" ] || return 0
    echo "install.sh: fetching the headers of cudnn-frontend $frontend_version"
    local work
    work=$(mktemp -d)
    # The packages of all platforms contain the same headers.
    if python3 -m pip download --quiet --no-deps --only-binary=:all: --implementation cp --python-version 3.11 \
        --platform manylinux_2_28_x86_64 --dest "$work" "nvidia-cudnn-frontend==$frontend_version" &&
        python3 -m zipfile -e "$work"/nvidia_cudnn_frontend-*.whl "$work/wheel"; then
        rm -rf "$frontend_folder"
        mkdir -p "$frontend_folder"
        cp -r "$(dirname "$(find "$work/wheel" -name cudnn_frontend.h -print -quit)")" "$frontend_folder/include"
        echo "$frontend_version" >"$frontend_folder/version"
        rm -rf "$work"
    else
        rm -rf "$work"
        echo "install.sh: the headers of cudnn-frontend could not be fetched (pip: nvidia-cudnn-frontend==$frontend_version)." >&2
        echo "  Put the folder that holds cudnn_frontend.h into $frontend_folder/include, or give cmake" >&2
        echo "  -DFINCH_CUDNN_FRONTEND=FOLDER. Without it Finch is built for CPUs." >&2
        return 1
    fi
}

packages=$build_packages
cuda=no
for option in "$@"; do
    case $option in
        --tests)
            packages+=$test_packages$report_packages$browser_packages
            [ "$(uname -m)" != x86_64 ] || packages+=$arm_packages
            ;;
        --report) packages+=$report_packages ;;
        --peers) packages+=$test_packages$peer_packages ;;
        --cuda) cuda=demanded ;;
        *) echo "usage: tools/install.sh [--tests | --report | --peers] [--cuda]" >&2; exit 2 ;;
    esac
done
if [ $cuda = no ] && cuda_is_here; then cuda=wanted; fi
if [ $cuda != no ] && ! python3 -m pip --version >/dev/null 2>&1; then packages+=$cuda_packages; fi
names=$(awk 'NF { print $1 }' <<<"$packages" | sort -u)

if ! command -v dpkg-query >/dev/null; then
    echo "install.sh: this is no Debian. Finch needs (under Debian's names; on a cluster, load the modules):"
    echo "$packages"
    exit 0
fi

missing=()
for name in $names; do
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
done
if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "install.sh: these packages are missing, and only an administrator can install them:" >&2
        echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
    echo "install.sh: installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update --quiet
    apt-get install --yes --quiet --no-install-recommends "${missing[@]}"
fi

case $cuda in
    demanded)
        cuda_is_here || { echo "install.sh: --cuda: there is no nvcc, or no cuDNN 9 (cudnn_graph.h)" >&2; exit 1; }
        fetch_frontend
        ;;
    wanted) fetch_frontend || true ;;
esac
