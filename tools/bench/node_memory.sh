#!/usr/bin/env bash
# Compares the peak memory of a run in a control group, as Slurm counts memory, with the forecast of `finch plan`:
#   tools/bench/node_memory.sh FINCH CONFIG RANKS [finch's options]        (root, control groups of version 1)
# The script drops the page cache, so libraries and data files count as on a node that has not read them before. During
# the measurement no other process may run Finch or Open MPI.
set -euo pipefail
finch=$(realpath "$1") config=$(realpath "$2") ranks=$3
shift 3
group=/sys/fs/cgroup/memory/finch_bench_$$
run=$(mktemp -d)
trap 'rm -rf "$run"; rmdir "$group" 2>/dev/null || true' EXIT
mkdir "$group"
. "$(dirname "$0")/../mpi_settings.sh"
sync
echo 3 >/proc/sys/vm/drop_caches
(
    echo $BASHPID >"$group/cgroup.procs"
    mpirun -n "$ranks" "$finch" evolve "$config" --run "$run/run" "$@" >"$run/output" 2>&1
) || { cat "$run/output"; exit 1; }
planned=$("$finch" plan "$config" --nodes 1 --ranks-per-node "$ranks" "$@" | sed -n 's/.*at most \([0-9]*\) MiB on a node.*/\1/p')
awk -v peak="$(cat "$group/memory.max_usage_in_bytes")" -v planned="$planned" \
    'BEGIN { peak /= 1048576; printf "planned %d MiB, peak %.0f MiB, ratio %.2f\n", planned, peak, planned / peak }'
