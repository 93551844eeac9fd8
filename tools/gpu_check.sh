#!/usr/bin/env bash
# Tests Finch on a machine with a GPU, measures its speed and checks it with compute-sanitizer, in less than 9 minutes.
#
#   tools/gpu_check.sh [BUILD_FOLDER] [OUT]      (build, gpu_check)
#
# BUILD_FOLDER is a build with CUDA, or a pack that tools/gpu_pack.sh made from a build. The machine needs only bash and
# the CUDA libraries. mpirun, python3 with PyTorch, compute-sanitizer and nsys are used if they are installed. The
# checks run in order of importance, each with its own time limit. If a check fails, crashes or hangs, the other checks
# still run. At its end the script prints a table. The folder OUT gets these files:
#   table.txt     the table: a row for each check, with OK, FAILED (why) or SKIPPED (why), and below "speed" a row for
#                 each measurement, with steps per second, the peer, and the ratio as median [least … most]
#   summary.txt   a line for each check. The script rewrites this file and the table when a check begins or ends, so
#                 they exist even if the script is killed
#   report.txt    the results of the checks, in the order in which the checks end
#   output.txt    the complete output of the checks
# Exit code: 0 no check failed · 1 a check failed · 2 wrong arguments · 77 there is no GPU, so no check ran · 124 a signal
# ended the script. Environment variables:
#   FINCH_CHECK_ONLY=REGEX    runs only the doctor and the checks with a matching title, for example to repeat a check
#   FINCH_CHECK_SECONDS=530   the time limit of the script; checks that do not fit into it are skipped
#   FINCH_CHECK_LIMIT=N       no check may take longer than N seconds
#   FINCH_CHECK_SMALL=yes     small sizes, for the CUDA emulation of tests/cuda/rehearse_gpu_check.sh, which is slow
#   FINCH_CHECK_DEVICE=cpu    tests this script without a GPU
#   FINCH_MNIST=DIR           also compares precisions on MNIST
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$here/bin/finch" ] && default_build=$here || default_build=$here/../build
build=$(cd "${1:-$default_build}" && pwd) || exit 2
out=${2:-gpu_check}
mkdir -p "$out" && out=$(cd "$out" && pwd) && : >"$out/report.txt" && : >"$out/output.txt" || exit 2
device=${FINCH_CHECK_DEVICE:-cuda}
budget=${FINCH_CHECK_SECONDS:-530}
only=${FINCH_CHECK_ONLY:-}
small=${FINCH_CHECK_SMALL:-}
libraries_of_the_machine=${LD_LIBRARY_PATH:-}
[ -d "$here/tests/nn/fixtures" ] && FINCH_SOURCE_DIR=$here || FINCH_SOURCE_DIR=$(cd "$here/.." && pwd)
export FINCH_SOURCE_DIR  # the tests find their reference files in it
[ -f "$build/environment.sh" ] && . "$build/environment.sh" 2>>"$out/report.txt"
. "$here/mpi_settings.sh"
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp HDF5_USE_FILE_LOCKING=FALSE PYTHONUNBUFFERED=1
work=$(mktemp -d "${TMPDIR:-/tmp}/finch-gpu.XXXXXX") || exit 2

say() { printf '%s\n' "$*" | tee -a "$out/report.txt"; }
reserved=0  # seconds that are kept for later checks
left() { echo $((budget - reserved - SECONDS)); }
program() { # NAME: prints the path of a program in a build or in a pack
    local folder
    for folder in "$build" "$build/tests" "$build/bin"; do
        [ -x "$folder/$1" ] && { echo "$folder/$1"; return 0; }
    done
    return 1
}
finch=$(program finch) || { echo "gpu_check.sh: $build has no program finch" >&2; exit 2; }

# ---- running checks ------------------------------------------------------------------------------------------------------------------

titles=() verdicts=() begun=() limits=() shortened=()  # one entry per check
declare -A running=()                                  # the process of each running check
failed=0 passed=0 skipped=0
nothing_runs=  # the reason to skip all further checks

