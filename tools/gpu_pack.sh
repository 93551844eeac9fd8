#!/usr/bin/env bash
# Packs a build for a bare x86-64 machine with a GPU: the programs that tools/gpu_check.sh runs, Open MPI, and every shared library that such
# a machine lacks. CUDA, cuDNN, NCCL, the driver and the C library are the machine's own.
#
#   tools/gpu_pack.sh [BUILD_FOLDER] [OUT]        (build, gpu_pack)
#
# makes OUT and OUT.tar.xz. There: tar xf gpu_pack.tar.xz (python3 -m tarfile -e gpu_pack.tar.xz where xz is missing), then
# gpu_pack/gpu_check.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../build}" && pwd)
out=${2:-gpu_pack}
if [ -e "$out" ] && [ ! -f "$out/gpu_check.sh" ]; then
    echo "gpu_pack.sh: $out is there and is no pack" >&2
    exit 2
fi
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib" "$out/openmpi"
out=$(cd "$out" && pwd)

programs=("$build/finch")
[ ! -x "$build/bench_step" ] || programs+=("$build/bench_step")
for test in "$build"/tests/test_*_gpu; do [ ! -x "$test" ] || programs+=("$test"); done
for program in "${programs[@]}"; do
    cp -L "$program" "$out/bin/"
    strip --strip-debug "$out/bin/$(basename "$program")"
done
cp "$build/gpu_tests.txt" "$out/"
cp "$here/gpu_check.sh" "$here/bench/gpu_step.py" "$out/"

# Open MPI loads its parts by name from a folder; OPAL_PREFIX says where that now is.
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
    cp -L "$launcher" "$out/bin/mpirun"
    cp -L "$(command -v orted)" "$out/bin/orted"
    for folder in /usr/share/openmpi /usr/share/pmix2 /usr/share/pmix; do
        [ ! -d "$folder" ] || cp -rL "$folder" "$out/openmpi/share-$(basename "$folder")"
    done
    parts+=("$launcher" "$(command -v orted)")
fi

of_the_machine='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|nsl)|lib(cuda|cudart|cudnn|nccl|cublas|cublasLt|nvrtc|nvJitLink|nvidia)[^/]*)\.so'
ldd "${programs[@]}" "${parts[@]}" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u | while read -r library; do
    [[ $(basename "$library") =~ $of_the_machine ]] || cp -L "$library" "$out/lib/"
done
strip --strip-unneeded "$out"/lib/*.so* 2>/dev/null || true

cat >"$out/environment.sh" <<'ENVIRONMENT'
# Sourced by gpu_check.sh: finds what was packed, and CUDA's libraries of this machine.
_pack=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
_path=$_pack/lib
for _library in libcudnn.so.9 libnccl.so.2 libcublasLt.so.13 libcudart.so.13 libnvrtc.so.13; do
    ldconfig -p 2>/dev/null | grep -q "$_library" && continue
    _found=$(find / -xdev -name "$_library" -not -path '/proc/*' 2>/dev/null | head -n 1)
    if [ -n "$_found" ]; then _path=$_path:$(dirname "$_found"); else echo "environment.sh: no $_library on this machine" >&2; fi
done
export LD_LIBRARY_PATH=$_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [ -x "$_pack/bin/mpirun" ]; then
    export PATH=$_pack/bin:$PATH OPAL_PREFIX=$_pack/openmpi
    export OMPI_MCA_mca_base_component_path=$(echo "$_pack"/openmpi/openmpi/openmpi* | tr ' ' ':')
    export PMIX_MCA_mca_base_component_path=$(ls -d "$_pack"/openmpi/pmix*/pmix | paste -sd:)
    export PMIX_MCA_pcompress_base_silence_warning=1 OMPI_MCA_orte_launch_agent=$_pack/bin/orted OMPI_MCA_plm=isolated
    export OMPI_MCA_opal_warn_on_missing_libcuda=0 OMPI_MCA_pmix_base_help=0
fi
unset _pack _path _library _found
ENVIRONMENT
while read -r test _; do
    [ -x "$out/bin/$test" ] || { echo "gpu_pack.sh: $test is not built (ninja -C $build $test)" >&2; exit 1; }
done <"$out/gpu_tests.txt"
tar -C "$(dirname "$out")" -c "$(basename "$out")" | xz -T 0 >"$out.tar.xz"
du -sm "$out" "$out.tar.xz" | awk '{ print $2 ": " $1 " MiB" }'
