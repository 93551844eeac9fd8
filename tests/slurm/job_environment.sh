#!/usr/bin/env bash
# Tests how jobs/evolve.sbatch uses its environment and finds program and files. Usage: job_environment.sh SOURCE_DIR
# shellcheck disable=SC2016  # the stand-ins expand these variables
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/stand_ins.sh" "$@"

# --- Variables of another job or step in the environment ---

record_of() {  # NODES TASKS CPUS TASKS-PER-NODE
    printf '   NumNodes=%s NumCPUs=9 NumTasks=%s CPUs/Task=%s ReqB:S:C:T=0:0:*:*\n   Socks/Node=* NtasksPerN:B:S:C=%s:0:*:* CoreSpec=*\n' "$@"
}
# shellcheck disable=SC2054  # the commas are part of a value
outer=(SLURM_NTASKS=1 SLURM_NNODES=1 SLURM_NTASKS_PER_NODE=1 SLURM_CPUS_PER_TASK=8 SLURM_STEP_ID=0 SLURM_EXPORT_ENV=NONE
    SRUN_EXPORT_ENV=NONE SLURM_MEM_PER_NODE=300 SLURM_MEM_PER_CPU=200 SLURM_MEM_PER_GPU=9 SLURM_HOSTFILE=/gone SLURM_DISTRIBUTION=cyclic
    SLURM_CPU_BIND=quiet,mask_cpu:0x1 SLURM_CPU_BIND_TYPE=mask_cpu: SLURM_MEM_BIND=map_mem:0 SLURM_GPUS_PER_TASK=1 SLURM_NTASKS_PER_GPU=1
    SLURM_TRES_PER_TASK=cpu=8 SLURM_TIMELIMIT=1 SLURM_EXIT_ERROR=2 SLURM_REMOTE_CWD=/ SLURM_HINT=nomultithread SLURM_THREADS_PER_CORE=1
    SLURM_MPI_TYPE=none SLURM_WAIT=1 SLURM_CLUSTERS=other)
arrange; answers 2 0:12; record_of 2 4 3 2 >"$scratch/record"; act "${outer[@]}"
check "the step has the nodes, tasks and CPUs of the job, not those of the step around it" \
    called "srun --mpi=pmix --kill-on-bad-exit=1 --overlap --ntasks-per-node=2 --nodes=2 --ntasks=4 --cpus-per-task=3 $scratch"
check "it may share the CPUs of the step around it" of_srun SLURM_OVERLAP=1
for name in SLURM_NTASKS_PER_NODE SLURM_EXPORT_ENV SRUN_EXPORT_ENV SLURM_MEM_PER_NODE SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_HOSTFILE \
    SLURM_DISTRIBUTION SLURM_CPU_BIND SLURM_CPU_BIND_TYPE SLURM_MEM_BIND SLURM_GPUS_PER_TASK SLURM_NTASKS_PER_GPU SLURM_TRES_PER_TASK \
    SLURM_TIMELIMIT SLURM_EXIT_ERROR SLURM_REMOTE_CWD SLURM_HINT SLURM_THREADS_PER_CORE SLURM_MPI_TYPE SLURM_WAIT SLURM_CLUSTERS; do
    check "$name of the step around it does not reach srun" not_of_srun $name
done
arrange; answers 2 0:12; record_of 2 4 3 2 | sed 's/ReqB:S:C:T=0:0:\*:\*/ReqB:S:C:T=0:0:*:1/' >"$scratch/record"
act SLURM_NTASKS=3 SLURM_CPU_BIND=cores SLURM_HINT=nomultithread SLURM_DISTRIBUTION=plane SLURM_MPI_TYPE=pmix_v4 SLURM_GPUS_ON_NODE=2
check "--ntasks=3 is 3, which the record rounds up" called "--ntasks=3 "
check "srun's --mpi may be chosen" called "srun --mpi=pmix_v4 "
for word in SLURM_CPU_BIND=cores SLURM_HINT=nomultithread SLURM_DISTRIBUTION=plane SLURM_GPUS_ON_NODE=2; do
    check "$word, which the job may have chosen, stays" of_srun $word
done

for shown in 'echo "JobId=3 ArrayTaskId=2 JobState=RUNNING"; exit 0' 'exit 1'; do  # task 2_2 runs or is unknown
    arrange; answers 75:3 75:9; during "scontrol-show @(1|2|3|4|5)" "[ \"\$*\" != 'scontrol show job 2_2' ] || { $shown; }"
    act SLURM_ARRAY_JOB_ID=2 SLURM_ARRAY_TASK_ID=2 --run runs/a-%a
    check "a job that an array's task has submitted requeues itself, not that task" requeued
    check "it is no task of an array" called "--run runs/a-%a"
