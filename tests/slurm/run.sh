#!/usr/bin/env bash
# Runs one scenario of the job script on the test cluster (cluster.sh): run.sh SCENARIO DIR SOURCE_DIR FINCH
# DIR is the folder of the running cluster. Exit code 77: no cluster runs there.
set -euo pipefail
scenario=${1:?a scenario}
cluster=${2:?the folder of the cluster}
source_dir=${3:?the repository}
program=${4:?the finch program}
here=$source_dir/tests/slurm
work=$cluster/$scenario
run=$work/run
readonly budget=10

# Four ranks share two cores, so idle ranks yield. Slurm decides on which nodes and cores the ranks run: with a global
# :oversubscribe, mpirun of Open MPI 5 starts all ranks of a program on the first node.
. "$source_dir/tools/mpi_settings.sh"
export OMPI_MCA_mpi_yield_when_idle=1
unset "${!OMPI_MCA_rmaps_@}" "${!PRTE_MCA_rmaps_@}" "${!OMPI_MCA_hwloc_@}" "${!PRTE_MCA_hwloc_@}"

on_head() { bash "$here/cluster.sh" run "$cluster" "$@"; }

fail() {
    echo "FAILED: $*"
    tail -n 60 "$work/output" 2>/dev/null || true
    exit 1
}

# Makes a minimal repository in the folder that all nodes share.
prepare() {
    on_head true
    rm -rf "$work"
    mkdir -p "$work/jobs" "$work/build" "$work/configs"
    cp "$source_dir/jobs/evolve.sbatch" "$work/jobs/"
    cp "$here/tiny.yaml" "$here/program.yaml" "$here/program.py" "$work/configs/"
    cp "$program" "$work/build/finch"
    cp "$(dirname "$program")/finch-launcher" "$work/build/"
    cd "$work/configs"
}

# Submits the search from a subfolder of the repository and prints the id of the job. sbatch also reads SBATCH_…
# variables.
submit() {  # [OPTION…] of finch
    on_head sbatch --parsable --nodes=2 --ntasks-per-node="${tasks_per_node:-2}" --cpus-per-task=1 --mem-per-cpu=500M \
        --time=20 --output="$work/output" "${script:-$work/jobs/evolve.sbatch}" "${config:-tiny.yaml}" --run "$run" \
        --set search.budget.evaluations=$budget "$@"
}

job() { on_head scontrol show job --oneliner "$1" | grep -o " $2=[^ ]*" | cut -d= -f2; }  # ID FIELD

# Waits until COMMAND succeeds. Fails after 900 s, which is before the time limit of the test.
wait_until() {  # CLAIM COMMAND…
    local end=$((SECONDS + 900)) claim=$1
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "never: $claim"
        sleep 0.2
    done
}

# shellcheck disable=SC2053  # the state is a pattern
job_is() { [[ $(job "$1" JobState) == $2 ]]; }
# True if COUNT individuals have an outcome. Fails the scenario if the run is already complete.
has_results() {  # COUNT
    local line code=0
    line=$("$work/build/finch" status "$run" 2>&1) || code=$?
    [ "$code" != 0 ] || fail "the run was complete before it could be disturbed: $line"
    [[ $line =~ \ ([0-9]+)\ of\  ]] && [ "${BASH_REMATCH[1]}" -ge "$1" ]
}

# Uses the Python of the distribution: tools/install.sh installs h5py for it.
check() { /usr/bin/python3 "$here/check_run.py" "$@"; }

wait_for_end() { wait_until "the job ends" job_is "$1" '@(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)'; }  # JOB

wait_for_completion() {  # JOB
    wait_for_end "$1"
    job_is "$1" COMPLETED || fail "the job ended as $(job "$1" JobState)"
    on_head "$work/build/finch" status "$run" >/dev/null || fail "finch status: $?, want 0 (complete)"
}

# True if no slurmstepd of this job runs. The daemon of a step outlives its tasks by seconds and holds sockets that the
# next start needs.
no_step_of() {  # JOB: also ARRAY_TASK, which has a job id of its own
    local id
    id=$(on_head scontrol show job --oneliner "$1" | sed 's/^JobId=\([0-9]*\).*/\1/')
    ! on_head pgrep -f "^slurmstepd: \[$id\." >/dev/null
}

