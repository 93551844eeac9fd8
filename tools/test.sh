#!/usr/bin/env bash
# Installs, builds and runs every test. tools/test.sh [--sanitize] [ctest's options, e.g. --label-regex unit]
# --sanitize: also the unit tests under the address and undefined-behaviour sanitizers, in a second build.
# Real MNIST is tested where FINCH_MNIST names a folder that holds it. What cannot be tested here is skipped, with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."
sanitize=no
if [ "${1:-}" = --sanitize ]; then
    sanitize=yes
    shift
fi

step() { printf '\n== %s\n' "$*"; }

# The style is that of clang-format 14 (Debian 12); another version would find fault where there is none.
check_format() {
    if clang-format --version | grep -q 'version 14\.'; then
        find include src tests \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' \) -print0 |
            xargs -0 clang-format --dry-run -Werror
    else
        echo "skipped: clang-format is not version 14"
    fi
}

# The reasons why tests were skipped stand in their output.
skip_reasons() {
    awk '/^[0-9]+\/[0-9]+ Test(ing)?: / { name = $3 } /^skipped: / { print "  " name ": " substr($0, 10) }' \
        build/Testing/Temporary/LastTest.log | sort -u
}

step "packages"
tools/install.sh --tests

step "format"
check_format

step "build"
tools/build.sh release -DBUILD_TESTING=ON

step "tests"
code=0
# More than there are cores, since many tests wait for deadlines, signals or Slurm most of the time.
ctest --preset release --parallel $((2 * $(nproc))) --no-tests=error "$@" || code=$?
reasons=$(skip_reasons)
[ -z "$reasons" ] || printf 'Skipped:\n%s\n' "$reasons"
[ $code = 0 ] || exit $code

if [ $sanitize = yes ]; then
    step "unit tests under the sanitizers"
    tools/build.sh sanitize -DBUILD_TESTING=ON -DFINCH_CUDA=OFF
    ctest --preset sanitize --parallel "$(nproc)"
fi
printf '\nAll tests passed.\n'
