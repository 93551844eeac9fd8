#!/usr/bin/env bash
# Runs all of tools/gpu_check.sh with the stand-ins of CUDA's libraries, at small sizes. This tests the commands of the
# script; it cannot predict the results on a GPU. All checks must be OK.
#
#   tests/cuda/rehearse_gpu_check.sh [BUILD_FOLDER] [OUT]      (build, gpu_check_rehearsed); minutes
#
# Needs the targets finch_rehearsed_program, bench_step_rehearsed, test_cuda and test_cuda_mpi. A missing target is
# reported as skipped. FINCH selects another program. With FINCH_CHECK_DEVICE=cpu a program without CUDA is sufficient,
# except for the tests. Scripts replace compute-sanitizer and nsys: they check the options and start the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../../build}" && pwd)
out=$(realpath -m "${2:-gpu_check_rehearsed}")
folder=$(mktemp -d "${TMPDIR:-/tmp}/finch-rehearsal.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/tests" "$folder/path"
built() { find "$build" -name "$1" -type f | head -n 1; }
ln -s "${FINCH:-$(built finch_rehearsed_program)}" "$folder/finch"
ln -s "$(built bench_step_rehearsed)" "$folder/bench_step"
cp "$build/gpu_tests.txt" "$folder/"
ln -s "$build/tests/test_cuda" "$folder/tests/test_gpu"
ln -s "$build/tests/test_cuda_mpi" "$folder/tests/test_gpu_mpi"
cat >"$folder/path/compute-sanitizer" <<'STANDIN'
#!/usr/bin/env bash
[ "$1" = --tool ] && [[ $2 =~ ^(memcheck|racecheck|synccheck)$ ]] && [ "$3" = --error-exitcode ] && [ "$5" = --print-limit ] ||
    { echo "the stand-in of compute-sanitizer does not know: $*" >&2; exit 2; }
echo "the stand-in of compute-sanitizer found nothing, since it does not look ($2)"
shift 6
exec "$@"
STANDIN
cat >"$folder/path/nsys" <<'STANDIN'
#!/usr/bin/env bash
case "$*" in
    "profile --output "*" --cuda-graph-trace=node "*) : >"$3.nsys-rep"; shift 4; exec "$@" ;;
    "stats --report cuda_gpu_kern_sum --format table "*.nsys-rep) [ -f "$6" ] && echo "the stand-in of nsys saw nothing" ;;
    *) echo "the stand-in of nsys does not know: $*" >&2; exit 2 ;;
esac
STANDIN
chmod +x "$folder/path"/*
PATH=$folder/path:$PATH FINCH_CHECK_SMALL=yes FINCH_CHECK_SECONDS=${FINCH_CHECK_SECONDS:-20000} "$here/../../tools/gpu_check.sh" "$folder" "$out"
