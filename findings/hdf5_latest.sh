#!/usr/bin/env bash
# HDF5 2.0 (h5py 3.16.0): a compressed dataset in a file of libver="latest" cannot be opened by HDF5 1.14 (h5py 3.12.1):
#   KeyError: 'Unable to synchronously open object (bad version number for layout message)'
# The file itself and its groups open, so the dataset seems to be missing. A contiguous dataset of the same file, and
# both datasets of a file of libver="v114" or "v110", can be read. (h5repack of HDF5 2.2 without options keeps the new
# layout; with `-f GZIP=4` it writes one that 1.10 and 1.14 read.)
# Exit code: 0 this is so, 1 the behaviour has changed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for version in 3.16.0 3.12.1; do
    python3 -m venv "$version"
    "$version/bin/pip" install --quiet --disable-pip-version-check "h5py==$version"
done

3.16.0/bin/python - <<'END'
import h5py
for bound in ("latest", "v114", "v110"):
    with h5py.File(f"{bound}.h5", "w", libver=bound) as file:
        file.create_dataset("packed", data=list(range(100)), compression="gzip")
        file.create_dataset("plain", data=list(range(100)))
END
3.12.1/bin/python - <<'END'
import sys
import h5py

def outcome(bound, name):
    try:
        with h5py.File(f"{bound}.h5") as file:
            return f"{len(file[name][:])} values"
    except KeyError as error:
        return str(error)

found = {(bound, name): outcome(bound, name) for bound in ("latest", "v114", "v110") for name in ("packed", "plain")}
print(f"HDF5 {h5py.version.hdf5_version} reads:", *(f"  {bound} {name}: {text}" for (bound, name), text in found.items()), sep="\n")
refused = [place for place, text in found.items() if text != "100 values"]
sys.exit(0 if refused == [("latest", "packed")] and "layout message" in found["latest", "packed"] else 1)
END
