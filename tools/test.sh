#!/usr/bin/env bash
# Installs, builds and tests: tools/test.sh [--check | --night] [--sanitize] [ctest's options, e.g. --tests-regex NAME]
#   --check      only the tests that every change needs (minutes)
#   no option    also the tests that must pass before a merge
#   --night      all tests
#   --sanitize   also the unit tests with the address and undefined-behaviour sanitizers, in a second build
# The tests with real MNIST run if FINCH_MNIST is a folder with MNIST. Tests that cannot run on this machine are skipped,
# and the reasons are printed.
set -euo pipefail
cd "$(dirname "$0")/.."
sanitize=no
tier=gate tiers='^(check|gate)$' seconds=1200  # time limit of a test
while :; do
    case ${1:-} in
        --check) tier=check tiers='^check$' seconds=120 ;;
        --night) tier=night tiers='^(check|gate|night)$' seconds=3600; export FINCH_NIGHT=1 ;;
        --sanitize) sanitize=yes ;;
        *) break ;;
    esac
    shift
done

step() { printf '\n== %s\n' "$*"; }

# The code is formatted with clang-format 14 (Debian 12). Other versions format some lines differently.
check_format() {
    if clang-format --version | grep -q 'version 14\.'; then
        find include src tests \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' \) -print0 |
            xargs -0 clang-format --dry-run -Werror
    else
        echo "skipped: clang-format is not version 14"
    fi
}

# Prints the reasons why tests were skipped, from the output of the tests.
skip_reasons() {
    awk '/^[0-9]+\/[0-9]+ Test(ing)?: / { name = $3 } /^skipped: / { print "  " name ": " substr($0, 10) }' \
        build/Testing/Temporary/LastTest.log | sort -u
}

# Prints the number of tests in tier $1 that are not in the tiers $2, since ctest adds fixture tests to every tier.
tests_of() { ctest --preset release --show-only --label-regex "^$1\$" --exclude-label-regex "^($2)\$" | awk '/^Total Tests:/ { print $3 }'; }
left_out() {
    case $tier in
        check) echo "Left out by --check: $(tests_of gate check) tests of gate (tools/test.sh), $(tests_of night 'check|gate') of night (--night)." ;;
        gate) echo "Left out: $(tests_of night 'check|gate') tests of night and the long parts of scenarios (tools/test.sh --night)." ;;
    esac
}

step "packages"
tools/install.sh --tests

step "format"
check_format

step "build"
# A new build contains PTX, which the driver compiles, instead of code for each GPU architecture. This build takes a
# third of the time.
ptx=()
[ -f build/CMakeCache.txt ] || ptx=(-DCMAKE_CUDA_ARCHITECTURES=80-virtual)
tools/build.sh release -DBUILD_TESTING=ON "${ptx[@]}"

step "tests: $tier"
code=0
# Runs more tests in parallel than there are cores, since many tests mostly wait for deadlines, signals or Slurm.
ctest --preset release --parallel $((2 * $(nproc))) --no-tests=error --label-regex "$tiers" --timeout $seconds "$@" || code=$?
reasons=$(skip_reasons)
[ -z "$reasons" ] || printf 'Skipped:\n%s\n' "$reasons"
left_out
[ $code = 0 ] || exit $code

if [ $sanitize = yes ]; then
    step "unit tests under the sanitizers"
    tools/build.sh sanitize -DBUILD_TESTING=ON -DFINCH_CUDA=OFF
    ctest --preset sanitize --parallel "$(nproc)" --timeout 3600 --label-exclude '^night$'
fi
printf '\nAll tests passed.\n'
