#!/usr/bin/env bash
# Checks a promise of README.md: on a bare Debian with git, only `git clone`, tools/demo.sh and tools/report.py are
# needed for the report of a first search. Runs these three commands there and prints the time of each. Takes as long as
# a build. Needs root and Debian's mirror. No test runs this script; start it manually:
#
#   tests/install/newcomer.sh [RELEASE] [DIR]
#       RELEASE: bookworm (Debian 12, the default) or trixie (13)
#       DIR: a folder for the system (3 GB, removed at the end), by default /var/tmp/finch-newcomer
#
# The clone is the last commit of this checkout.
set -euo pipefail
release=${1:-bookworm}
dir=$(realpath -m "${2:-/var/tmp/finch-newcomer}")
[ ! -e "$dir" ] || { echo "newcomer.sh: $dir is there already" >&2; exit 2; }
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
root=$dir/root
. "$source_dir/tests/install/bare.sh"

mkdir -p "$dir"
trap 'rm -rf --one-file-system "$dir"' EXIT
times=()

timed() {  # WHAT COMMAND…, in the bare system
    local begin=$SECONDS what=$1
    shift
    inside "$@"
    times+=("$(printf '%6d s  %s' $((SECONDS - begin)) "$what")")
}

make_bare --include=git,ca-certificates
commit=$(git -C "$source_dir" rev-parse HEAD)
timed "git clone" sh -c "git -c safe.directory='*' clone --quiet /source /root/finch && git -C /root/finch checkout --quiet $commit"
timed "tools/demo.sh" sh -c 'cd /root/finch && tools/demo.sh'
timed "tools/report.py runs/quickstart -o report.html" sh -c 'cd /root/finch && tools/report.py runs/quickstart -o report.html'
grep -q "Learning curves" "$root/root/finch/report.html"
printf '\n%s, %s cores, load %s at the end; commit %s\n' "$release" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)" "$commit"
printf '%s\n' "${times[@]}"
