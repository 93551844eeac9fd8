#!/usr/bin/env bash
# The steps of an Apptainer definition (tools/packaging/apptainer) in a bare Debian, without Apptainer: its %post and %test in a
# fresh debootstrap, and then a search there. Takes as long as a build; needs root, debootstrap and Debian's mirror. By hand:
#
#   tests/install/bare_system.sh DIR [DEFINITION]      the system is left in DIR/root, to be looked at
#   FINCH_CCACHE=FOLDER                                with ccache's folder of this checkout's builds; the build there has its path then
set -euo pipefail
dir=$(realpath -m "${1:?a folder}")
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
definition=$(realpath "${2:-$source_dir/tools/packaging/apptainer/finch.def}")
root=$dir/root
. "$source_dir/tests/install/bare.sh"

section() {  # NAME: of the definition, with its build arguments put in
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