done

heterogeneous() {  # prints the record of a job of two components
    printf 'JobId=7 HetJobId=7 HetJobOffset=0 JobName=x\n   JobState=RUNNING\n   Requeue=1 BatchFlag=1\n%s\n' "$(record_of 1 1 4 1)"
    printf 'JobId=8 HetJobId=7 HetJobOffset=1 JobName=x\n   JobState=RUNNING\n   Requeue=1 BatchFlag=1\n%s\n' "$(record_of 2 6 2 3)"
}
arrange; answers 2 0:12; heterogeneous >"$scratch/two"; during "scontrol-show *" 'cat "$scratch/two"; exit 0'; act SLURM_HET_SIZE=2 SLURM_NTASKS=1
check "all components of a heterogeneous job take part, each with its tasks and CPUs" called "srun --mpi=pmix --kill-on-bad-exit=1 --overlap\
 --het-group=0 --ntasks-per-node=1 --nodes=1 --ntasks=1 --cpus-per-task=4 $scratch/repository/build/finch evolve $scratch/repository/configs/mnist.yaml\
 : --mpi=pmix --kill-on-bad-exit=1 --overlap --het-group=1 --ntasks-per-node=3 --nodes=2 --ntasks=6 --cpus-per-task=2 $scratch/repository/build/finch"
arrange; answers 2 0:12; during "scontrol-show *" 'exit 1'; act SLURM_HET_SIZE=2
check "all of them take part if Slurm does not describe them" called "srun --mpi=pmix --kill-on-bad-exit=1 --overlap --het-group=0-1 --cpus-per-task=3"
arrange; answers 2 0:12; record_of 1 2 1 2 >"$scratch/record"; act SLURM_HET_SIZE=2
check "a job that a heterogeneous job has submitted is not heterogeneous" not_called --het-group

# --- The job's name and comment ---

arrange; answers 77:1; sed -i 's/the state/running: a b, 120 of 200 evaluations, 3 unfinished, best loss 0.031 (0.1.2)/' "$scratch"/answer-*
until_updated='for ((i = 0; i < 400; i++)); do [ "$(grep -c "scontrol update" "$scratch/calls")" -lt 2 ] || break; /bin/sleep 0.05; done'
during "srun 1" "$until_updated"; act SLURM_JOB_NAME=finch FINCH_COMMENT_SECONDS=1
check "the job is named after the run" called "scontrol update JobId=7 JobName=run"
check "its comment says how far it is" called "scontrol update JobId=7 Comment=120/200 best 0.031"
arrange; answers 77:1; during "scontrol-update *" 'exit 1'; during "srun 1" "${until_updated/ -lt 2/ -lt 1}; /bin/sleep 1.5"
act SLURM_JOB_NAME=finch FINCH_COMMENT_SECONDS=1
check "a site that does not allow it is asked once" times_called "scontrol update" 1
check "and it is said once" said "Slurm does not let this job change its JobName"
arrange; answers 2 0:12; echo "   Comment=project 7" >"$scratch/record"; during "srun 1" "/bin/sleep 1.5"; act SLURM_JOB_NAME=mine FINCH_COMMENT_SECONDS=1
check "a name and a comment that the user gave stay" not_called "scontrol update"

arrange; answers 2 0:12; during "squeue 2" "echo 'singleton(unfulfilled)'; exit 0"; during "srun 1" "/bin/sleep 1"
act SLURM_JOB_NAME=finch
check "the name stays if other jobs wait for the last of that name" not_called "scontrol update"

# --- The places of program and files ---

arrange; answers 2 0:12; mkdir -p "$scratch/repository/deep/er"; touch "$scratch/repository/deep/er/own.yaml"
act SLURM_SUBMIT_DIR="$scratch/repository/deep/er" own.yaml --set seed=2
check "a configuration counts from the folder that the job was submitted from" \
    called "evolve $scratch/repository/deep/er/own.yaml --set seed=2"
check "a job from any folder of the repository runs in its root" said "in $scratch/repository:"
check "status is asked with evolve's own options" called "finch status --progress $scratch/repository/deep/er/own.yaml --set seed=2"
act SLURM_SUBMIT_DIR="$scratch/bin"
check "a job from elsewhere runs there, with the repository's program" said "in $scratch/bin: $scratch/repository/build/finch"
arrange; answers 2 0:12; echo "   MinMemoryCPU=2G MinTmpDiskNode=0" >"$scratch/record"; act FOLDER="$scratch/bin"
check "a job with --chdir runs in that folder" said "in $scratch/bin:"
check "the ranks hear of the job's memory" called "--cpus-per-task=3 env SLURM_MEM_PER_CPU=2048 $scratch/repository/build/finch evolve"

