#!/usr/bin/env bash
# What jobs/evolve.sbatch decides, case by case, without a cluster: srun, mpirun, scontrol, squeue, sleep and finch are
# stand-ins that are made here and note how they were called. Usage: job_script.sh SOURCE_DIR
# shellcheck disable=SC2016,SC2317  # stand-ins expand by themselves, claims are called by check
set -uo pipefail
source_dir=${1:?the repository}
scratch=$(mktemp -d)
export scratch
trap 'rm -rf "$scratch"' EXIT
failures=0

# A stand-in notes its call, then sources $scratch/events, where a case says what happens during which call: `call` is
# its kind and number, as "status 2", and `script` the job script's process.
make_stand_ins() {
    local name
    mkdir -p "$scratch/bin" "$scratch/repository/jobs" "$scratch/repository/configs" "$scratch/repository/build"
    cp "$source_dir/jobs/evolve.sbatch" "$scratch/repository/jobs/"
    cp "$source_dir/jobs/evolve.sbatch" "$scratch/slurm_script"  # as Slurm does
    touch "$scratch/repository/configs/mnist.yaml"
    cat >"$scratch/prelude" <<'END'
called() {  # KIND WORDS…
    kind=$1
    shift
    echo "$*" >>"$scratch/calls"
    echo >>"$scratch/count $kind"
    number=$(wc -l <"$scratch/count $kind") call="$kind $number" script=$(cat "$scratch/pid")
    . "$scratch/events"
}
run_ranks() {  # until events say otherwise
    trap 'echo "$kind heard USR2" >>"$scratch/calls"; stopped=yes' USR2
    trap 'echo "$kind heard TERM" >>"$scratch/calls"; exit 143' TERM
    called "$@"
}
signal_all() { kill "-$1" -- "-$script"; kill "-$1" 0; }  # NAME; as Slurm does with a batch step's processes
wait_for_stop() { for ((i = 0; i < 200; i++)); do [ -z "${stopped:-}" ] || return; /bin/sleep 0.05; done; }
END
    cat >"$scratch/bin/srun" <<'END'
run_ranks srun "srun $* deadline=${FINCH_DEADLINE:-none}"
echo "the ranks have ended" >>"$scratch/calls"
exit "$(cat "$scratch/srun-code")"
END
    cat >"$scratch/bin/mpirun" <<'END'
run_ranks mpirun "mpirun $*"
END
    cat >"$scratch/bin/scontrol" <<'END'
called "scontrol-$1" "scontrol $*"
if [ "$1" = show ]; then
    printf 'JobId=7\n   JobState=%s Requeue=1\n   Command=%s\n' "$(cat "$scratch/job-state")" \
        "$(cat "$scratch/submitted-script")"
fi
END
    cat >"$scratch/bin/squeue" <<'END'
called squeue "squeue $*"
echo 2030-01-01T00:00:00
END
    cat >"$scratch/bin/sleep" <<'END'
called sleep "sleep $*"
END
    cat >"$scratch/repository/build/finch" <<'END'
called "$1" "finch $*"
[ -e "$scratch/answer-$number" ] || number=last
. "$scratch/answer-$number"
END
    for name in "$scratch"/bin/* "$scratch/repository/build/finch"; do
        printf '#!/bin/bash\n. "$scratch/prelude"\n%s\n' "$(cat "$name")" >"$name.new"
        mv "$name.new" "$name"
        chmod +x "$name"
    done
    cp "$scratch/repository/build/finch" "$scratch/bin/finch-elsewhere"
}

# What the next run starts from: a job that has begun no run yet.
arrange() {
    rm -rf "$scratch"/repository/slurm-*
    echo 0 >"$scratch/srun-code"
    echo RUNNING >"$scratch/job-state"
    echo "$scratch/repository/jobs/evolve.sbatch" >"$scratch/submitted-script"
    : >"$scratch/events"
    answers 2
}

# CODE[:PROGRESS[:START]]…: of the successive status calls; the last repeats. By itself START is another each time.
answers() {
    local number=1 code progress start
    rm -f "$scratch"/answer-*
    while [ $# -gt 0 ]; do
        IFS=: read -r code progress start <<<"$1"
        printf 'echo "%s %s the state"; exit %s\n' "${progress:-0}" "${start:-run/$number}" "$code" |
            tee "$scratch/answer-$number" >"$scratch/answer-last"
        number=$((number + 1))
        shift
    done
}

# COMMAND happens during the calls whose kind and number fit the pattern CALL; an exit in it breaks the call off.
during() {  # CALL COMMAND
    printf '[[ "$call" != %s ]] || { %s; }\n' "${1// /\\ }" "$2" >>"$scratch/events"
}

# Runs the script in a process group of its own.
act() {  # [NAME=VALUE…] [ARGUMENT…]
    local -a variables=()
    while [ $# -gt 0 ] && [[ $1 == [A-Z]*=* ]]; do variables+=("$1"); shift; done
    rm -f "$scratch"/count*
    : >"$scratch/calls"
    env -u FINCH -u SLURM_JOB_END_TIME -u SLURM_ARRAY_TASK_ID SLURM_JOB_ID=7 SLURM_SUBMIT_DIR="$scratch/repository" \
        SLURM_CPUS_PER_TASK=3 TZ=UTC PATH="$scratch/bin:$PATH" "${variables[@]}" \
        setsid --wait bash -c 'echo $$ >"$scratch/pid"; exec bash "$scratch/slurm_script" "$@"' job "$@" \
        >"$scratch/output" 2>&1
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
not_requeued() { ! grep -q 'scontrol requeue' "$scratch/calls"; }
called() { grep -qF -- "$1" "$scratch/calls"; }
not_called() { ! called "$1"; }
times_called() { [ "$(grep -cF -- "$1" "$scratch/calls")" = "$2" ]; }
said() { grep -qF -- "$1" "$scratch/output"; }

make_stand_ins

# --- What becomes of a job, by what its run directory says ---

arrange; answers 2 0:12; act
check "a complete run ends the job with 0" exits 0
check "a complete run is not requeued" not_requeued
check "the run directory is asked once before the start and once after it" times_called "finch status" 2
check "configs/mnist.yaml is the default" called "evolve $scratch/repository/configs/mnist.yaml"
check "srun speaks PMIx, ends the ranks of a dead one, and hears of the CPUs" \
    called "srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=3 $scratch/repository/build/finch evolve"
check "the deadline comes from squeue where Slurm does not say it" called deadline=1893456000

arrange; answers 2 0:12; echo 137 >"$scratch/srun-code"; act
check "a run that this start has completed is complete, whatever srun said" exits 0

arrange; answers 2 0:12; act SLURM_JOB_END_TIME=1
check "Slurm's own end time is left alone" called deadline=none

arrange; answers 2 75:3.5; echo 143 >"$scratch/srun-code"; act
check "an unfinished run that came further is requeued, whatever srun said" requeued
check "a requeued job's script ends with 0" exits 0

arrange; answers 76:3.5 76:4; act SLURM_RESTART_COUNT=1
check "a run whose rank was killed is requeued" requeued

arrange; answers 75:3.5; act SLURM_RESTART_COUNT=1
check "one start without progress is requeued" requeued
act SLURM_RESTART_COUNT=2
check "the second start in a row without progress is not requeued" not_requeued
check "it says why" said "two starts in a row made no progress"
check "it exits with 75" exits 75
answers 75:3.5 75:4; act SLURM_RESTART_COUNT=3
check "progress ends the row" requeued
answers 75:4; act SLURM_RESTART_COUNT=4
check "the row starts anew after progress" requeued
act SLURM_JOB_ID=8
check "another job's starts do not count" called "scontrol requeue 8"

arrange; answers 75:100:old/3 75:2:new/1; act --fresh
check "after --fresh, progress counts from nothing" grep -q 'gain some' "$scratch/repository/slurm-7.starts"

arrange; answers 2; echo 2 >"$scratch/srun-code"; act
check "a wrong configuration ends the job with its code" exits 2
check "a wrong configuration is not requeued" not_requeued

arrange; answers 76:3 76:3; echo 2 >"$scratch/srun-code"; act
check "a resumed run that refuses a changed configuration is not requeued" not_requeued

arrange; answers 0:6:run/1; echo 2 >"$scratch/srun-code"; act
check "a start that is refused over a complete run fails" exits 2
check "a start that is refused over a complete run is not requeued" not_requeued

arrange; answers 0:6:run/1; echo 140 >"$scratch/srun-code"; act
check "a start that dies before it opens a complete run, whose budget may have grown, is requeued" requeued

arrange; answers 2; echo 140 >"$scratch/srun-code"; act
check "a first start that was killed before there was a run is requeued" requeued
act SLURM_RESTART_COUNT=1
check "but not twice in a row" not_requeued

arrange; answers 2 76:0:none; echo 137 >"$scratch/srun-code"; act
check "a first start that was killed before it had written anything is requeued" requeued

arrange; answers 2; echo 1 >"$scratch/srun-code"; act
check "a first start that fails before there is a run fails the job" exits 1
check "a first start that fails before there is a run is not requeued" not_requeued

arrange; answers 77:1; act
check "a run that another job holds is left alone" not_requeued
check "a run that another job holds fails the job" exits 77
arrange; answers 75:1 77:2 77:2 75:2; act
check "a lock that a dead process left is waited for" requeued
arrange; answers 75:1 1 75:2; act
check "a run directory that cannot be read for a moment is asked again" requeued

arrange; answers 2 78:8; echo 75 >"$scratch/srun-code"; act
check "a search that gave up without a result fails the job" exits 1
check "a search that gave up without a result is not requeued" not_requeued
check "it says so" said "the search has no result"
arrange; answers 78:8 78:16; echo 1 >"$scratch/srun-code"; act
check "so does a search that is complete without a result" exits 1
arrange; answers 78:8 0:20; act
check "a later start of it that gives results completes the job" exits 0
arrange; answers 78:8:run/1; echo 140 >"$scratch/srun-code"; act
check "a start that dies before it opens such a run is requeued" requeued
arrange; answers 78:8:run/1; echo 2 >"$scratch/srun-code"; act
check "a start that is refused over such a run fails" exits 2

# --- How often ---

arrange; answers 75:3 75:9; printf 'requeue\n%.0s' {1..19} >"$scratch/repository/slurm-7.starts"
act SLURM_RESTART_COUNT=400
check "preemptions, which Slurm counts as restarts, use up no requeues" requeued
act SLURM_RESTART_COUNT=401
check "twenty requeues are the most" not_requeued
arrange; answers 75:3 75:9
act FINCH_REQUEUES=2
act SLURM_RESTART_COUNT=1 FINCH_REQUEUES=2
check "FINCH_REQUEUES sets the most" requeued
act SLURM_RESTART_COUNT=2 FINCH_REQUEUES=2
check "no more than FINCH_REQUEUES" not_requeued
arrange; answers 75:3 75:9; mkdir "$scratch/repository/slurm-7.starts"; act SLURM_RESTART_COUNT=1
check "what cannot be counted is not requeued" not_requeued

# --- What Slurm says ---

arrange; answers 75:3 75:9; echo COMPLETING >"$scratch/job-state"; act
check "a job that its user cancelled does not come back" not_requeued
act SLURM_JOB_END_TIME=1
check "a job that its time limit ended does" requeued

arrange; answers 75:3; echo COMPLETING >"$scratch/job-state"; act; act SLURM_RESTART_COUNT=1
echo RUNNING >"$scratch/job-state"; act SLURM_RESTART_COUNT=2
check "a start that was preempted is none without progress" requeued

arrange; answers 75:3 75:9; during "scontrol-show @(2|3)" 'exit 1'; act
check "a slurmctld that does not answer is asked again" requeued
arrange; answers 75:3 75:9; during "scontrol-show @(2|3)" 'exit 0'; echo COMPLETING >"$scratch/job-state"; act
check "a slurmctld that says nothing is asked again" not_requeued
arrange; answers 75:3 75:9; during "scontrol-show *" 'exit 0'; act
check "a job of which Slurm says nothing was not cancelled" requeued
arrange; answers 75:3 75:9; during "scontrol-requeue @(1|2|3)" 'exit 1'; act
check "a requeue that fails is tried again" times_called "scontrol requeue 7" 4
check "with longer and longer pauses" called "sleep 4"
check "a requeue that succeeds at last ends the script with 0" exits 0
arrange; answers 75:3 75:9; during "scontrol-requeue *" 'exit 1'; act
check "a requeue that always fails ends the job with 75" exits 75
check "a requeue that always fails is told of" said "scontrol could not requeue it"
arrange; answers 75:3 75:9; during "scontrol-show *" 'echo "JobState=RUNNING Requeue=0"; exit 0'; act
check "a job of --no-requeue is not requeued" not_requeued
check "a job of --no-requeue says so" said "--no-requeue"
arrange; answers 2 0:12; during "squeue 1" 'exit 1'; act
check "the deadline is asked for again" called deadline=1893456000

# --- Signals at any moment of the script's life ---

for signal in USR2 TERM; do
    for call in "scontrol-show 1" "squeue 1" "status 1"; do
        arrange; answers 75:3.5; during "$call" "kill -$signal \$script"; act
        check "$signal during $call: the program is not started" not_called srun
        check "$signal during $call: the job is requeued" requeued
    done
    arrange; answers 75:3.5 75:4; during "srun 1" "kill -$signal \$script; wait_for_stop; /bin/sleep 0.3"
    act
    check "$signal while the program runs reaches it as USR2" called "srun heard USR2"
    check "srun, told TERM, would kill the ranks" not_called "srun heard TERM"
    check "$signal while the program runs: its end is waited for" \
        [ "$(grep -A 1 "the ranks have ended" "$scratch/calls" | grep -c "finch status")" = 1 ]
    check "$signal while the program runs: the job is requeued" requeued
    for call in "status 2" "scontrol-show 2" "scontrol-requeue 1"; do
        arrange; answers 75:3.5 75:4; during "$call" "signal_all $signal"; act
        check "$signal to all during $call: the job is requeued" requeued
        check "$signal to all during $call: the script ends with 0" exits 0
    done
done
arrange; answers 75:3.5 75:4; during "scontrol-show 2" 'echo COMPLETING >"$scratch/job-state"; signal_all TERM'
act
check "a job that is cancelled while the script asks about it does not come back" not_requeued
arrange; answers 75:3.5 75:4; during "srun 1" 'kill -USR2 $script; wait_for_stop; kill -USR2 $script'; echo 9 >"$scratch/srun-code"
act
check "a second USR2 is no harm" requeued

# --- Job arrays ---

arrange; answers 75:3 75:9; act SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3 --run runs/a-%a --set seed=%a
check "an array's task asks for itself" called "scontrol show job 7_3"
check "an array's task requeues itself" called "scontrol requeue 7_3"
check "an array's task has its own file of starts" test -e "$scratch/repository/slurm-7_3.starts"
check "%a is the task's number" called "--run runs/a-3 --set seed=3"

# --- Where things are ---

arrange; answers 2 0:12; mkdir -p "$scratch/repository/deep/er"; touch "$scratch/repository/deep/er/own.yaml"
act SLURM_SUBMIT_DIR="$scratch/repository/deep/er" own.yaml --set seed=2
check "a configuration counts from the folder that the job was submitted from" \
    called "evolve $scratch/repository/deep/er/own.yaml --set seed=2"
check "a job from any folder of the repository runs in its root" said "in $scratch/repository:"
check "status is asked with evolve's own options" called "finch status --progress $scratch/repository/deep/er/own.yaml --set seed=2"
act SLURM_SUBMIT_DIR="$scratch/bin"
check "a job from elsewhere runs there, with the repository's program" said "in $scratch/bin: $scratch/repository/build/finch"

arrange; answers 2 0:12; act FINCH="$scratch/bin/finch-elsewhere"
check "FINCH names the program" called "--cpus-per-task=3 $scratch/bin/finch-elsewhere evolve"
arrange; act FINCH="$scratch/none"
check "a FINCH that is not there fails the job" exits 2
check "a FINCH that is not there is named, and nothing else is started" said "Looked for: FINCH=$scratch/none. "

# Of an installed Finch, a checkout and the PATH, each has a program of its own.
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

arrange; answers 2 0:12; act SLURM_JOB_ID= SLURM_NTASKS=6
check "without srun it is mpirun that starts the ranks" called "mpirun -n 6"
arrange; during "mpirun 1" 'kill -TERM $script; wait_for_stop'; act SLURM_JOB_ID=
check "a signal that reaches the job's shell goes on to mpirun" called "mpirun heard USR2"

[ "$failures" = 0 ] && echo "all claims hold"
exit "$((failures > 0))"
