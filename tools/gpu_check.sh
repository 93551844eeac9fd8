#!/usr/bin/env bash
# Tests, checks with compute-sanitizer and measures Finch on a machine with a GPU, in under 10 minutes, and writes one report.
#
#   tools/gpu_check.sh [BUILD_FOLDER] [REPORT]      (build, gpu_check.txt)
#
# BUILD_FOLDER is a build with CUDA, or what tools/gpu_pack.sh made of one: a bare machine will do (bash and the CUDA libraries; mpirun,
# python3 with PyTorch, compute-sanitizer and nsys are used where they are). Every check is OK, FAILED or SKIPPED (why); none ends the
# script; a table of them ends the report. Exit code: 0 where nothing failed.
#   FINCH_CHECK_DEVICE=cpu    tries the script itself without a GPU
#   FINCH_CHECK_SECONDS=570   for everything; what no longer fits is skipped
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$here/bin/finch" ] && default_build=$here || default_build=$here/../build
build=$(cd "${1:-$default_build}" && pwd) || exit 2
report=$(realpath -m "${2:-gpu_check.txt}")
device=${FINCH_CHECK_DEVICE:-cuda}
budget=${FINCH_CHECK_SECONDS:-570}
[ -f "$build/environment.sh" ] && . "$build/environment.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none HDF5_USE_FILE_LOCKING=FALSE
work=$(mktemp -d "${TMPDIR:-/tmp}/finch-gpu.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0 passed=0 skipped=0 table=()

say() { printf '%s\n' "$*" | tee -a "$report"; }
left() { echo $((budget - SECONDS)); }
program() { # NAME: where it is in a build or in a pack
    local folder
    for folder in "$build" "$build/tests" "$build/bin"; do
        [ -x "$folder/$1" ] && { echo "$folder/$1"; return 0; }
    done
    return 1
}
finch=$(program finch) || { echo "gpu_check.sh: $build has no program finch" >&2; exit 2; }

# check TITLE SECONDS FUNCTION [ARGUMENTS]: runs it under its own limit. It prints what it found; it returns 0, 77 (skipped) or other.
check() {
    begin_check "$@"
    end_checks
}
# The same, several at once: begin_check for each, then end_checks.
started=()
begin_check() {
    local title=$1 limit=$2 cut=no output
    shift 2
    if [ "$(left)" -lt 10 ]; then
        skipped=$((skipped + 1)); table+=("SKIPPED  $title: no time left"); say "SKIPPED  $title: no time left"; return
    fi
    [ "$limit" -gt "$(left)" ] && { limit=$(left); cut=yes; }
    output=$work/output.${#started[@]}
    "$@" >"$output" 2>&1 &
    started+=("$!|$limit|$cut|$SECONDS|$title")
}
end_checks() {
    local number=0 one
    for one in "${started[@]}"; do end_check "$one" "$work/output.$number"; number=$((number + 1)); done
    started=()
}
end_check() { # STARTED OUTPUT
    local child limit cut begin title code=0 verdict
    IFS='|' read -r child limit cut begin title <<<"$1"
    limit=$((limit - (SECONDS - begin)))
    wait_for "$child" "$((limit > 0 ? limit : 0))" || code=$?
    case $code$cut in 124yes) echo "cut off: no time left" >>"$2"; code=77 ;; esac
    case $code in
        0) verdict=OK; passed=$((passed + 1)) ;;
        77) verdict=SKIPPED; skipped=$((skipped + 1)) ;;
        124) verdict="FAILED (not done after $((SECONDS - begin)) s)"; failed=$((failed + 1)) ;;
        *) verdict="FAILED (exit code $code)"; failed=$((failed + 1)) ;;
    esac
    table+=("$verdict  $title  [$((SECONDS - begin)) s]")
    say "$verdict  $title  [$((SECONDS - begin)) s]"
    if [ $code = 0 ] || [ $code = 77 ]; then
        tail -n "${lines:-12}" "$2" | sed 's/^/    /' | tee -a "$report"
    else
        tail -n 40 "$2" | sed 's/^/    | /' | tee -a "$report"
    fi
}

