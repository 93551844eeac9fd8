# shellcheck shell=bash disable=SC2154
# A bare Debian 12 in a folder, for bare_system.sh and newcomer.sh, which set `source_dir` (a checkout) and `root` (the folder) and source this.
# The checkout's repository is at /source in there, read only; needs root and Debian's mirror. Debootstrap, where this machine has none, is
# fetched and unpacked beside it, and not installed.

# A worktree has its commits elsewhere: what is cloned is the repository.
repository=$(realpath "$(git -C "$source_dir" rev-parse --git-common-dir)")

bootstrap() {
    if command -v debootstrap >/dev/null; then
        debootstrap "$@"
        return
    fi
    local unpacked
    unpacked=$(mktemp -d)
    (cd "$unpacked" && apt-get download --quiet debootstrap && dpkg -x debootstrap_*.deb .)
    DEBOOTSTRAP_DIR=$unpacked/usr/share/debootstrap "$unpacked/usr/sbin/debootstrap" "$@"
    rm -rf "$unpacked"
}

# Makes `root`, unless it is there.
make_bare() {  # debootstrap's options
    if [ ! -e "$root/bin/bash" ]; then bootstrap --variant=minbase "$@" bookworm "$root"; fi
    cp /etc/resolv.conf "$root/etc/"
}

# Everything that is mounted goes with the namespace.
inside() {  # COMMAND…
    unshare --mount --pid --fork bash -c '
        set -e
        root=$1; shift
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys"
        mkdir -p "$root/source" "$root/ccache"
        mount --bind -o ro "$0" "$root/source"
        if [ -n "${FINCH_CCACHE:-}" ]; then mount --bind "$FINCH_CCACHE" "$root/ccache"; fi
        exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            CCACHE_DIR=/ccache "$@"' "$repository" "$root" "$@"
}