arrange; answers 2 0:12; act FINCH="$scratch/bin/finch-elsewhere"
check "FINCH names the program" called "--cpus-per-task=3 $scratch/bin/finch-elsewhere evolve"
arrange; act FINCH="$scratch/none"
check "a FINCH that is not there fails the job" exits 2
check "a FINCH that is not there is named, and nothing else is started" said "Looked for: FINCH=$scratch/none. "

# The installed Finch, the checkout and a folder in PATH have one program each.
prefix=$scratch/prefix
installed=$prefix/share/finch/jobs/evolve.sbatch
mkdir -p "$prefix/bin" "$prefix/share/finch/configs" "$scratch/path" "$scratch/project" "$(dirname "$installed")"
cp "$source_dir/jobs/evolve.sbatch" "$installed"
cp "$source_dir/jobs/evolve.sbatch" "$scratch/project/my.sbatch"
touch "$prefix/share/finch/configs/sphere.yaml"
for copy in "$prefix/bin/finch" "$scratch/path/finch"; do cp "$scratch/repository/build/finch" "$copy"; done
submit() { echo "$1" >"$scratch/submitted-script"; act SLURM_SUBMIT_DIR="$2" PATH="$scratch/path:$scratch/bin:$PATH" "${@:3}"; }  # SCRIPT FOLDER …

arrange; answers 2 0:12; submit "$installed" "$scratch/project" configs/sphere.yaml
check "an installed script starts the program beside it, where it was submitted, with its configurations" \
    said "in $scratch/project: $prefix/bin/finch evolve $prefix/share/finch/configs/sphere.yaml"
ln -s "$prefix" "$scratch/current"
arrange; answers 2 0:12; submit "$scratch/current/share/finch/jobs/evolve.sbatch" "$scratch/project" configs/sphere.yaml
check "so does a link to it" said "in $scratch/project: $prefix/bin/finch evolve"
arrange; answers 2 0:12; submit "$installed" "$scratch/repository"
check "an installed script starts the program beside it from a checkout, too" said "in $scratch/repository: $prefix/bin/finch evolve"
arrange; answers 2 0:12; submit "$scratch/repository/jobs/evolve.sbatch" "$scratch/project"
check "a checkout's script starts the checkout's program, whatever the PATH has" \
    said "in $scratch/project: $scratch/repository/build/finch evolve"
arrange; answers 2 0:12; submit "$scratch/project/my.sbatch" "$scratch/project" /c.yaml
check "a copy of the script starts the PATH's program" said "in $scratch/project: $scratch/path/finch evolve /c.yaml"
arrange; answers 2 0:12; submit "$scratch/project/my.sbatch" "$scratch/repository"
check "a copy that is submitted from a checkout starts the checkout's" said "in $scratch/repository: $scratch/repository/build/finch"
mv "$prefix/bin/finch" "$prefix/bin/other"; mv "$scratch/repository/build/finch" "$scratch/repository/build/other"
arrange; submit "$installed" "$scratch/repository" PATH="$scratch/bin:/usr/bin:/bin"
check "without a program the job fails" exits 2
check "without a program all places are named" \
    said "Looked for: $prefix/bin/finch, $scratch/repository/build/finch, finch in the PATH. "
mv "$prefix/bin/other" "$prefix/bin/finch"; mv "$scratch/repository/build/other" "$scratch/repository/build/finch"

# Paths with characters that are special in a shell, in a regular expression or in Slurm's record of a job.
for name in 'my repo' $'tab\there' 'jörg (1) [a] *' 'a  b --run'; do
    odd=$scratch/$name
    mkdir -p "$odd/jobs" "$odd/build"
    cp "$source_dir/jobs/evolve.sbatch" "$odd/jobs/"; cp "$scratch/repository/build/finch" "$odd/build/"
    touch "$scratch/my"  # the first word of 'my repo' also exists as a file
    arrange; answers 2 0:12; submit "$odd/jobs/evolve.sbatch" "$scratch/project" /c.yaml --run "$odd/%s %a"
    check "a script in '$name' finds its program" said "in $scratch/project: $odd/build/finch evolve /c.yaml --run $odd/%s %a"
done

