#!/usr/bin/env bash
# Configures and builds the program in build/ (preset release): tools/build.sh [PRESET] [cmake's -D options]
# -DBUILD_TESTING=ON also builds the tests. A preset other than release is built in the folder build-PRESET.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=release
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
    preset=$1
    shift
fi
folder=build
[ "$preset" = release ] || folder=build-$preset

options=(-DBUILD_TESTING=OFF)
if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" -B "$folder" "${options[@]}" "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }
cmake --build "$folder" --parallel "$(nproc)"