write_summary() { # [HOW IT ENDED]
    local number
    {
        echo "$heading"
        for number in "${!titles[@]}"; do echo "${verdicts[number]}  ${titles[number]}"; done
        echo "$passed OK, $failed FAILED, $skipped SKIPPED, ${#running[@]} RUNNING after $SECONDS s${1:+; $1}"
    } >"$out/summary.new" && mv "$out/summary.new" "$out/summary.txt"
    write_table >"$out/table.new" && mv "$out/table.new" "$out/table.txt"
}
# Prints a row "name | result | peer | ratio" for each check, and below "speed" the rows that it has printed so far.
write_table() {
    local number
    head -n 1 "$out/summary.txt"
    {
        echo "name | result | peer: steps/s | ratio"
        for number in "${!titles[@]}"; do
            echo "${titles[number]} | ${verdicts[number]} |  | "
            [ "${titles[number]}" != speed ] || grep -E '^[^|]+( \| [^|]*){3}$' "$work/output.$number" 2>/dev/null
        done
    } | awk -F ' [|] ' '
        function width(text) { return length(text) - extra * gsub(/…/, "&", text) }  # some awks count bytes
        function padded(text, n) { n -= width(text); return n > 0 ? text sprintf("%" n "s", "") : text }
        BEGIN { extra = length("…") - 1 }
        {
            for (i = 1; i <= 4; i++) cell[NR, i] = $i
            for (i = 1; i <= 3; i++) if ((i == 1 || $3 != "") && width($i) > most[i]) most[i] = width($i)
        }
        END {
            for (row = 1; row <= NR; row++) {
                line = padded(cell[row, 1], most[1]) " | " padded(cell[row, 2], most[2]) " | " padded(cell[row, 3], most[3]) " | " cell[row, 4]
                sub(/[ |]+$/, "", line)
                print line
            }
        }'
    tail -n 1 "$out/summary.txt"
}
# check TITLE SECONDS FUNCTION [ARGUMENTS]: runs a check and waits for it. FUNCTION prints its results. The last lines
# of its output go into the report. FUNCTION returns 0 (OK), 77 (skipped; its last line is the reason) or another code
# (failed).
check() {
    begin "$@"
    finish 0
}
# Starts a check without waiting for it, so several checks can run concurrently. It has the arguments of `check`.
begin() {
    local title=$1 limit=$2 number=${#titles[@]} why=$nothing_runs
    shift 2
    [[ $number = 0 || $title =~ $only ]] || return 0
    [ "$(left)" -ge 10 ] || why=${why:-no time left}
    titles+=("$title") begun+=("$SECONDS") verdicts+=(RUNNING) shortened+=("")
    if [ -n "$why" ]; then end_check "$number" 77 "$why"; return 0; fi
    [ -z "$small" ] || limit=$((limit * 20))
    [ "$limit" -le "${FINCH_CHECK_LIMIT:-$limit}" ] || limit=$FINCH_CHECK_LIMIT
    [ "$limit" -le "$(left)" ] || { limit=$(left); shortened[number]=yes; }
    limits[number]=$limit
    set -m  # starts the check in its own process group
    "$@" >"$work/output.$number" 2>&1 </dev/null &
    running[$number]=$!
    set +m
    write_summary
}
finish() { # MOST: waits until at most MOST checks run
    local number code
    while [ ${#running[@]} -gt "$1" ]; do
        for number in "${!running[@]}"; do
            code=0
            if ! kill -0 "${running[$number]}" 2>/dev/null; then
                wait "${running[$number]}" 2>/dev/null || code=$?
            elif [ $((SECONDS - begun[number])) -ge "${limits[number]}" ]; then
                end_group "${running[$number]}"
                code=124
            else
                continue
            fi
            unset "running[$number]"
            end_check "$number" $code
        done
        [ ${#running[@]} -le "$1" ] || sleep 0.1
    done
}
# Sends TERM before KILL. On TERM, mpirun ends its ranks, which are in their own process groups.
end_group() { # PROCESS
    local turns=0
    kill -TERM -- "-$1" 2>/dev/null
    while kill -0 -- "-$1" 2>/dev/null && [ $((turns += 1)) -le 40 ]; do sleep 0.1; done
    kill -KILL -- "-$1" 2>/dev/null
}
# Prints the reason that a test printed after "skipped:", or the last line of its output.
why_skipped() { sed -n 's/^skipped: //p; $p' "$1" | head -n 1 | cut -c 1-200; }
end_check() { # NUMBER CODE [WHY SKIPPED]
    local seconds=$((SECONDS - begun[$1])) file=$work/output.$1 verdict shown=${lines:-12} why=${3:-}
    [ "$2${shortened[$1]}" != 124yes ] || { set -- "$1" 77; why="cut off after $seconds s: no time left"; }
    [ -f "$file" ] || : >"$file"
    case $2 in
        0) verdict=OK; passed=$((passed + 1)) ;;
        77) verdict="SKIPPED (${why:-$(why_skipped "$file")})"; skipped=$((skipped + 1)) ;;
        124) verdict="FAILED (not done after $seconds s)" ;;
        *) [ "$2" -gt 128 ] && verdict="FAILED (signal $(kill -l "$2"))" || verdict="FAILED (exit code $2)" ;;
    esac
    case $verdict in FAILED*) failed=$((failed + 1)); shown=40 ;; esac
    verdicts[$1]=$verdict
    say "$verdict  ${titles[$1]}  [$seconds s]"
    [ -n "${3:-}" ] || tail -n "$shown" "$file" | cut -c 1-300 | sed 's/^/    /' | tee -a "$out/report.txt"
    { echo "==== ${titles[$1]}: $verdict [$seconds s]"; tail -c 1000000 "$file"; } >>"$out/output.txt"
    write_summary
}
ended_from_outside() {
    local number processes=("${running[@]}")
    trap '' TERM INT HUP
    for number in "${!running[@]}"; do
        verdicts[$number]="CUT OFF after $((SECONDS - begun[number])) s"
        { echo "==== ${titles[number]}: ${verdicts[number]}"; tail -c 1000000 "$work/output.$number"; } >>"$out/output.txt"
    done
    running=()
    write_summary "${#processes[@]} cut off, ended from outside"
    for number in "${processes[@]}"; do end_group "$number"; done
    exit 124
}
trap 'rm -rf "$work"' EXIT
trap ended_from_outside TERM INT HUP