# A job script of the user that calls evolve.sbatch by its path.
for how in 'exec bash' bash sh source; do
    printf '#!/bin/bash\nset -e\ncd "$HOME"\n%s "$scratch/repository/jobs/evolve.sbatch" own.yaml --set seed=3\necho "after: $-"\n' "$how" \
        >"$scratch/project/job.sh"
    cp "$scratch/project/job.sh" "$scratch/own"; mkdir -p "$scratch/home"; touch "$scratch/home/own.yaml"
    arrange; answers 2 0:12; job_script=$scratch/own submit "$scratch/project/job.sh" "$scratch/bin" HOME="$scratch/home"
    check "$how in a job script: it runs where that script went, with the program beside it" \
        said "in $scratch/home: $scratch/repository/build/finch evolve $scratch/home/own.yaml --set seed=3"
    check "$how in a job script: it ends well" exits 0
    [ "$how" = "exec bash" ] || check "$how in a job script: what follows runs, with its own options" grep -q '^after: [^u]*e[^u]*$' "$scratch/output"
done
arrange; answers 2; echo 2 >"$scratch/srun-code"; job_script=$scratch/own submit "$scratch/project/job.sh" "$scratch/bin" HOME="$scratch/home"
check "a failure ends a job script of set -e" exits 2

# evolve.sbatch must keep the options, separators and traps of the user's job script, and must not start it again.
cat >"$scratch/own" <<'END'
set -euo pipefail -o posix
IFS=$'\n\t'
trap 'echo cleaned up' TERM
echo "begins with $1"
. "$scratch/repository/jobs/evolve.sbatch" "$scratch/repository/configs/mnist.yaml"
trap -p TERM
shopt -qo posix && echo "posix, with ${#IFS} separators"
END
arrange; answers 75:1 75:2; job_script=$scratch/own act a
check "a strict job script: its options and its separators are as before" said "posix, with 2 separators"
check "a strict job script: its traps are as before" said "trap -- 'echo cleaned up' "
check "a strict job script begins once" test "$(grep -c '^begins with a' "$scratch/output")" = 1
check "a strict job script: the state is read" said "the state"
arrange; answers 75:1:run/1 78:1:run/2; job_script=$scratch/own act
check "a strict job script: a search that gave up is not requeued" not_requeued
for posix in POSIXLY_CORRECT=1 SHELLOPTS=posix; do
    arrange; answers 2 0:12; act $posix
    check "$posix: a run goes its way" exits 0
done

# The script must ignore lines that loaders and wrappers print before the answer of the program.
sed -i '2a echo "ERROR: ld.so: object libmon.so from LD_PRELOAD cannot be preloaded: ignored." >\&2; echo "Loading finch/0.1"' \
    "$scratch/repository/build/finch"
arrange; answers 75:1 75:2 75:3; act
check "lines before the answer: a search that came further is requeued" requeued
check "lines before the answer: the starts stand in the run directory" grep -q 'progress 2 gain some' "$starts"
arrange; answers 75:1 0:12; echo 143 >"$scratch/srun-code"; act
check "lines before the answer: a complete run is complete" exits 0
arrange; answers 75:1 78:1; act
check "lines before the answer: a search that gave up is not requeued" not_requeued
make_stand_ins

# Without srun, one of several variables gives the number of ranks.
ranks_of() {  # RANKS NAME=VALUE…
    local expected=$1
    shift
    arrange; answers 2 0:12; act SLURM_JOB_ID= "$@"
    check "$* are $expected ranks" called "mpirun -n $expected --oversubscribe"
}
ranks_of 4
ranks_of 3 FINCH_RANKS=3
ranks_of 4 FINCH_RANKS=-3
ranks_of 2 SLURM_NTASKS_PER_NODE=2
ranks_of 6 SLURM_NTASKS_PER_NODE=2 SLURM_NNODES=3
ranks_of 7 'SLURM_TASKS_PER_NODE=2(x3),1'
ranks_of 5 SLURM_NTASKS=many SLURM_NPROCS=5
check "the variable that gives the number is named" said "mpirun starts 5 ranks (SLURM_NPROCS)"
arrange; answers 2 0:12; act SLURM_JOB_ID= SLURM_NTASKS=2 SLURM_JOB_NUM_NODES=2
check "it says that all ranks run here if nothing names the two nodes" said "on 2 node(s), all here: "
for name in OMPI PRTE; do  # of Open MPI 4.1 and 5
    check "mpirun starts no daemons with srun" grep -qE "^${name}_MCA_plm=(rsh|ssh)$" "$scratch/environment"
    check "mpirun reads no nodes from Slurm" grep -qxF "${name}_MCA_ras=^slurm" "$scratch/environment"
done

arrange; answers 2 0:12; act SLURM_JOB_ID= SLURM_NTASKS=6
check "without srun it is mpirun that starts the ranks" called "mpirun -n 6"
arrange; during "mpirun 1" 'kill -TERM $script; wait_for_stop'; act SLURM_JOB_ID=
check "a signal that reaches the job's shell goes on to mpirun" called "mpirun heard USR2"

finish
