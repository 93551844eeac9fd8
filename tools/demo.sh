#!/usr/bin/env bash
# From nothing to evolved networks: installs, builds, and evolves on distorted digits that Finch generates, with four
# ranks = 2 islands of 1 worker of 2 ranks each; then shows what was found. Each call does the search anew. What tools/report.py needs is
# installed, too; where it cannot be, the demo goes on without.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

# Prints a command as the user would type it, and runs it.
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

# Open MPI asks for a word where there are more ranks than cores, where it runs as root, and in a container.
launcher=(mpirun -n 4 --oversubscribe --bind-to none)
[ "$(id -u)" != 0 ] || launcher+=(--allow-run-as-root)
export OMPI_MCA_btl_vader_single_copy_mechanism=none PMIX_MCA_gds=hash OMPI_MCA_mpi_yield_when_idle=1

step "the search: 4 ranks = 2 islands of 1 worker of 2 ranks"
try "${launcher[@]}" build/finch evolve configs/quickstart.yaml --fresh

step "what it found"
try build/finch show runs/quickstart

step "the files: plain HDF5, readable at any moment"
try ls -R runs/quickstart
printf '\n$ h5dump -d /individuals -s 0 -c 1 runs/quickstart/population.h5\n'
h5dump -d /individuals -s 0 -c 1 runs/quickstart/population.h5

cat <<'END'

Next, the report, one file that any browser opens:
  tools/report.py runs/quickstart -o report.html

More evaluations go on where this run stopped, and any individual can be trained again to the same bits:
  mpirun -n 4 --oversubscribe build/finch evolve configs/quickstart.yaml --set search.budget.evaluations=80
  sbatch jobs/evolve.sbatch configs/quickstart.yaml
  build/finch config                                   every key of a configuration
docs/tutorial.md goes on from here.
END
