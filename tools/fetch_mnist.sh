#!/usr/bin/env bash
# tools/fetch_mnist.sh [FOLDER]: downloads the four MNIST files into FOLDER (default data/mnist) and checks them. Run
# this script on a machine with internet access; on a cluster, this is usually the login node. Complete files are kept.
# An interrupted download continues at the point of interruption.
set -euo pipefail

folder=${1:-data/mnist}
# FINCH_MNIST_MIRRORS replaces these mirrors, for example by a copy inside a cluster. Mirrors are tried in this order.
mirrors=${FINCH_MNIST_MIRRORS:-"https://ossci-datasets.s3.amazonaws.com/mnist https://storage.googleapis.com/cvdf-datasets/mnist"}

# Name, bytes and SHA-256 of the unpacked content. The packed files may differ between mirrors.
files=(
    "train-images-idx3-ubyte 47040016 ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    "train-labels-idx1-ubyte 60008 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    "t10k-images-idx3-ubyte 7840016 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    "t10k-labels-idx1-ubyte 10008 ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
)

# is_whole FILE BYTES SHA256: checks a packed file. If its content is wrong, prints the reason and fails.
is_whole() {
    local unpacked
    unpacked=$(mktemp "$folder/.unpacked.XXXXXX")
    trap 'rm -f "$unpacked"; trap - RETURN' RETURN
    gzip -dc "$1" > "$unpacked" 2> /dev/null || { echo "cannot be unpacked"; return 1; }
    local bytes
    bytes=$(wc -c < "$unpacked")
    [ "$bytes" -eq "$2" ] || { echo "unpacks to $bytes bytes, not $2"; return 1; }
    [ "$(sha256sum < "$unpacked" | cut -d' ' -f1)" = "$3" ] || { echo "has another SHA-256 than MNIST"; return 1; }
}

# download URL FILE: downloads URL, and appends to FILE if FILE is partial.
download() {
    if command -v curl > /dev/null; then
        curl --fail --silent --show-error --location --connect-timeout 20 --retry 2 --continue-at - --output "$2" "$1"
    elif command -v wget > /dev/null; then
        wget --quiet --timeout=20 --tries=3 --continue --output-document="$2" "$1"
    else
        echo "fetch_mnist: neither curl nor wget is here; install one of them" >&2
        exit 1
    fi
}

# from_mirror MIRROR NAME BYTES SHA256: downloads and checks a file. An interrupted download leaves a partial file, from
# which the next run continues.
from_mirror() {
    local target=$folder/$2.gz part status problem
    part=$target.part-$(cksum <<< "$1" | cut -d' ' -f1)
    for _ in 1 2; do
        status=0
        download "$1/$2.gz" "$part" || status=$?
        if [ -s "$part" ] && problem=$(is_whole "$part" "$3" "$4"); then
            mv "$part" "$target"
            rm -f "$target".part-*
            echo "$target: fetched from $1"
            return 0
        fi
        case $status in
            0 | 8 | 22 | 33 | 36) rm -f "$part" ;; # the file is wrong, or the server refuses to resume
            *) return 1 ;;                         # no network, or the download was interrupted
        esac
        echo "$1/$2.gz: ${problem:-the server refuses it}" >&2
    done
    return 1
}

# fetch NAME BYTES SHA256
fetch() {
    local target=$folder/$1.gz problem mirror
    if [ -e "$target" ]; then
        if problem=$(is_whole "$target" "$2" "$3"); then
            echo "$target: is there and whole"
            return 0
        fi
        echo "$target: $problem; fetching it again" >&2
    fi
    for mirror in $mirrors; do
        from_mirror "$mirror" "$1" "$2" "$3" && return 0
    done
    return 1
}

mkdir -p "$folder"
for file in "${files[@]}"; do
    read -r name bytes sum <<< "$file"
    if ! fetch "$name" "$bytes" "$sum"; then
        cat >&2 << TEXT
fetch_mnist: $name.gz could not be fetched from any of
  ${mirrors// /$'\n'  }
Is this machine offline? Run this script on one with a network (a login node) and copy the folder to $folder,
or set FINCH_MNIST_MIRRORS to a copy that this machine can reach.
Without MNIST: configs/quickstart.yaml trains on digits that Finch draws itself.
TEXT
        exit 1
    fi
done
echo "MNIST is in $folder, checked"
