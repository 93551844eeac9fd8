#!/usr/bin/env bash
# Packs a build for an x86-64 machine with a GPU that has no Finch and no Open MPI. The pack contains the programs that
# tools/gpu_check.sh runs, Open MPI, and all shared libraries except CUDA, cuDNN, NCCL, the driver and the C library,
# which the machine must have.
#
#   tools/gpu_pack.sh [BUILD_FOLDER] [OUT]        (build, gpu_pack)
#
# writes OUT and OUT.tar.xz. On the GPU machine, run tar xf gpu_pack.tar.xz (python3 -m tarfile -e gpu_pack.tar.xz if xz
# is missing), then gpu_pack/gpu_check.sh, which prints a table in less than 9 minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../build}" && pwd)
out=${2:-gpu_pack}
if [ -e "$out" ] && [ ! -f "$out/gpu_check.sh" ]; then
    echo "gpu_pack.sh: $out is there and is no pack" >&2
    exit 2
fi
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib" "$out/openmpi/bin" "$out/openmpi/share"
out=$(cd "$out" && pwd)

programs=("$build/finch")
[ ! -x "$build/bench_step" ] || programs+=("$build/bench_step")
for test in "$build"/tests/test_gpu*; do [ ! -x "$test" ] || programs+=("$test"); done
for program in "${programs[@]}"; do
    cp -L "$program" "$out/bin/"
    strip --strip-debug "$out/bin/$(basename "$program")"
done
cp "$build/gpu_tests.txt" "$out/"
cp "$here/gpu_check.sh" "$here/mpi_settings.sh" "$here/bench/gpu_step.py" "$here/bench/networks.py" "$out/"
mkdir -p "$out/tests/nn" "$out/tests/cuda" && cp -r "$here/../tests/nn/fixtures" "$out/tests/nn/"
cp "$here/../tests/cuda/engines.txt" "$out/tests/cuda/"

# Open MPI loads its plugins from a folder; OPAL_PREFIX gives its location in the pack. The same folder contains the
# texts of the messages, and bin/orted, which even a program without mpirun starts.
parts=()
launcher=$(command -v orterun || true)
if [ -n "$launcher" ]; then
    libraries=$(dirname "$(ldd "$(readlink -f "$launcher")" | awk '/libopen-rte/ { print $3; exit }')")
    for folder in "$libraries"/openmpi/lib/openmpi3 "$libraries"/openmpi/lib/openmpi "$libraries"/pmix2/lib/pmix "$libraries"/pmix/lib/pmix; do
        [ -d "$folder" ] || continue
        mkdir -p "$out/openmpi/$(basename "$(dirname "$(dirname "$folder")")")/$(basename "$folder")"
        cp -L "$folder"/*.so "$out/openmpi/$(basename "$(dirname "$(dirname "$folder")")")/$(basename "$folder")/"
        parts+=("$folder"/*.so)
    done
    cp -L "$launcher" "$out/openmpi/bin/mpirun"
    cp -L "$(command -v orted)" "$out/openmpi/bin/orted"
    for folder in /usr/share/openmpi /usr/share/pmix2 /usr/share/pmix; do
        [ ! -d "$folder" ] || cp -rL "$folder" "$out/openmpi/share/"
    done
    parts+=("$launcher" "$(command -v orted)")
fi

of_the_machine='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|nsl)|lib(cuda|cudart|cudnn|nccl|cublas|cublasLt|nvrtc|nvJitLink|nvidia)[^/]*)\.so'
ldd "${programs[@]}" "${parts[@]}" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u | while read -r library; do
    [[ $(basename "$library") =~ $of_the_machine ]] || cp -L "$library" "$out/lib/"
done
strip --strip-unneeded "$out"/lib/*.so* 2>/dev/null || true

cat >"$out/environment.sh" <<'ENVIRONMENT'
# gpu_check.sh sources this file. It finds the packed libraries and this machine's CUDA libraries, if necessary in a
# Python package.
_pack=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
_path=$_pack/lib _missing=()
for _library in libcudnn.so.9 libnccl.so.2 libcublasLt.so.13 libnvrtc.so.13; do
    ldconfig -p 2>/dev/null | grep -q "$_library" || _missing+=("$_library")
done
if [ ${#_missing[@]} -gt 0 ]; then
    # Each of these folders may be on another file system. -xdev excludes the file systems that are mounted below them,
    # such as network file systems.
    _places=$(ls -d / /usr /usr/local /opt /home /root ${CUDA_HOME:-} 2>/dev/null; python3 -c 'import site; print(*site.getsitepackages(), sep="\n")' 2>/dev/null)
    _found=$(timeout 60 find $_places -xdev \( -name proc -o -name sys -o -path "$_pack" \) -prune -o \( $(printf -- '-name %s -o ' "${_missing[@]}") -false \) -print 2>/dev/null)
    for _library in "${_missing[@]}"; do
        _one=$(grep -m 1 "/$_library\$" <<<"$_found")
        if [ -n "$_one" ]; then [[ :$_path: == *:$(dirname "$_one"):* ]] || _path=$_path:$(dirname "$_one"); else echo "environment.sh: no $_library on this machine" >&2; fi
    done
fi
export LD_LIBRARY_PATH=$_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [ -x "$_pack/openmpi/bin/mpirun" ]; then
    export PATH=$_pack/openmpi/bin:$PATH OPAL_PREFIX=$_pack/openmpi
    export HOME=${HOME:-/tmp}  # mpirun reads HOME without checking that it is set
    export OMPI_MCA_mca_base_component_path=$(echo "$_pack"/openmpi/openmpi/openmpi* | tr ' ' ':')
    export PMIX_MCA_mca_base_component_path=$(ls -d "$_pack"/openmpi/pmix*/pmix 2>/dev/null | paste -sd:)
    export PMIX_MCA_pcompress_base_silence_warning=1 OMPI_MCA_orte_launch_agent=$_pack/openmpi/bin/orted OMPI_MCA_plm=isolated
    export OMPI_MCA_opal_warn_on_missing_libcuda=0 OMPI_MCA_pmix_base_help=0
fi
unset _pack _path _library _missing _places _found _one
ENVIRONMENT
while read -r _ test _; do
    [ -x "$out/bin/$test" ] || { echo "gpu_pack.sh: $test is not built (ninja -C $build $test)" >&2; exit 1; }
done <"$out/gpu_tests.txt"
# The dictionary of xz -9 is larger than a program, so kernels that several programs contain are stored once.
tar -C "$(dirname "$out")" --sort=name --owner=0 --group=0 -c "$(basename "$out")" | xz -9 >"$out.tar.xz"
du -sm "$out" "$out.tar.xz" | awk '{ print $2 ": " $1 " MiB" }'
