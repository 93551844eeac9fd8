#!/usr/bin/env bash
# Tests the decisions of jobs/evolve.sbatch case by case, with stand-ins for Slurm. Usage: job_script.sh SOURCE_DIR
# shellcheck disable=SC2016  # the stand-ins expand these variables
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/stand_ins.sh" "$@"

# --- The end of a job depends on the state of its run directory ---

arrange; answers 2 0:12; act
check "a complete run ends the job with 0" exits 0
check "a complete run is not requeued" not_requeued
check "the run directory is asked once before the start and once after it" times_called "finch status" 2
check "configs/mnist.yaml is the default" called "evolve $scratch/repository/configs/mnist.yaml"
check "srun speaks PMIx, ends the ranks of a dead one, and hears of the CPUs" \
    called "srun --mpi=pmix --kill-on-bad-exit=1 --overlap --cpus-per-task=3 $scratch/repository/build/finch evolve"
check "the deadline comes from squeue where Slurm does not say it" called deadline=1893456000

arrange; answers 2 0:12; echo 137 >"$scratch/srun-code"; act
check "a run that this start has completed is complete, whatever srun said" exits 0

arrange; answers 2 0:12; act SLURM_JOB_END_TIME=4000000000
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
check "nothing is written where the job was submitted" test -z "$(find "$scratch/repository" -name '*.starts')"
check "each job's starts stand in the run directory" test -e "$scratch/run/state/slurm-8.starts" -a -e "$starts"

arrange; answers 75:100:old/3 75:2:new/1; act --fresh
check "after --fresh, progress counts from nothing" grep -q 'gain some' "$starts"

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

# --- The number of requeues ---

arrange; answers 75:3 75:9; mkdir -p "${starts%/*}"; printf 'requeue\n%.0s' {1..19} >"$starts"
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
arrange; answers 75:3 75:9; mkdir -p "$starts"; act SLURM_RESTART_COUNT=1
check "what cannot be counted is not requeued" not_requeued

# --- The answers of Slurm ---

arrange; answers 75:3 75:9; echo COMPLETING >"$scratch/job-state"; act
check "a job that its user cancelled does not come back" not_requeued
echo "   Reason=TimeLimit" >"$scratch/record"; act
check "a job that its time limit ended does" requeued

arrange; answers 75:3; echo COMPLETING >"$scratch/job-state"; act; act SLURM_RESTART_COUNT=1
echo RUNNING >"$scratch/job-state"; act SLURM_RESTART_COUNT=2
check "a start that was preempted is none without progress" requeued

arrange; answers 75:3; printf '   StartTime=2030-01-01T10:00:00\n   PreemptTime=2030-01-01T10:00:09\n' >"$scratch/record"
act; act SLURM_RESTART_COUNT=1; act SLURM_RESTART_COUNT=2 FINCH_REQUEUES=0
check "starts that were preempted with a grace time are requeued, whatever the limits" requeued
sed -i 's/T10:00:00/T10:00:10/' "$scratch/record"; act SLURM_RESTART_COUNT=3 FINCH_REQUEUES=0
check "an earlier start's preemption does not count" not_requeued

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

arrange; answers 2 0:12; near=$(($(date +%s) + 500)); date -ud "@$near" +%FT%T >"$scratch/end"; mkdir -p "${starts%/*}"
during "srun 1" "date -ud @$((near + 900)) +%FT%T >\"\$scratch/end\"; until [ -e \"\$FINCH_DEADLINE_FILE\" ]; do /bin/sleep 0.1; done
    cp \"\$FINCH_DEADLINE_FILE\" \"\$scratch/extended\""
act
check "the ranks hear of an extended time limit" [ "$(cat "$scratch/extended")" = $((near + 900)) ]
check "it is logged" said "the time limit was extended by 900 s"

for answer in '' N/A NONE Unknown 2001-01-01T00:00:00 'in 3 days' 9999999999; do
    arrange; answers 2 0:12; echo "$answer" >"$scratch/end"; act FINCH_DEADLINE=4000000000
    check "squeue's answer '$answer' is no deadline" called deadline=4000000000
    check "squeue's answer '$answer' is told" said "it says '$answer'"
done
arrange; answers 2 0:12; printf 'END_TIME\n2030-01-01T00:00:00\n2030-01-01T00:00:00\n' >"$scratch/end"; act
check "a heading, and a line for each component, are no harm" called deadline=1893456000
for value in 1000 tomorrow 99999999999999999999; do
    arrange; answers 2 0:12; echo N/A >"$scratch/end"; act FINCH_DEADLINE="$value"
    check "a deadline of $value is no deadline" called deadline=none
    check "a deadline of $value is named" said "FINCH_DEADLINE=$value is not a time in the future"
done
arrange; answers 2 0:12; act SLURM_JOB_END_TIME=1000
check "an end before the start is not Slurm's, so squeue is asked" called deadline=1893456000
arrange; answers 2 0:12; act SQUEUE_STATES=PENDING SLURM_TIME_FORMAT=relative
check "squeue is asked without what the user has set for listings" called "squeue --noheader --jobs=7 --format=%e "
check "squeue knows nothing of SQUEUE_STATES" not_called "%e PENDING"
arrange; answers 75:3; during "scontrol-show *" 'echo "JobState=RUNNING"; echo "   Requeue=1 BatchFlag=0"; exit 0'; act
check "an interactive job is not requeued" not_requeued
arrange; answers 75:3 75:9; during "scontrol-show *" 'printf "JobState=RUNNING\n   Requeue=1\n   Command=/x Requeue=0\n"; exit 0'; act
check "words of the command line are not Slurm's" requeued
arrange; answers 75:3 75:9; act FINCH_REQUEUES=many
check "a limit of requeues that is no number is the default" requeued

# --- Signals at different moments of the script ---

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

for signal in USR1 HUP INT; do
    arrange; answers 75:3.5 75:4; during "srun 1" "kill -$signal \$script; wait_for_stop"; act
    check "$signal reaches the program as USR2" called "srun heard USR2"
    check "$signal: the job is requeued" requeued
done
arrange; answers 75:3.5 75:4; during "srun 1" 'kill -HUP $script; kill -HUP 0; /bin/sleep 0.3'
trap '' HUP; act; trap - HUP
check "HUP that nohup ignores stays ignored" [ "$(grep -c heard "$scratch/calls")" = 0 ]

# --- Job arrays ---

arrange; answers 75:3 75:9; act SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3 --run runs/a-%a --set seed=%a
check "an array's task asks for itself" called "scontrol show job 7_3"
check "an array's task requeues itself" called "scontrol requeue 7_3"
check "an array's task has its own file of starts" test -e "$scratch/run/state/slurm-7_3.starts"
check "%a is the task's number" called "--run runs/a-3 --set seed=3"

finish
