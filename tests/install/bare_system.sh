#!/usr/bin/env bash
# Runs the steps of an Apptainer definition (tools/packaging/apptainer) in a bare Debian, without Apptainer: %post and
# %test, and then a search. Takes as long as a build. Needs root and Debian's mirror. No test runs this script; start it
# manually:
#
#   tests/install/bare_system.sh DIR [DEFINITION] [RELEASE]      the system remains in DIR/root for inspection
#   RELEASE                                            the Debian, by default that of the definition (bookworm)
#   FINCH_CCACHE=FOLDER                                uses this ccache folder; the build then has the path of this checkout
set -euo pipefail
dir=$(realpath -m "${1:?a folder}")
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
definition=$(realpath "${2:-$source_dir/tools/packaging/apptainer/finch.def}")
release=${3:-$(sed -n 's/^From: debian:\([a-z]*\).*/\1/p' "$definition")}
root=$dir/root
. "$source_dir/tests/install/bare.sh"

section() {  # NAME: prints this section of the definition and fills in its build arguments
    awk -v name="%$1" '/^%/ { inside = $1 == name; next } inside' "$definition" |
        sed ${FINCH_CCACHE:+-e "s|/tmp/finch|$source_dir|g"} -e 's|{{ source }}|/source|' -e "s|{{ revision }}|$(git -C "$source_dir" rev-parse HEAD)|"
}

mkdir -p "$dir"
make_bare
if [ -n "${FINCH_CCACHE:-}" ]; then inside sh -c 'apt-get update -qq; apt-get install -yqq --no-install-recommends ccache'; fi

echo "== %post"
section post | inside /bin/sh -s
echo "== %test"
section test | inside /bin/sh -s
echo "== a search"
printf '%s\n' '. /environment' 'cd "$HOME"' \
    'mpirun -n 4 --oversubscribe --allow-run-as-root finch evolve /opt/finch/share/finch/configs/sphere.yaml --fresh' 'finch status runs/sphere' |
    { section environment >"$root/environment"; inside /bin/sh -s; }
