#!/usr/bin/env bash
# What jobs/evolve.sbatch decides, case by case, without a cluster: srun, scontrol, squeue and finch are stand-ins that
# are made here and note how they were called. Usage: job_script.sh SOURCE_DIR
set -uo pipefail
source_dir=${1:?the repository}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# Each stand-in writes its arguments to $scratch/calls. `finch status` answers with $scratch/answer-N at its N-th call.
make_stand_ins() {
    mkdir -p "$scratch/bin" "$scratch/repository/jobs" "$scratch/repository/configs" "$scratch/repository/build"
    cp "$source_dir/jobs/evolve.sbatch" "$scratch/repository/jobs/"
    touch "$scratch/repository/configs/mnist.yaml"
    cat >"$scratch/bin/srun" <<END
#!/bin/bash
echo "srun \$* deadline=\${FINCH_DEADLINE:-none}" >>"$scratch/calls"
exit \$(cat "$scratch/srun-code")
END
    cat >"$scratch/bin/mpirun" <<END
#!/bin/bash
trap 'echo "mpirun heard USR2" >>"$scratch/calls"; exit 1' USR2
echo "mpirun \$*" >>"$scratch/calls"
if [ -e "$scratch/slow" ]; then for ((i = 0; i < 50; i++)); do sleep 0.1; done; fi
END
    cat >"$scratch/bin/scontrol" <<END
#!/bin/bash
if [ "\$1" = show ]; then printf 'JobId=7\n   JobState=%s\n   Command=%s\n' "\$(cat "$scratch/job-state")" \
    "$scratch/repository/jobs/evolve.sbatch"; else echo "scontrol \$*" >>"$scratch/calls"; fi
END
    cat >"$scratch/bin/squeue" <<END
#!/bin/bash
echo 2030-01-01T00:00:00
END
    cat >"$scratch/repository/build/finch" <<END
#!/bin/bash
echo "finch \$*" >>"$scratch/calls"
number=\$(grep '^finch status' "$scratch/calls" | grep -vc -- --progress)
[ -e "$scratch/answer-\$number" ] || number=last
. "$scratch/answer-\$number"
END
    chmod +x "$scratch"/bin/* "$scratch/repository/build/finch"
    cp "$scratch/repository/build/finch" "$scratch/bin/finch-elsewhere"
}

# What the next run starts from: a job that has begun no run yet.
arrange() {
    rm -rf "$scratch"/answer-* "$scratch/calls" "$scratch"/repository/slurm-*
    touch "$scratch/calls"
    echo 0 >"$scratch/srun-code"
    echo RUNNING >"$scratch/job-state"
    answers 2
}

answers() {  # CODE [PROGRESS] [CODE PROGRESS]…: of the successive status calls; the last repeats
    local number=1
    while [ $# -gt 0 ]; do
        printf 'if [ "$2" = --progress ]; then echo %s; else echo state; fi; exit %s\n' "${2:-0}" "$1" | tee "$scratch/answer-$number" >"$scratch/answer-last"
        number=$((number + 1))
        shift "$(($# > 1 ? 2 : 1))"
    done
}

act() {  # [NAME=VALUE…] [ARGUMENT…]
    local -a variables=()
    while [ $# -gt 0 ] && [[ $1 == [A-Z]*=* ]]; do variables+=("$1"); shift; done
    : >"$scratch/calls"
    env -u FINCH -u SLURM_JOB_END_TIME SLURM_JOB_ID=7 SLURM_SUBMIT_DIR="$scratch/repository" FINCH_STATUS_SECONDS=0 \
        SLURM_CPUS_PER_TASK=3 TZ=UTC PATH="$scratch/bin:$PATH" "${variables[@]}" \
        bash "$scratch/repository/jobs/evolve.sbatch" "$@" >"$scratch/output" 2>&1
    code=$?
}

check() {  # CLAIM COMMAND…
    local claim=$1
    shift
    "$@" && return
    failures=$((failures + 1))
    echo "FAILED: $claim"
    sed 's/^/    /' "$scratch/calls" "$scratch/output"
}
exits() { [ "$code" = "$1" ]; }
requeued() { grep -qx 'scontrol requeue 7' "$scratch/calls"; }
not_requeued() { ! requeued; }
called() { grep -qF -- "$1" "$scratch/calls"; }
said() { grep -qF -- "$1" "$scratch/output"; }

make_stand_ins

arrange; answers 2 0 0 12; act
check "a complete run ends the job with 0" exits 0
check "a complete run is not requeued" not_requeued
check "configs/mnist.yaml is the default" called "evolve $scratch/repository/configs/mnist.yaml"
check "srun speaks PMIx, ends the ranks of a dead one, and hears of the CPUs" \
    called "srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=3 $scratch/repository/build/finch evolve"
check "the deadline comes from squeue where Slurm does not say it" called deadline=1893456000

arrange; answers 2 0 0 12; act SLURM_JOB_END_TIME=1
check "Slurm's own end time is left alone" called deadline=none

arrange; answers 2 0 75 3.5; echo 143 >"$scratch/srun-code"; act
check "an unfinished run that came further is requeued, whatever srun said" requeued
check "a requeued job's script ends with 0" exits 0

arrange; answers 76 3.5 76 4; act SLURM_RESTART_COUNT=1
check "a run whose rank was killed is requeued" requeued

arrange; answers 75 3.5 75 3.5; act SLURM_RESTART_COUNT=1
check "one start without progress is requeued" requeued
answers 75 3.5 75 3.5; act SLURM_RESTART_COUNT=2
check "the second start in a row without progress is not requeued" not_requeued
check "it says why" said "two starts in a row made no progress"
check "it exits with 75" exits 75
answers 75 3.5 75 4; act SLURM_RESTART_COUNT=3
check "progress ends the row" requeued
answers 75 4 75 4; act SLURM_RESTART_COUNT=4
check "the row starts anew after progress" requeued
answers 75 4 75 4; act SLURM_RESTART_COUNT=0 SLURM_JOB_ID=8
check "another job's starts do not count" called "scontrol requeue 8"

arrange; answers 75 3 75 9; act SLURM_RESTART_COUNT=20
check "twenty requeues are the most" not_requeued
act SLURM_RESTART_COUNT=2 FINCH_REQUEUES=2
check "FINCH_REQUEUES sets the most" not_requeued

arrange; answers 75 3 75 9; echo COMPLETING >"$scratch/job-state"; act
check "a job that its user cancelled does not come back" not_requeued
act SLURM_JOB_END_TIME=1
check "a job that its time limit ended does" requeued

arrange; answers 2; echo 2 >"$scratch/srun-code"; act
check "a wrong configuration ends the job with its code" exits 2
check "a wrong configuration is not requeued" not_requeued

arrange; answers 76 3 76 3; echo 2 >"$scratch/srun-code"; act
check "a resumed run that refuses a changed configuration is not requeued" not_requeued

arrange; answers 77 1 77 1; act
check "a run that another job holds is left alone" not_requeued
arrange; answers 75 1 77 2 77 2 75 2; act
check "a lock that a dead process left is waited for" requeued

arrange; answers 2 0 0 12; mkdir -p "$scratch/repository/deep/er"; touch "$scratch/repository/deep/er/own.yaml"
act SLURM_SUBMIT_DIR="$scratch/repository/deep/er" own.yaml --set seed=2
check "a configuration counts from the folder that the job was submitted from" \
    called "evolve $scratch/repository/deep/er/own.yaml --set seed=2"
check "a job from any folder of the repository runs in its root" said "in $scratch/repository:"
check "status is asked with evolve's own options" called "finch status $scratch/repository/deep/er/own.yaml --set seed=2"
act SLURM_SUBMIT_DIR="$scratch/bin"
check "a job from elsewhere runs there, with the repository's program" said "in $scratch/bin: $scratch/repository/build/finch"

arrange; answers 2 0 0 12; act FINCH="$scratch/bin/finch-elsewhere"
check "FINCH names the program" called "--cpus-per-task=3 $scratch/bin/finch-elsewhere evolve"

arrange; answers 2 0 0 12; act SLURM_JOB_ID= SLURM_NTASKS=6
check "without srun it is mpirun that starts the ranks" called "mpirun -n 6"
touch "$scratch/slow"
act SLURM_JOB_ID= & sleep 0.4
kill -USR2 "$(pgrep -f "bash $scratch/repository/jobs/evolve.sbatch" | head -n 1)"
wait
check "a signal that reaches the job's shell goes on to mpirun" called "mpirun heard USR2"

[ "$failures" = 0 ] && echo "all claims hold"
exit "$((failures > 0))"
