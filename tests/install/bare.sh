# shellcheck shell=bash disable=SC2154
# A bare Debian in a folder. bare_system.sh and newcomer.sh set `source_dir` (a checkout), `root` (the folder) and
# `release` (bookworm, trixie), and source this file. In the system, /source is the repository of the checkout,
# read-only. Needs root and Debian's mirror. If debootstrap is not installed, the script unpacks its package to a
# temporary folder.

# The repository to clone. A git worktree does not contain its commits, so this is the common .git folder.
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

# Makes the system in `root`, unless it exists.
make_bare() {  # debootstrap's options
    if [ ! -e "$root/bin/bash" ]; then bootstrap --variant=minbase "$@" "$release" "$root"; fi
    cp /etc/resolv.conf "$root/etc/"
}

# Runs COMMAND in the system. All mounts disappear with the mount namespace.
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