# Waits for the requeue, copies the archive of the stopped run, and lets the job start immediately: Slurm would wait two
# minutes.
# shellcheck disable=SC2053  # the code is a pattern
start_again() {  # JOB STATUS-CODES
    local code=0
    wait_until "the job is requeued" job_is "$1" PENDING
    [ "$(job "$1" Restarts)" = 1 ] || fail "the job has restarted $(job "$1" Restarts) times, want 1"
    on_head "$work/build/finch" status "$run" >/dev/null || code=$?
    [[ $code == $2 ]] || fail "finch status after the stop: $code, want $2"
    cp "$run/population.h5" "$work/stopped.h5"
    wait_until "the ended step has left the nodes" no_step_of "$1"
    sleep 1.1  # Slurm refuses a start in the same second in which the last start ended: "Job credential revoked"
    wait_until "the job may start" on_head scontrol update JobId="$1" StartTime=now
}

check_run() { check "$run/population.h5" --evaluations $budget "$@" || fail "the archive"; }

# Sends KILL to the rank with this SLURM_PROCID.
kill_rank() {  # RANK
    on_head bash -c '
        for process in $(pgrep -x finch || true); do
            if tr "\0" "\n" <"/proc/$process/environ" | grep -qx "SLURM_PROCID='"$1"'"; then kill -KILL "$process"; exit; fi
        done
        exit 1' || fail "rank $1 does not run"
}

# The job gets the name of the run, and at the end its comment shows the run's progress.
completes() {
    local id
    id=$(FINCH_COMMENT_SECONDS=1 submit)
    wait_for_completion "$id"
    check_run
    [ "$(job "$id" JobName)" = run ] || fail "the job is called $(job "$id" JobName)"
    on_head scontrol show job "$id" | grep -qE "^ *Comment=$budget/$budget best 0\.[0-9]+ *$" || fail "the comment"
}

has_all_ranks() { grep -q ': 4 ranks on 2 nodes' "$work/output" || fail "not 4 ranks on 2 nodes"; }

