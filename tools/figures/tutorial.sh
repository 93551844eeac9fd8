#!/usr/bin/env bash
# Makes the pictures of docs/tutorial.md from RUN, a run of configs/quickstart.yaml: tools/figures/tutorial.sh [RUN]
#
#   mpirun -n 4 --oversubscribe build/finch evolve configs/quickstart.yaml --fresh
set -euo pipefail
cd "$(dirname "$0")/../.."
run=${1:-runs/quickstart}
tools/figures/sections.py "$run" docs/tutorial-progress.png "Progress"
tools/figures/sections.py "$run" docs/tutorial-genes.png "Each gene"
tools/figures/sections.py "$run" docs/tutorial-mistakes.png "The best network's mistakes"
