#!/usr/bin/env bash
# Test library for jobs/evolve.sbatch without a cluster. Makes stand-ins for srun, mpirun, scontrol, squeue, sleep and
# finch that record their calls. The tests source this file with the repository as argument.
# shellcheck disable=SC2016,SC2317  # the stand-ins expand these variables; check calls the functions
set -uo pipefail
source_dir=${1:?the repository}
scratch=$(mktemp -d)
export scratch
trap 'rm -rf "$scratch"' EXIT
# shellcheck disable=SC2034  # the tests use it
starts=$scratch/run/state/slurm-7.starts
failures=0

# A stand-in records its call, then sources $scratch/events. A test writes to that file the commands that run during a
# call. `call`: kind and number of the call, for example "status 2". `script`: the process id of the job script.
make_stand_ins() {
    local name
    mkdir -p "$scratch/bin" "$scratch/repository/jobs" "$scratch/repository/configs" "$scratch/repository/build"
    cp "$source_dir/jobs/evolve.sbatch" "$scratch/repository/jobs/"
    cp "$source_dir/jobs/evolve.sbatch" "$scratch/slurm_script"  # Slurm runs a copy of the script
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
run_ranks() {  # its signal traps record USR2 and TERM
    trap 'echo "$kind heard USR2" >>"$scratch/calls"; stopped=yes' USR2
    trap 'echo "$kind heard TERM" >>"$scratch/calls"; exit 143' TERM
    called "$@"
}
signal_all() { kill "-$1" -- "-$script"; kill "-$1" 0; }  # NAME; Slurm signals all processes of a batch step
wait_for_stop() { for ((i = 0; i < 200; i++)); do [ -z "${stopped:-}" ] || return; /bin/sleep 0.05; done; }
END
    cat >"$scratch/bin/srun" <<'END'
env | sort >"$scratch/environment"
run_ranks srun "srun $* deadline=${FINCH_DEADLINE:-none}"
echo "the ranks have ended" >>"$scratch/calls"
exit "$(cat "$scratch/srun-code")"
END
    cat >"$scratch/bin/mpirun" <<'END'
env | sort >"$scratch/environment"
run_ranks mpirun "mpirun $*"
END
    cat >"$scratch/bin/scontrol" <<'END'
called "scontrol-$1" "scontrol $*"
if [ "$1" = show ]; then
    printf 'JobId=7 JobName=x\n   JobState=%s\n   Requeue=1 BatchFlag=1\n%s\n   Command=%s --run a=b\n   WorkDir=%s\n' "$(cat "$scratch/job-state")" \
        "$(cat "$scratch/record")" "$(cat "$scratch/submitted-script")" "${FOLDER:-$SLURM_SUBMIT_DIR}"
fi
END
    cat >"$scratch/bin/squeue" <<'END'
called squeue "squeue $* ${SQUEUE_STATES-}${SLURM_TIME_FORMAT-}"
cat "$scratch/end"
END
    cat >"$scratch/bin/sleep" <<'END'
called sleep "sleep $*"
END
    cat >"$scratch/repository/build/finch" <<'END'
[ "$1 $2" != "status --directory" ] || { echo "$scratch/run"; exit; }
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

# Resets the state for the next case: a job that has not started a run yet.
arrange() {
    rm -rf "$scratch/run"
    : >"$scratch/record"
    echo 2030-01-01T00:00:00 >"$scratch/end"
    echo 0 >"$scratch/srun-code"
    echo RUNNING >"$scratch/job-state"
    echo "$scratch/repository/jobs/evolve.sbatch" >"$scratch/submitted-script"
    : >"$scratch/events"
    answers 2
}

# Sets the answers of successive status calls: CODE[:PROGRESS[:START]]…. The last answer repeats. Without START, each
# answer has a different start.
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

# Runs COMMAND during each call with a kind and number that match the pattern CALL. An `exit` in COMMAND ends the call.
during() {  # CALL COMMAND
    printf '[[ "$call" != %s ]] || { %s; }\n' "${1// /\\ }" "$2" >>"$scratch/events"
}

# Runs the job script in a new process group.
act() {  # [NAME=VALUE…] [ARGUMENT…]
    local -a variables=()
    while [ $# -gt 0 ] && [[ $1 == [A-Z]*=* ]]; do variables+=("$1"); shift; done
    rm -f "$scratch"/count*
    : >"$scratch/calls"
    env -u FINCH -u SLURM_JOB_END_TIME -u SLURM_ARRAY_TASK_ID SLURM_JOB_ID=7 SLURM_SUBMIT_DIR="$scratch/repository" \
        SLURM_CPUS_PER_TASK=3 TZ=UTC PATH="$scratch/bin:$PATH" "${variables[@]}" \
        setsid --wait bash -c 'cd "$SLURM_SUBMIT_DIR"; echo $$ >"$scratch/pid"; exec bash "${job_script:-$scratch/slurm_script}" "$@"' job "$@" \
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
of_srun() { grep -qx -- "$1" "$scratch/environment"; }
not_of_srun() { ! grep -q "^$1=" "$scratch/environment"; }
said() { grep -qF -- "$1" "$scratch/output"; }

finish() {
    [ "$failures" = 0 ] && echo "all claims hold"
    exit "$((failures > 0))"
}

make_stand_ins
