#!/usr/bin/env bash
# What README.md promises to who has a bare Debian 12 with git: a clone, tools/demo.sh and tools/report.py, and nothing else, give the report of a
# first search. Runs these three there and prints how long each took. Takes as long as a build; needs root and Debian's mirror. By hand:
#
#   tests/install/newcomer.sh [DIR]      a folder for the system, of 3 GB; /var/tmp/finch-newcomer without it. It is removed at the end
#
# What is cloned is the last commit of this checkout.
set -euo pipefail
dir=$(realpath -m "${1:-/var/tmp/finch-newcomer}")
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
printf '\n%s cores, load %s at the end; commit %s\n' "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)" "$commit"
printf '%s\n' "${times[@]}"