# Waits for a child; ends it and all that it started after SECONDS, with code 124.
wait_for() { # PID SECONDS
    local end=$((SECONDS + $2))
    while kill -0 "$1" 2>/dev/null; do
        if [ $SECONDS -ge $end ]; then
            end_tree "$1"; wait "$1" 2>/dev/null
            return 124
        fi
        sleep 0.1
    done
    wait "$1"
}
end_tree() { # PID: its descendants first
    local child
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do end_tree "$child"; done
    kill -KILL "$1" 2>/dev/null
}

# ---- what the runs share -------------------------------------------------------------------------------------------------------------

cat >"$work/tiny.yaml" <<YAML
name: tiny
seed: 3
data: {kind: generated, samples: 1200, size: 12, validation_samples: 203, normalize: {mean: 0.13, deviation: 0.31}}
model:
  - conv: {channels: 6, kernel: 3, padding: same, activation: \$activation, repeat: \$layers}
  - max_pool: {kernel: 2}
  - flatten
  - linear: {units: classes}
training: {epochs: 3, batch_size: 16, optimizer: adadelta, learning_rate: 0.5, deterministic: true}
search:
  space:
    layers: {int: [1, 4]}
    activation: {choice: [relu, sigmoid, tanh]}
  propagator: {genetic: {population: 4}}
  budget: {evaluations: 8}
workers: {device: $device, timeout_seconds: 30}
checkpoint: {training_seconds: 0.5}
YAML
calm=(--set "training.optimizer={sgd: {momentum: 0}}" --set training.learning_rate=0.001)
long=(--set data.samples=${FINCH_CHECK_SAMPLES:-24000} --set training.epochs=${FINCH_CHECK_EPOCHS:-40} --gene layers=3 --gene activation=tanh)

# RANKS: sets `command`; without mpirun one rank goes by itself.
wrapper=()
command_for() {
    if command -v mpirun >/dev/null; then
        command=(mpirun -n "$1" "${wrapper[@]}" "$finch")
    elif [ "$1" = 1 ]; then
        command=("$finch")
    else
        echo "no mpirun here"; return 77
    fi
}
launch() { # RANKS ARGUMENTS: finch
    command_for "$1" || return
    shift
    (cd "$work" && exec "${command[@]}" "$@")
}
run() { # NAME RANKS ARGUMENTS: a search that must end well; its figures
    local name=$1 ranks=$2
    shift 2
    launch "$ranks" evolve tiny.yaml --run "$name" "$@" >"$work/$name.log" 2>&1 || { local code=$?; tail -n 25 "$work/$name.log"; return $code; }
}
# Id, outcome, loss, accuracy and epochs of each individual; numbers read back to the same bits.
figures() {
    "$finch" show "$work/$1" --csv | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at["id"], $at["outcome"], $at["loss"], $at["accuracy"], $at["epochs"] }' | sort
}
same_bits() { # ONE OTHER
    local one other
    one=$(figures "$1") && other=$(figures "$2") && [ -n "$one" ] || { echo "no figures of $1 or $2"; return 1; }
    [ "$one" = "$other" ] || { diff <(echo "$one") <(echo "$other"); return 1; }
    echo "$(wc -l <<<"$one") individuals, equal to the last bit"
}
close() { # ONE OTHER TOLERANCE: the losses
    paste -d' ' <(figures "$1") <(figures "$2") | awk -v allowed="$3" '
        { d = $3 - $8; if (d < 0) d = -d; if (!(d <= allowed)) bad = 1; if ($1 != $6 || $2 != $7) bad = 1; if (d > most) most = d }
        END { printf "%d individuals, losses apart by %.2e at most (allowed %s)\n", NR, most, allowed; exit bad || NR == 0 }'
}

# ---- the checks ------------------------------------------------------------------------------------------------------------------------