# ---- what the runs share -------------------------------------------------------------------------------------------------------------

samples=1200 validation=203 epochs=3 long_samples=24000 long_epochs=40 wide=32
[ -z "$small" ] || samples=200 validation=43 epochs=2 long_samples=800 long_epochs=8 wide=17
cat >"$work/tiny.yaml" <<YAML
name: tiny
seed: 3
data: {kind: generated, samples: $samples, size: 12, validation_samples: $validation, normalize: {mean: 0.13, deviation: 0.31}}
model:
  - conv: {channels: 6, kernel: 3, padding: same, activation: \$activation, repeat: \$layers}
  - max_pool: {kernel: 2}
  - flatten
  - linear: {units: classes}
training: {epochs: $epochs, batch_size: 16, optimizer: adadelta, learning_rate: 0.5, deterministic: true}
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
long=(--set "data.samples=$long_samples" --set "training.epochs=$long_epochs" --gene layers=3 --gene activation=tanh)

# RANKS: sets `command`. One rank runs without mpirun, so most checks do not need mpirun.
wrapper=()
command_for() {
    command=("$finch")
    [ "$1" != 1 ] || return 0
    command -v mpirun >/dev/null || { echo "no mpirun here"; return 77; }
    command=(mpirun -n "$1" "${wrapper[@]}" "$finch")
}
launch() { # RANKS ARGUMENTS: runs finch
    command_for "$1" || return
    shift
    (cd "$work" && exec "${command[@]}" "$@")
}
run() { # NAME RANKS ARGUMENTS: runs a search, which must succeed
    local name=$1 ranks=$2
    shift 2
    launch "$ranks" evolve tiny.yaml --run "$name" "$@" >"$work/$name.log" 2>&1 || { local code=$?; tail -n 25 "$work/$name.log"; return $code; }
}
# Prints id, outcome, loss, accuracy and epochs of each individual. The printed numbers are exact.
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
close() { # ONE OTHER TOLERANCE: compares the losses
    paste -d' ' <(figures "$1") <(figures "$2") | awk -v allowed="$3" '
        { d = $3 - $8; if (d < 0) d = -d; if (!(d <= allowed)) bad = 1; if ($1 != $6 || $2 != $7) bad = 1; if (d > most) most = d }
        END { printf "%d individuals, losses apart by %.2e at most (allowed %s)\n", NR, most, allowed; exit bad || NR == 0 }'
}

