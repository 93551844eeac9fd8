#!/usr/bin/env bash
# The whole of tools/gpu_check.sh on the stand-ins of CUDA's libraries: shows that its commands work, not what a GPU would say.
#
#   tests/cuda/rehearse_gpu_check.sh [BUILD_FOLDER] [REPORT]      (build, gpu_check_rehearsed.txt); minutes
#
# Needs the targets finch_rehearsed_program and test_cuda_NAME of each test_NAME_gpu; a missing one is reported as skipped.
# FINCH names another program; with FINCH_CHECK_DEVICE=cpu one without CUDA does for all but the tests. In the place
# of compute-sanitizer stands a script that knows its options and starts the program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../../build}" && pwd)
report=$(realpath -m "${2:-gpu_check_rehearsed.txt}")
folder=$(mktemp -d "${TMPDIR:-/tmp}/finch-rehearsal.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/tests" "$folder/path"
ln -s "${FINCH:-$(find "$build" -name finch_rehearsed_program -type f | head -n 1)}" "$folder/finch"
cp "$build/gpu_tests.txt" "$folder/"
while read -r test _; do
    name=${test#test_}
    [ ! -x "$build/tests/test_cuda_${name%_gpu}" ] || ln -s "$build/tests/test_cuda_${name%_gpu}" "$folder/tests/$test"
done <"$folder/gpu_tests.txt"
cat >"$folder/path/compute-sanitizer" <<'STANDIN'
#!/usr/bin/env bash
[ "$1" = --tool ] && [[ $2 =~ ^(memcheck|racecheck|synccheck)$ ]] && [ "$3" = --error-exitcode ] && [ "$5" = --print-limit ] ||
    { echo "the stand-in of compute-sanitizer does not know: $*" >&2; exit 2; }
echo "the stand-in of compute-sanitizer found nothing, since it does not look ($2)"
shift 6
exec "$@"
STANDIN
chmod +x "$folder/path/compute-sanitizer"
PATH=$folder/path:$PATH FINCH_CHECK_SAMPLES=${FINCH_CHECK_SAMPLES:-2400} FINCH_CHECK_EPOCHS=${FINCH_CHECK_EPOCHS:-8} \
    "$here/../../tools/gpu_check.sh" "$folder" "$report"
