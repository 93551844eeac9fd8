#!/usr/bin/env bash
# Tests the pack (tools/gpu_pack.sh) on a bare machine: a shell, its tools and CUDA's libraries, but no build, no
# sources and no MPI. The machine is a chroot with a nearly empty environment. Without a GPU every check must be skipped
# because there is no GPU. With FINCH_CHECK_DEVICE=cpu the programs and mpirun run, which shows that the pack is
# complete. Needs root.
#
#   tests/cuda/unpack_gpu_pack.sh PACK.tar.xz [OUT]
set -euo pipefail
pack=$(realpath "$1")
out=${2:-}
root=$(mktemp -d "${TMPDIR:-/tmp}/finch-bare.XXXXXX")
end() { # the host's libraries are mounted below $root: nothing is removed unless they are unmounted
    umount "$root/proc" "$root/cuda" 2>/dev/null || true
    grep -q " $root/" /proc/self/mounts || rm -rf --one-file-system "$root"
}
trap end EXIT
mkdir -p "$root"/{bin,etc,proc,dev/shm,cuda,tmp,usr/lib,usr/lib64,work}
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"
add() { # FILES: copies the files and their shared libraries
    local file
    for file in "$@" $(ldd "$@" 2>/dev/null | grep -o '/[^ :)]*'); do
        [ -e "$root$file" ] || cp -L --parents "$file" "$root"
    done
}
for tool in bash sh awk cat chmod cp cut date diff dirname basename env find grep head ldconfig ls mkdir mktemp mv nproc paste ps rm sed seq \
    sleep sort tail tar tee timeout tr uname uniq wc xz; do
    path=$(command -v $tool)
    add "$(realpath "$path")"
    ln -s "$(realpath "$path")" "$root/bin/$tool"
done
ln -s bin "$root/sbin"
for library in libc.so.6 libm.so.6 libdl.so.2 librt.so.1 libpthread.so.0 libresolv.so.2 libutil.so.1; do  # of the C library
    path=$(ldconfig -p | awk -v name=$library '$1 == name && /x86-64/ && !path { path = $NF } END { print path }')
    [ -e "$root$path" ] || cp -L --parents "$path" "$root"
done
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/urandom" c 1 9
ln -s /proc/self/fd "$root/dev/fd"
mount -t proc proc "$root/proc"
mount --bind "$(dirname "$(ldconfig -p | awk '/libcudnn.so.9 / && !path { path = $NF } END { print path }')")" "$root/cuda"
mount -o remount,bind,ro "$root/cuda"
tar -C "$root/work" -xf "$pack"
code=0
settings=$(env | grep '^FINCH_CHECK_' || true)
# shellcheck disable=SC2086 # a word for each
env -i PATH=/bin $settings "$(command -v chroot)" "$root" /bin/bash -c 'cd /tmp && exec /work/gpu_pack/gpu_check.sh' || code=$?
[ -z "$out" ] || cp -r "$root/tmp/gpu_check" "$out"
echo "gpu_check.sh ended with $code"
exit $code
