#!/usr/bin/env bash
# Demonstrates Finch: installs the packages, builds the program, evolves networks on distorted digits that Finch
# generates, and shows the results. The search uses four ranks: 2 islands of 1 worker of 2 ranks each. Every call starts
# a new search. The script also installs the packages for tools/report.py; the demo continues if this fails.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

# Prints a command as a user would type it, and runs it.
try() {
    printf '\n$ %s\n' "$*"
    "$@"
}

step "packages and build"
tools/install.sh --report || {
    tools/install.sh
    echo "demo.sh: going on without the packages of the report"
}
tools/build.sh

# Open MPI needs extra settings if there are more ranks than cores, if root runs it, and in a container.
launcher=(mpirun -n 4 --oversubscribe --bind-to none)
[ "$(id -u)" != 0 ] || launcher+=(--allow-run-as-root)
. tools/mpi_settings.sh

step "the search: 4 ranks = 2 islands of 1 worker of 2 ranks"
try "${launcher[@]}" build/finch evolve configs/quickstart.yaml --fresh

step "the files: plain HDF5, readable at any moment"
try ls -R runs/quickstart

step "what it found, and what to do next (docs/tutorial.md explains it)"
try build/finch show runs/quickstart