# ---- the checks ------------------------------------------------------------------------------------------------------------------------

# Prints the message of CUDA if CUDA finds no device.
problem_with_cuda() { sed -n 's/^  devices  *none: *//p' "$1"; }
gpus_of_the_machine() { compgen -G '/dev/nvidia[0-9]*' | paste -sd ' '; }
doctor() {
    local problem code=0
    "$finch" doctor >"$work/doctor" 2>&1 || code=$?
    cat "$work/doctor"
    problem=$(problem_with_cuda "$work/doctor")
    [ "$device" = cuda ] && [ -n "$problem" ] || return $code
    echo "no GPU: $problem"
    # If the machine has a GPU that CUDA does not find, the check fails. If the machine has no GPU, all checks are
    # skipped.
    [ -n "$(gpus_of_the_machine)" ] || return 77
    echo "but the machine has $(gpus_of_the_machine)"
    return 1
}
check_doctor() {
    lines=60 check "finch doctor" 60 doctor
    local problem
    problem=$(problem_with_cuda "$work/doctor" 2>/dev/null)
    # If the doctor fails only because of a warning, the other checks still run.
    if [ "$device" = cuda ] && [ -n "$problem" ]; then
        nothing_runs="no GPU: $problem"
    elif [[ ${verdicts[0]} = FAILED* ]] && ! grep -q '^libraries' "$work/doctor" 2>/dev/null; then
        nothing_runs="finch does not run, see the doctor"
    fi
}
gpu_test() { # PROGRAM SOURCE RANKS PATH: runs doctest; --no-skip includes the long tests
    local command=("$1" --no-colors "--source-file=*$2")
    export FINCH_TEST_PATH=$4
    if [ "$3" != 1 ]; then
        command -v mpirun >/dev/null || { echo "no mpirun here"; return 77; }
        command=(mpirun -n "$3" "${command[@]}")
    elif [ -z "$small" ]; then
        command+=(--no-skip)
    fi
    "${command[@]}"
}
# Runs every test with Finch's kernels and with the libraries. Several tests run concurrently, since they spend most of
# their time in the float64 reference on the CPU. Tests with several ranks run alone, since their kernels wait for each
# other.
all_gpu_tests() {
    local name program source ranks paths kernels path at_once=$(( ($(nproc) + 1) / 2 ))
    [ "$at_once" -le 8 ] || at_once=8
    [ -s "$build/gpu_tests.txt" ] || { check "tests: no $build/gpu_tests.txt" 10 false; return; }
    while read -r name program source ranks paths; do
        path=$(program "$program") || { check "$name" 10 not_built "$program"; continue; }
        [ "$ranks" = 1 ] || lines=8 finish 0
        for kernels in $paths; do
            begin "$name ($kernels)" 150 gpu_test "$path" "$source" "$ranks" "$kernels"
            lines=8 finish $((at_once - 1))
        done
    done <"$build/gpu_tests.txt"
    lines=8 finish 0
}
not_built() { echo "$1 is not in $build"; return 77; }
# Runs the search with which the other searches are compared.
calm() { [ -f "$work/calm/done" ] || { run calm 1 "${calm[@]}" && : >"$work/calm/done"; }; }
repeatable() {
    run first 1 && run second 1 && same_bits first second || return
    local id
    id=$(figures first | awk 'NR == 1 { print $1 }')
    launch 1 replay first "$id" | tail -n 3
}
like_the_cpu() {
    calm && run calm-cpu 1 "${calm[@]}" --set workers.device=cpu && close calm calm-cpu 1e-4
}
# Compares the losses in tf32, bfloat16 and float16 with float32. The learning rate does not amplify differences, so the
# tolerances only allow for the rounding of the inputs of products.
precisions() {
    local precision
    [ "$device" = cuda ] || { echo "the CPU computes in float32 only"; return 77; }
    calm || return
    for precision in tf32 bfloat16 float16; do
        run "calm-$precision" 1 "${calm[@]}" --set "training.precision=$precision" || return
    done
    close calm calm-tf32 5e-3 && close calm calm-bfloat16 3e-2 && close calm calm-float16 5e-3
}
# As `precisions`, with more channels, so that cuDNN computes instead of Finch's kernels. Also trains in float16 twice.
wide_precisions() {
    local precision of=(--set "model.0.conv.channels=$wide" --set search.budget.evaluations=3)
    [ "$device" = cuda ] || { echo "the CPU computes in float32 only"; return 77; }
    for precision in float32 tf32 bfloat16 float16; do
        run "wide-$precision" 1 "${calm[@]}" "${of[@]}" --set "training.precision=$precision" || return
    done
    run wide-again 1 "${calm[@]}" "${of[@]}" --set training.precision=float16 || return
    same_bits wide-float16 wide-again && close wide-float32 wide-tf32 5e-3 && close wide-float32 wide-bfloat16 3e-2 && close wide-float32 wide-float16 5e-3 || return
    grep -h "of its steps, whose gradients" "$work/wide-float16.log" || echo "float16 skipped no step"
}
# Trains on all of MNIST with three seeds. Compares the mean validation accuracy, and prints the seconds. The standard
# error of a mean is about 0.1 points.
mnist() {
    local precision seed
    [ -n "${FINCH_MNIST:-}" ] && [ -f "$FINCH_MNIST/train-images-idx3-ubyte.gz" ] || { echo "FINCH_MNIST names no folder with MNIST"; return 77; }
    [ "$device" = cuda ] || { echo "the CPU computes in float32 only"; return 77; }
    cat >"$work/mnist.yaml" <<YAML
name: mnist
data: {kind: idx, path: "$FINCH_MNIST", validation_samples: 10000, normalize: {mean: 0.1307, deviation: 0.3081}}
model: [{conv: {channels: 32, kernel: 3, padding: same, activation: relu, repeat: 2}}, {max_pool: {kernel: 2}}, flatten, {linear: {units: 64, activation: relu}}, {linear: {units: classes}}]
training: {epochs: 3, batch_size: 64, optimizer: {adam: {}}, learning_rate: \$lr}
search: {space: {lr: {real: [0.0001, 0.01]}}, budget: {evaluations: 1}}
workers: {device: cuda}
YAML
    : >"$work/mnist.txt"
    for seed in 1 2 3; do
        for precision in float32 bfloat16 float16; do
            launch 1 train mnist.yaml --run "mnist-$precision-$seed" --gene lr=0.001 --set "seed=$seed" --set "training.precision=$precision" >"$work/mnist.log" 2>&1 ||
                { local code=$?; tail -n 25 "$work/mnist.log"; return $code; }
            "$finch" show "$work/mnist-$precision-$seed" --csv | awk -F, -v precision="$precision" '
                NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
                { print precision, $at["accuracy"], $at["training_seconds"] }' >>"$work/mnist.txt"
        done
    done
    awk '{ n[$1]++; accuracy[$1] += $2; seconds[$1] += $3; all[$1] = all[$1] sprintf(" %.2f", 100 * $2) }
        END {
            for (p in n) printf "%s: mean %.2f %% (%s ), %.1f s\n", p, 100 * accuracy[p] / n[p], all[p], seconds[p] / n[p]
            for (p in n) { d = 100 * (accuracy[p] / n[p] - accuracy["float32"] / n["float32"]); if (!(d > -0.3 && d < 0.3)) bad = 1 }
            exit bad || length(n) != 3
        }' "$work/mnist.txt"
}
# The first generation is larger than the search, so no genes depend on results, which may arrive in any order.
slots() {
    local independent=(--set "search.propagator={genetic: {population: 100}}")
    run slots-one 1 "${independent[@]}" && run slots-four 1 "${independent[@]}" --set workers.slots=4 --set log.level=debug &&
        same_bits slots-one slots-four || return
    [ "$device" = cpu ] || grep -m 1 "run as a gang" "$work/slots-four.log" || { echo "no line \"run as a gang\" in slots-four.log: each individual ran alone"; return 1; }
}
two_ranks() { # NAME COMMUNICATOR: compares two ranks on one device with one rank of the same global batch
    run "$1" 2 "${calm[@]}" --set workers.ranks=2 --set workers.share_device=true --set "workers.communicator=$2" || return
    calm || return
    grep -i -m 3 communicator "$work/$1.log"
    close calm "$1" 1e-4
}
staged() { if [ "$device" = cpu ]; then two_ranks staged auto; else two_ranks staged staged; fi; }
nccl_of_one() {
    [ "$device" = cuda ] || { echo "NCCL needs a GPU"; return 77; }
    calm && run nccl-one 1 "${calm[@]}" --set workers.communicator=nccl || return
    same_bits calm nccl-one || return
    echo "With one rank NCCL launches nothing for a sum in place: this shows the fork, the join and the communicator, not NCCL's kernels."
    grep -i -m 3 nccl "$work/nccl-one.log" || { echo "the program took no communicator for one rank"; return 77; }
}
nccl_of_two() {
    [ "$device" = cuda ] || { echo "NCCL needs a GPU"; return 77; }
    command -v mpirun >/dev/null || { echo "no mpirun here"; return 77; }
    export NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo
    wrapper=(bash -c 'NCCL_HOSTID=check-$OMPI_COMM_WORLD_RANK exec "$@"' -)
    two_ranks nccl-two nccl || return
    [ ! -d "$work/staged" ] || close staged nccl-two 1e-4 || return
    ! grep -m 1 "cannot be captured" "$work/nccl-two.log" || { echo "the sums were not captured"; return 1; }
}
# Trains one individual and sends USR2 after SECONDS of training. Prints nothing. Returns the exit code of finch, which
# is 75 if the signal stopped the training.
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
# Some networks are larger than the memory of any device, and some have a learning rate at which losses overflow. The
# other networks must train. The networks have no activation, since units could die before the overflow. The first
# generation is so large that all these networks are drawn at random.
survives() {
    local units=4
    [ "$device" = cuda ] && units=250000
    cat >"$work/hard.yaml" <<YAML
name: hard
data: {kind: generated, samples: $samples, size: 12, validation_samples: $validation}
model:
  - conv: {channels: 4, kernel: 3, activation: none, repeat: 2}
  - flatten
  - linear: {units: \$units, repeat: 2}
  - linear: {units: classes}
training: {epochs: 2, batch_size: 16, optimizer: {sgd: {momentum: 0.9}}, learning_rate: \$lr}
search:
  space:
    units: {choice: [16, $units]}
    lr: {choice: [0.01, 1000]}
  propagator: {genetic: {population: 100}}
  budget: {evaluations: 16}
workers: {device: $device}
YAML
    launch 1 evolve hard.yaml --run hard >"$work/hard.log" 2>&1 || { tail "$work/hard.log"; return 1; }
    local ends
    ends=$(figures hard | awk '{ print $2 }' | sort | uniq -c | tr -s ' \n' ' ')
    echo "$ends"
    [[ $ends == *evaluated* && $ends == *diverged* ]] && { [ "$device" = cpu ] || [[ $ends == *out_of_memory* ]]; }
}
sanitizer() { # TOOL COMMAND
    local tool=$1 found code=0
    found=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || { echo "no compute-sanitizer here"; return 77; }
    shift
    "$found" --tool "$tool" --error-exitcode 9 --print-limit 5 "$@" >"$work/sanitizer.$BASHPID" 2>&1 || code=$?
    cat "$work/sanitizer.$BASHPID"
    # On some virtual machines, compute-sanitizer cannot access the device.
    ! grep -q 'Device not supported' "$work/sanitizer.$BASHPID" || { echo "compute-sanitizer: the device is not supported here"; return 77; }
    return $code
}
sanitized_test() { # TOOL SOURCE [ARGUMENTS]
    local tool=$1 source=$2 path
    path=$(program test_gpu) || { not_built test_gpu; return; }
    shift 2
    FINCH_TEST_PATH=$(awk -v source="tests/$source" '$3 == source { print $5; exit }' "$build/gpu_tests.txt") \
        sanitizer "$tool" "$path" "--source-file=*tests/$source" "$@"
}
sanitized_training() { # TOOL
    cd "$work" || return
    sanitizer "$1" "$finch" train tiny.yaml --run "sanitized-$1" --gene layers=2 --gene activation=relu \
        --set data.samples=$((samples / 2)) --set data.validation_samples=$((validation / 2)) --set training.epochs=1
}
# Runs the three tools concurrently, since on small shapes they mostly wait for the CPU.
all_sanitized() {
    local part tool
    for part in "cuda/direct_convolution.cpp -tc=one*sixteen*,images*of*one*row*,a*kernel*of*5*" cuda/own_operations.cpp cuda/step_kernels.cpp \
        cuda/layout.cpp "backend/operations.cpp -tc=convolution*padding*,linear*odd*,pooling*"; do
        for tool in memcheck racecheck synccheck; do
            # shellcheck disable=SC2086 # a source file and further arguments
            begin "compute-sanitizer $tool: ${part%% *}" $(( ($(left) + 60) / 4 )) sanitized_test $tool $part
        done
        lines=4 finish 3  # the next tests start while the last three checks run
    done
    lines=4 finish 0
    for tool in memcheck racecheck synccheck; do begin "compute-sanitizer $tool: a short training" $(( ($(left) + 30) / 2 )) sanitized_training $tool; done
    lines=4 finish 0
}
python_with_torch() { # prints a python3 with torch, else any python3
    local python
    for python in python3 /usr/bin/python3; do
        machine "$python" -c 'import torch' 2>/dev/null && { echo "$python"; return 0; }
    done
    command -v python3
}
# Runs a program of the machine without the libraries of the pack.
machine() { LD_LIBRARY_PATH=$libraries_of_the_machine "$@"; }
# Writes a script that runs bench_step with the libraries of the pack.
wrapped_bench_step() {
    local bench
    bench=$(program bench_step) || return
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "${LD_LIBRARY_PATH:-}" "$bench" >"$work/bench_step"
    chmod +x "$work/bench_step"
}
speed() { # SECONDS
    local script python sizes=(--turns 5)
    wrapped_bench_step || { not_built bench_step; return; }
    [ -z "$small" ] || sizes=(--turns 1 --turn-seconds 0.001 --layers 2 --batches 1 --slots 2 --residual-batch 1)
    python=$(python_with_torch)
    for script in "$here/bench/gpu_step.py" "$build/gpu_step.py"; do
        [ -f "$script" ] && [ -n "$python" ] && { machine "$python" "$script" --program "$work/bench_step" --device "$device" --budget "$1" "${sizes[@]}"; return; }
    done
    speed_without_python
}
# Prints the most important rows of gpu_step.py, each measured once.
speed_without_python() {
    local net batch at_once label precision=float32 wide=bfloat16 steps=1000 code=0
    echo "no python3: Finch alone"
    [ "$device" = cuda ] || { wide=float32 steps=4; }
    while read -r net batch at_once; do
        [ "$net" = 6 ] || precision=$wide
        label="$precision, ${net/#6/L = 6}, B = $batch"
        [ "$at_once" = 1 ] || label+=", $at_once at once"
        echo "$net $batch $((steps / at_once + 1)) $at_once" | "$work/bench_step" --device "$device" --precision "$precision" |
            awk -v label="$label" '{ print label " | " ($1 > 0 ? sprintf("%.1f steps/s", 1 / $1) : "FAILED") " |  | " }' || code=1
    done <<'CASES'
6 8 1
6 8 2
6 8 64
6 64 1
6 256 1
6 1024 1
wide_residual 128 1
CASES
    return $code
}
profile() {
    local found work_of="6 8 2000"
    wrapped_bench_step || { not_built bench_step; return; }
    [ -z "$small" ] || work_of="1 1 3"
    found=$(command -v nsys || ls /opt/nvidia/nsight-systems/*/bin/nsys /usr/local/cuda/bin/nsys 2>/dev/null | head -n 1) && [ -n "$found" ] || { echo "no nsys here"; return 77; }
    echo "$work_of" | machine "$found" profile --output "$work/profile" --cuda-graph-trace=node "$work/bench_step" --device "$device" || return
    machine "$found" stats --report cuda_gpu_kern_sum --format table "$work/profile.nsys-rep" | cut -c 1-150 | head -n 25
}

# ---- in order of importance --------------------------------------------------------------------------------------------------------------

heading="Finch on a GPU, $(date -u '+%Y-%m-%d %H:%M UTC'), $(uname -n), $(nproc) CPU cores, device: $device"
say "$heading"
say "$(command -v nvidia-smi >/dev/null && machine timeout 30 nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,compute_cap,clocks.max.sm --format=csv 2>&1 || echo 'no nvidia-smi')"
check_doctor
[ -n "$only" ] || reserved=$((budget / 3))
all_gpu_tests
check "the device's losses are the CPU's" 60 like_the_cpu
check "tf32, bfloat16 and float16: losses near float32's" 60 precisions
check "tf32, bfloat16 and float16 by cuDNN: losses near float32's" 60 wide_precisions
check "a search, twice and replayed: the same bits" 60 repeatable
check "four slots: the bits of one" 60 slots
reserved=0
share=$(( $(left) / 2 ))
[ "$share" -ge 150 ] || share=$(( $(left) < 175 ? $(left) - 25 : 150 ))
lines=80 check "speed" $((share + 25)) speed "$share"
check "two ranks on one device, staged, are one rank" 60 staged
check "NCCL of one rank: fork and join in the recorded step" 40 nccl_of_one
check "two ranks on one device by NCCL, captured, are one rank, and staged" 90 nccl_of_two
check "USR2 in mid-epoch: resumed to the same bits" 90 resumed
check "a training goes from the CPU to the device and back" 90 across_devices
check "too large and diverging individuals hurt no other" 60 survives
check "MNIST in bfloat16 and float16: within 0.3 points of float32" 90 mnist
all_sanitized
lines=30 check "profile of L = 6, B = 8" 45 profile
write_summary
say ""
say "$(cat "$out/table.txt")"
[ $failed = 0 ] || exit 1
[ -z "$nothing_runs" ] || exit 77