doctor() { "$finch" doctor; }
gpu_test() { # PROGRAM RANKS PATH: doctest; --no-skip takes the long ones too
    export FINCH_TEST_PATH=$3
    if [ "$2" = 1 ]; then "$1" --no-skip; return; fi
    command -v mpirun >/dev/null || { echo "no mpirun here"; return 77; }
    mpirun -n "$2" "$1"
}
# Every test program on every path (own kernels, the libraries), as many at once as the processor has fours of cores: most of their
# time is the float64 reference's.
all_gpu_tests() {
    local name ranks paths kernels path at_once=$(( ($(nproc) + 3) / 4 ))
    [ -s "$build/gpu_tests.txt" ] || { skipped=$((skipped + 1)); table+=("SKIPPED  tests: no gpu_tests.txt"); say "SKIPPED  tests: no $build/gpu_tests.txt"; return; }
    while read -r name ranks paths; do
        path=$(program "$name") || { skipped=$((skipped + 1)); table+=("SKIPPED  $name: not built"); say "SKIPPED  $name: not in $build"; continue; }
        for kernels in $paths; do
            begin_check "$name ($kernels)" 150 gpu_test "$path" "$ranks" "$kernels"
            [ ${#started[@]} -lt "$at_once" ] || lines=8 end_checks
        done
    done <"$build/gpu_tests.txt"
    lines=8 end_checks
}
repeatable() {
    run first 1 && run second 1 && same_bits first second || return
    local id
    id=$(figures first | awk 'NR == 1 { print $1 }')
    launch 1 replay first "$id" | tail -n 3
}
like_the_cpu() {
    run calm 1 "${calm[@]}" && run calm-cpu 1 "${calm[@]}" --set workers.device=cpu && close calm calm-cpu 1e-4
}
# Two epochs at rates that do not amplify: within what rounding the products' inputs changes.
precisions() {
    local precision
    for precision in tf32 bfloat16; do
        run "calm-$precision" 1 "${calm[@]}" --set "training.precision=$precision" || return
    done
    close calm calm-tf32 5e-3 && close calm calm-bfloat16 3e-2
}
# With so large a first generation no genes depend on what ended before them.
slots() {
    local independent=(--set "search.propagator={genetic: {population: 100}}")
    run slots-one 1 "${independent[@]}" && run slots-four 1 "${independent[@]}" --set workers.slots=4 && same_bits slots-one slots-four
}
two_ranks() { # NAME COMMUNICATOR: two ranks on one device beside one rank of the same global batch
    run "$1" 2 "${calm[@]}" --set workers.ranks=2 --set workers.share_device=true --set "workers.communicator=$2" || return
    grep -i -m 3 communicator "$work/$1.log"
    close calm "$1" 1e-4
}
staged() { if [ "$device" = cpu ]; then two_ranks staged auto; else two_ranks staged staged; fi; }
nccl_of_one() {
    [ "$device" = cuda ] || { echo "NCCL needs a GPU"; return 77; }
    run nccl-one 1 "${calm[@]}" --set workers.communicator=nccl || return
    same_bits calm nccl-one || return
    echo "With one rank NCCL launches nothing for a sum in place: this shows the fork, the join and the communicator, not NCCL's kernels."
    grep -i -m 3 nccl "$work/nccl-one.log" || { echo "the program took no communicator for one rank"; return 77; }
}
nccl_of_two() {
    [ "$device" = cuda ] || { echo "NCCL needs a GPU"; return 77; }
    command -v mpirun >/dev/null || { echo "no mpirun here"; return 77; }
    export NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo
    wrapper=(bash -c 'NCCL_HOSTID=check-$OMPI_COMM_WORLD_RANK exec "$@"' -)
    two_ranks nccl-two nccl && close staged nccl-two 1e-4 || return
    ! grep -m 1 "cannot be recorded" "$work/nccl-two.log" || { echo "the sums were not captured"; return 1; }
}
# Trains one individual and sends USR2 after SECONDS of training. Prints nothing; returns finch's code, 75 when it was stopped.
interrupted() { # NAME SECONDS ARGUMENTS
    local name=$1 seconds=$2 ticks=0 pid
    shift 2
    command_for 1
    (cd "$work" && exec "${command[@]}" train tiny.yaml --run "$name" "${long[@]}" "$@") >>"$work/$name.log" 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null && [ ! -s "$work/$name/state/worker-00000.journal" ] && [ $ticks -lt 300 ]; do
        sleep 0.1; ticks=$((ticks + 1))
    done
    sleep "$seconds"
    kill -USR2 $pid 2>/dev/null
    wait $pid
}
resumed() {
    launch 1 train tiny.yaml --run straight "${long[@]}" >"$work/straight.log" 2>&1 || { tail "$work/straight.log"; return 1; }
    local stops=0 code
    while :; do
        interrupted broken "1.$stops"; code=$?
        [ $code = 75 ] || break
        stops=$((stops + 1))
        [ $stops -lt 3 ] || { launch 1 train tiny.yaml --run broken "${long[@]}" >>"$work/broken.log" 2>&1; code=$?; break; }
    done
    [ $code = 0 ] || { tail "$work/broken.log"; return $code; }
    [ $stops -gt 0 ] || { echo "the training ended before USR2 reached it"; return 77; }
    echo "stopped $stops times"
    same_bits straight broken
}
across_devices() {
    launch 1 train tiny.yaml --run calm-straight "${long[@]}" "${calm[@]}" >"$work/calm-straight.log" 2>&1 || { tail "$work/calm-straight.log"; return 1; }
    interrupted cross 1 "${calm[@]}" --set workers.device=cpu; local there=$?
    interrupted cross 0.7 "${calm[@]}"; local back=$?
    [ $there != 0 ] || { echo "the training ended on the CPU before USR2 reached it"; return 77; }
    [ $there = 75 ] || { tail -n 5 "$work/cross.log"; echo "the part on the CPU ended with $there"; return 1; }
    if [ $back = 75 ]; then
        launch 1 train tiny.yaml --run cross "${long[@]}" "${calm[@]}" --set workers.device=cpu >>"$work/cross.log" 2>&1 || { tail "$work/cross.log"; return 1; }
        echo "CPU, $device, CPU"
    else
        echo "CPU, $device (ended there: $back)"
    fi
    close calm-straight cross 1e-4
}
# A network larger than any device, and a rate at which losses overflow, among others that are well.
survives() {
    local units=4
    [ "$device" = cuda ] && units=250000
    cat >"$work/hard.yaml" <<YAML
name: hard
data: {kind: generated, samples: 1200, size: 12, validation_samples: 200}
model:
  - conv: {channels: 4, kernel: 3, repeat: 2}
  - flatten
  - linear: {units: \$units, repeat: 2}
  - linear: {units: classes}
training: {epochs: 2, batch_size: 16, optimizer: {sgd: {momentum: 0.9}}, learning_rate: \$lr}
search:
  space:
    units: {choice: [16, $units]}
    lr: {choice: [0.01, 1000]}
  propagator: {genetic: {population: 4}}
  budget: {evaluations: 16}
workers: {device: $device}
YAML
    launch 1 evolve hard.yaml --run hard >"$work/hard.log" 2>&1 || { tail "$work/hard.log"; return 1; }
    local ends
    ends=$(figures hard | awk '{ print $2 }' | sort | uniq -c | tr -s ' \n' ' ')
    echo "$ends"
    [[ $ends == *evaluated* && $ends == *diverged* ]] && { [ "$device" = cpu ] || [[ $ends == *out_of_memory* ]]; }
}
sanitizer() { # TOOL SECONDS COMMAND
    local tool=$1 found
    found=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || { echo "no compute-sanitizer here"; return 77; }
    shift
    "$found" --tool "$tool" --error-exitcode 9 --print-limit 5 "$@"
}
sanitized_test() { # TOOL PROGRAM [ARGUMENTS]
    local tool=$1 path
    path=$(program "$2") || { echo "no $2 in $build"; return 77; }
    shift 2
    sanitizer "$tool" "$path" "$@"
}
sanitized_training() {
    (cd "$work" && sanitizer "$1" "$finch" train tiny.yaml --run "sanitized-$1" --gene layers=2 --gene activation=relu \
        --set data.samples=400 --set data.validation_samples=100 --set training.epochs=1)
}
python_with_torch() { # or any
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import torch' 2>/dev/null && { echo "$python"; return 0; }
    done
    command -v python3
}
speed() { # SECONDS
    local bench script python
    bench=$(program bench_step) || { echo "no bench_step (ninja bench_step)"; return 77; }
    python=$(python_with_torch)
    for script in "$here/bench/gpu_step.py" "$build/gpu_step.py"; do
        [ -f "$script" ] && [ -n "$python" ] && { "$python" "$script" --program "$bench" --device "$device" --budget "$1" --turns 5; return; }
    done
    echo "no python3: Finch alone, seconds per step of L = 6, B = 8, one and 32 at once"
    printf '6 8 2000\n6 8 2000 32\n' | "$bench" --device "$device"
}
profile() {
    local bench found
    bench=$(program bench_step) || { echo "no bench_step"; return 77; }
    found=$(command -v nsys || ls /opt/nvidia/nsight-systems/*/bin/nsys /usr/local/cuda/bin/nsys 2>/dev/null | head -n 1) && [ -n "$found" ] || { echo "no nsys here"; return 77; }
    echo '6 8 2000' | "$found" profile --output "$work/profile" --cuda-graph-trace=node "$bench" --device cuda >/dev/null || return
    "$found" stats --report cuda_gpu_kern_sum --format table "$work/profile.nsys-rep" | cut -c 1-150 | head -n 25
}

# ---- in order of importance --------------------------------------------------------------------------------------------------------------

: >"$report" || exit 2
say "Finch on a GPU, $(date -u '+%Y-%m-%d %H:%M UTC'), $(uname -n), $(nproc) CPU cores, device: $device"
say "$(command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,compute_cap,clocks.max.sm --format=csv 2>&1 || echo 'no nvidia-smi')"
lines=60 check "finch doctor" 60 doctor
all_gpu_tests
check "a search, twice and replayed: the same bits" 60 repeatable
check "the device's losses are the CPU's" 60 like_the_cpu
check "tf32 and bfloat16: losses near float32's" 60 precisions
check "two ranks on one device, staged, are one rank" 60 staged
check "NCCL of one rank: fork and join in the recorded step" 40 nccl_of_one
check "two ranks on one device by NCCL, captured, are one rank, and staged" 90 nccl_of_two
check "USR2 in mid-epoch: resumed to the same bits" 90 resumed
check "a training goes from the CPU to the device and back" 90 across_devices
check "four slots: the bits of one" 60 slots
check "too large and diverging individuals hurt no other" 60 survives
share=$(( $(left) * 40 / 100 ))
lines=80 check "speed" $((share + 25)) speed "$share"
# The three tools beside each other: on small shapes the processor is what they wait for.
for part in "test_direct_convolution_gpu -tc=one*sixteen*,images*of*one*row*,a*kernel*of*5*" "test_own_operations_gpu" "test_step_kernels_gpu" \
    "test_layout_gpu" "test_operations_gpu -tc=convolution*padding*,linear*odd*,pooling*"; do
    for tool in memcheck racecheck synccheck; do
        # shellcheck disable=SC2086 # a program and its arguments
        begin_check "compute-sanitizer $tool: ${part%% *}" $(( ($(left) + 60) / 4 )) sanitized_test $tool $part
    done
    lines=4 end_checks
done
for tool in memcheck racecheck synccheck; do begin_check "compute-sanitizer $tool: a short training" $(( ($(left) + 30) / 2 )) sanitized_training $tool; done
lines=4 end_checks
lines=30 check "profile of L = 6, B = 8" 45 profile
say ""
for line in "${table[@]}"; do say "| $line"; done
say "$passed OK, $failed FAILED, $skipped SKIPPED in $SECONDS s; the report is $report"
[ $failed = 0 ]