# A step of an array task submits a job. The job inherits the variables of the task, but the limits of the task must not
# apply.
a_job_within_a_job() {
    local outer id
    outer=$(on_head sbatch --parsable --array=5 --nodes=1 --ntasks=1 --mem=200M --distribution=cyclic --output="$work/outer" --wrap "
        srun sbatch --parsable --nodes=2 --ntasks-per-node=2 --cpus-per-task=1 --mem-per-cpu=500M --time=20 --export=ALL \
            --output='$work/output' '$work/jobs/evolve.sbatch' tiny.yaml --run '$run-%a' --set search.budget.evaluations=$budget >'$work/id'")
    wait_for_end "${outer}_5"
    id=$(cat "$work/id")
    run=$run-%a
    wait_for_completion "$id"
    check_run
    has_all_ranks
    grep -q "start 0 of job $id in $work:" "$work/output" || fail "it takes itself for another job"
}

# The job script runs in a shell that srun started in an allocation. The shell holds the CPUs of the allocation, and its
# environment has the variables of a step with one task.
a_shell_within_an_allocation() {
    on_head salloc --nodes=2 --ntasks-per-node=2 --cpus-per-task=1 --mem-per-cpu=500M --time=20 srun --nodes=1 --ntasks=1 \
        bash "$work/jobs/evolve.sbatch" tiny.yaml --run "$run" --set search.budget.evaluations=$budget >"$work/output" 2>&1 ||
        fail "the shell's exit code is not 0"
    check_run
    has_all_ranks
}

# All components of a heterogeneous job run ranks. Variables that the job script sets under --export=NONE reach the
# ranks.
a_heterogeneous_job() {
    printf '#!/bin/bash\nexport OMPI_MCA_mpi_yield_when_idle=1\n. "%s"\nexec bash "%s" "$@"\n' \
        "$source_dir/tools/mpi_settings.sh" "$work/jobs/evolve.sbatch" >"$work/my job.sh"
    on_head sbatch --wait --export=NONE --time=20 --output="$work/output" --ntasks=1 --cpus-per-task=2 --mem-per-cpu=400M : \
        --ntasks=3 --cpus-per-task=1 --mem-per-cpu=500M "$work/my job.sh" tiny.yaml --run "$run" --set search.budget.evaluations=$budget ||
        fail "the job"
    check_run
    has_all_ranks
}

# A job that gets USR2 during the search requeues itself, resumes automatically, and completes.
stops_and_resumes() {
    local id
    id=$(submit)
    wait_until "two evaluations are done" has_results 2
    on_head scancel --signal=USR2 "$id"
    start_again "$id" 75
    wait_for_completion "$id"
    check_run --earlier "$work/stopped.h5" --carried
}

has_reached() { [ "$(tail -n 1 "$run.trails/$2" 2>/dev/null)" = "$1" ]; }  # EPOCH INDIVIDUAL

# Programs on two ranks get the signal, save, and continue at their epoch after the requeue. No epoch is trained twice.
programs_stop_and_resume() {
    local id held trail
    export HELD_INDIVIDUALS="0.0.2 0.1.2"
    id=$(config=program.yaml submit)
    for held in $HELD_INDIVIDUALS; do
        wait_until "$held is at epoch 3" has_reached 3 "$held"
    done
    on_head scancel --signal=USR2 "$id"
    start_again "$id" 75
    wait_for_completion "$id"
    check_run --earlier "$work/stopped.h5" --carried
    for held in $HELD_INDIVIDUALS; do
        grep -q '^goes on after 3 as one of 2 on 1$' "$run.trails/$held" || fail "$held did not go on at its epoch"
    done
    for trail in "$run".trails/*; do
        [ "$(grep -E '^[0-9]' "$trail" | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 " ] || fail "$trail: $(cat "$trail")"
    done
}

# The ranks of a worker on both nodes connect over MASTER_ADDR and MASTER_PORT. Lightning, jax and ignite compute the
# right ranks and sizes from the program's environment.
programs_across_nodes() {
    local id
    id=$(config=program.yaml submit --set workers.ranks=4 --set workers.islands=1 --set search.budget.evaluations=3)
    wait_for_completion "$id"
    check "$run/population.h5" --evaluations 3 || fail "the archive"
    [ "$(cat "$run".trails/* | grep -c '^begins after 0 as one of 4 on 2$')" = 3 ] || fail "$(head "$run".trails/*)"
}

# The program of the leader starts an MPI program on both nodes of the worker: by mpirun, by srun, and in a job of its own.
a_leader_starts_an_mpi_program() {
    local id start
    cp "$(dirname "$program")/tests/finch_mpi_program" "$work/"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    cat >"$work/sbatch.sh" <<'END'
#!/bin/bash
sbatch --wait --nodes=2 --ntasks=4 --mem-per-cpu=100M --time=2 --output="$PWD/out" --wrap "srun --mpi=pmix $1" >&2
cat out
END
    for start in "mpirun --hostfile {hostfile} -n 4" "srun --overlap --mem=0 --mpi=pmix --nodelist={hosts} --nodes=2 --ntasks=4" \
        "bash $work/sbatch.sh"; do
        run=$work/run-${start%% *}
        id=$(config=program.yaml submit --set workers.ranks=4 --set workers.islands=1 --set search.budget.evaluations=2 \
            --set search.objective.launch=leader --set "search.objective.command=$start $work/finch_mpi_program")
        wait_for_completion "$id"
        check "$run/population.h5" --evaluations 2 || fail "the archive"
        [ "$(on_head "$work/build/finch" show "$run" --csv | grep -c ',4\.02,')" = 2 ] ||
            fail "${start%% *}: not 4 ranks on 2 nodes: $(on_head "$work/build/finch" show "$run" 0.0.1)"
    done
}

# Rank 1 needs 4 s longer than the others for its last snapshot, so the ranks end at different times.
one_rank_is_late() {
    export FINCH_TEST_SNAPSHOT_DELAY=1:4
    stops_and_resumes
}

# The leader of the second worker is killed during a training.
a_rank_is_killed() {
    local id
    id=$(submit)
    wait_until "three evaluations are done" has_results 3
    cp "$run/population.h5" "$work/running.h5"
    kill_rank 2
    start_again "$id" '7[56]'   # 76: killed; 75: stopped by the TERM that the other ranks got
    wait_for_completion "$id"
    check_run --earlier "$work/running.h5" --earlier "$work/stopped.h5"
}

# A job that its user cancels does not come back.
a_cancelled_job_stays_away() {
    local id
    id=$(submit)
    wait_until "an evaluation is done" has_results 1
    on_head scancel "$id"
    wait_until "the job is cancelled" job_is "$id" CANCELLED
    sleep 3
    job_is "$id" CANCELLED || fail "the job came back as $(job "$id" JobState)"
}

# If finch refuses a start, the job fails, even if the run is complete.
a_refused_start_fails() {
    local id
    id=$(submit)
    wait_for_completion "$id"
    id=$(submit --set "search.space.channels={int: [2, 7]}")
    wait_for_end "$id"
    job_is "$id" FAILED || fail "the job of a refused start ended as $(job "$id" JobState)"
    [ "$(job "$id" ExitCode)" = 2:0 ] || fail "its exit code is $(job "$id" ExitCode), want 2:0"
}

has_restarted() { [ "$(job "$1" Restarts)" = 1 ]; }

# In the first start, USR2 kills the ranks before they install their handlers and before a run exists. The job must be
# requeued.
a_signal_before_the_handlers() {
    local id
    cat >"$work/early" <<'END'
#!/bin/bash
[ "$1" != evolve ] || kill -USR2 $$
exec "$(dirname "$0")/build/finch" "$@"
END
    chmod +x "$work/early"
    id=$(FINCH=$work/early submit)
    wait_until "the job is requeued" has_restarted "$id"
    grep -q "exit code 140\|User defined signal 2" "$work/output" || fail "the ranks did not die of USR2"
    on_head scancel "$id"
}

# TERM that reaches only the batch script stops the ranks in order. No result is lost, and the requeued job resumes.
the_script_is_told_to_end() {
    local id
    id=$(submit)
    wait_until "two evaluations are done" has_results 2
    on_head scancel --batch --signal=TERM "$id"
    start_again "$id" 75
    wait_for_completion "$id"
    check_run --earlier "$work/stopped.h5" --carried
}

# The job stops while slurmctld is down; slurmctld restarts later. The job must still be requeued.
the_controller_is_away() {
    local id
    id=$(submit)
    wait_until "two evaluations are done" has_results 2
    on_head bash -c "kill \$(cat '$cluster/slurmctld.pid')"
    on_head pkill -USR2 -x finch
    wait_until "the script asks for the controller" on_head pgrep -f '^scontrol show job' >/dev/null
    on_head slurmctld
    start_again "$id" 75
    wait_for_completion "$id"
    check_run --earlier "$work/stopped.h5" --carried
}

# One of two tasks of an array is stopped and requeued. The other task continues undisturbed.
an_array_task_requeues_itself() {
    local array
    run=$work/run-%a
    array=$(SBATCH_ARRAY_INX=1-2 tasks_per_node=1 submit --set seed=%a --set workers.islands=1)
    for task in 1 2; do
        run=$work/run-$task
        wait_until "task $task has a result" has_results 1
    done
    on_head scancel --signal=USR2 "${array}_2"   # the last task has the job id of the array
    start_again "${array}_2" 75
    for task in 1 2; do
        run=$work/run-$task
        wait_for_completion "${array}_$task"
        check_run
        [ "$(job "${array}_$task" Restarts)" = $((task - 1)) ] || fail "restarts of task $task"
    done
}

# The job script of an installed Finch starts the program of the same installation, also after a requeue. A copy of the
# script starts the program in PATH.
an_installed_program() {
    local id prefix=$work/prefix project=$work/project
    cmake --install "$(dirname "$program")" --prefix "$prefix" >/dev/null
    mkdir "$project"
    mv "$work/configs/tiny.yaml" "$project/"
    cp "$prefix/share/finch/jobs/evolve.sbatch" "$project/copy.sbatch"
    rm -r "$work/jobs"
    cd "$project"
    id=$(script=$prefix/share/finch/jobs/evolve.sbatch submit)
    wait_until "two evaluations are done" has_results 2
    on_head scancel --signal=USR2 "$id"
    start_again "$id" 75
    wait_for_completion "$id"
    check_run --earlier "$work/stopped.h5" --carried
    [ "$(grep -c "start [01] of job $id in $project: $prefix/bin/finch evolve $project/tiny.yaml" "$work/output")" = 2 ] ||
        fail "not both starts were in $project and of $prefix/bin/finch"

    run=$work/run-of-copy
    id=$(script=$project/copy.sbatch PATH=$prefix/bin:$PATH submit)
    wait_for_completion "$id"
    check_run
    grep -q "start 0 of job $id in $project: $prefix/bin/finch evolve" "$work/output" || fail "the PATH's program was not started"

    id=$(script=$project/copy.sbatch submit)
    wait_for_end "$id"
    [ "$(job "$id" ExitCode)" = 2:0 ] || fail "without a program the job's exit code is $(job "$id" ExitCode), want 2:0"
    grep -q "there is no program. Looked for: $project/build/finch, finch in the PATH\." "$work/output" || fail "the places are not named"
}

# In the allocation of a job, `finch plan` names the nodes and the place of each rank, and starts no run.
plan_shows_the_allocation() {
    on_head sbatch --wait --nodes=2 --ntasks-per-node=2 --output="$work/output" --chdir="$work" \
        --wrap "build/finch plan configs/tiny.yaml" >/dev/null || fail "plan"
    grep -q 'n1' "$work/output" && grep -q 'n2' "$work/output" || fail "the nodes n1 and n2 are not named"
    [ "$(grep -cE '(^|[^0-9.])[0-3] +n[12]( |$)' "$work/output")" = 4 ] || fail "not one line for each of the 4 ranks"
    [ ! -e "$work/runs" ] || fail "plan began a run"
}

# Slurm accepts the sbatch line that `finch plan --measure` prints, and the search completes in one start.
a_measured_plan_is_submitted() {
    local line id
    on_head sbatch --wait --nodes=2 --ntasks-per-node=2 --output="$work/output" --chdir="$work" \
        --wrap "srun --mpi=pmix build/finch plan configs/tiny.yaml --measure --measure-seconds 2 --set workers.islands=1" >/dev/null ||
        fail "plan --measure"
    line=$(grep '^  sbatch ' "$work/output") || fail "no line to submit"
    [[ $line == *" --nodes=2 --ntasks-per-node=2 --cpus-per-task="*" jobs/evolve.sbatch configs/tiny.yaml --set workers.islands=1 --set workers.ranks="* ]] ||
        fail "it submits something else: $line"
    cd "$work"
    id=$(eval "on_head ${line/sbatch/sbatch --parsable --output=$work/output} --run $run")
    wait_for_completion "$id"
    [ "$(grep -c 'start [0-9]* of job' "$work/output")" = 1 ] || fail "not one start"
}

# Finch distinguishes two nodes with equal host names. The ranks of a worker on both nodes connect over an IP address.
nodes_of_one_name() {
    cd "$work"
    # shellcheck disable=SC2016  # the shell on the nodes expands it
    on_head srun --nodes=2 --ntasks-per-node=1 --mem-per-cpu=300M --mpi=pmix unshare --uts bash -c 'hostname box; exec "$@"' bash \
        build/finch evolve configs/program.yaml --run "$run" --set workers.islands=1 --set search.budget.evaluations=1 \
        >"$work/output" 2>&1 || fail "evolve on nodes of one name: $?"
    grep -q '2 ranks on 2 nodes' "$work/output" || fail "not two nodes"
    grep -q ' rank 1: n[12], worker 0' "$work/output" || fail "not told apart by Slurm's names"
    on_head build/finch show "$run" | grep -q 'outcomes: 1 evaluated' || fail "the ranks of a program did not meet"
    on_head build/finch show "$run" --json | grep -q '"job":"[0-9]*","cluster":"finch"' || fail "the start has no job and cluster"
    # shellcheck disable=SC2016
    on_head srun --nodes=2 --ntasks-per-node=1 --mem-per-cpu=300M --mpi=pmix unshare --uts bash -c 'hostname "$HOSTNAME.example"; exec "$@"' bash \
        build/finch evolve configs/program.yaml --run "$run.leader" --set workers.islands=1 --set search.budget.evaluations=1 --set search.objective.launch=leader \
        --set 'search.objective.command=sh -c "srun --overlap --mem=0 --nodelist={hosts} --nodes=2 --ntasks=2 hostname && echo finch loss=1"' \
        >"$work/output" 2>&1 || fail "a step on nodes whose host names have a domain: $(tail -n 5 "$work/output")"
}

# If MPI cannot start, finch prints one line with the right option, and MPI prints no messages. A single process of Open
# MPI 5 starts without PMIx.
a_step_without_pmix_is_refused() {
    local kind tasks code counts="1 2"
    [[ $(mpirun --version) != *"(Open MPI) 4"* ]] && counts=2
    for kind in none pmi2; do
        for tasks in $counts; do
            code=0
            on_head srun --ntasks=$tasks --mem-per-cpu=300M --mpi=$kind "$work/build/finch" evolve tiny.yaml --run "$run" \
                >"$work/output" 2>&1 || code=$?
            [ $code = 2 ] || fail "--mpi=$kind, $tasks tasks: exit code $code, want 2"
            [ "$(grep -c "^finch: srun started $tasks task.* --mpi=$kind, .*srun --mpi=pmix" "$work/output")" = 1 ] || fail "not one message"
            ! grep -q MPI_Init "$work/output" || fail "MPI was started"
        done
    done
    [ ! -e "$run" ] || fail "a run was begun"
}

prepare
"$scenario"
