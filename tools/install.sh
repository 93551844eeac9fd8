#!/usr/bin/env bash
# Installs what Finch is built from, on Debian 12 (or a later Debian or Ubuntu). The one list of packages.
#
#   tools/install.sh            build and run
#   tools/install.sh --tests    … and what the tests need
#   tools/install.sh --peers    … and PyTorch, to make the recorded fixtures of the tests anew
#
# Does nothing where everything is there, and needs no rights then. Anywhere but on Debian it only says what to look for.
set -euo pipefail

# Package and reason, one a line.
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
libdnnl-dev        oneDNN: convolutions on the CPU
libcli11-dev       the command line
libfmt-dev         formatted text (g++ 12 has no std::format)
libspdlog-dev      the log
zlib1g-dev         reads gzipped data sets
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
"
peer_packages="
python3-torch      the other implementation that recorded fixtures come from
"

packages=$build_packages
for option in "$@"; do
    case $option in
        --tests) packages+=$test_packages ;;
        --peers) packages+=$test_packages$peer_packages ;;
        *) echo "usage: tools/install.sh [--tests | --peers]" >&2; exit 2 ;;
    esac
done
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
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "install.sh: these packages are missing, and only an administrator can install them:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
fi
echo "install.sh: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet
apt-get install --yes --quiet --no-install-recommends "${missing[@]}"
