#!/usr/bin/env python3
"""cuda_static.py [NAME]: counts what each own CUDA kernel does, without a GPU. NAME: only kernels with NAME in their name.

The emulator of the test cuda.ptx runs some blocks of each kernel at a typical size (tests/cuda/ptx_cases.py). ptxas compiles the
kernels for an H100. Columns: one line per launch
  PTX/warp     PTX instructions that a warp issues
  FMA %        fused multiply-adds in float32 of all threads, divided by 32 · issued instructions
  divisions    integer divisions and remainders that a warp issues; in brackets those of the PTX that are in a loop with a load
  conflicts %  additional cycles of shared memory's accesses due to bank conflicts
  kB           bytes of the 32-byte sectors that all accesses of a launch read and write, before the caches
  registers, spills and SASS (instructions, only if cuobjdump is installed) of a thread, from ptxas
PTX is not what a GPU executes: ptxas removes and fuses some instructions and turns a division into about 20.

Without NAME, the script also prints the bytes per activation of a training step of a bfloat16 convolution, with x as large as y. `others`
counts values per channel and partial sums, which the caches serve.
"""
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/cuda"))
sys.dont_write_bytecode = True
import ptx  # noqa: E402
from ptx import ptx_cases, ptx_emulator  # noqa: E402

BLOCKS = 8  # that are run of each launch
BANKS = 32  # of 4 bytes
SECTOR = 32


class Accesses:
    """Counts of the memory accesses of one launch, for Gpu(details=…)."""

    def __init__(self, count=0):
        """`count`: the elements of an array that is a tensor of activations."""
        self.cycles = self.least_cycles = 0
        self.count, self.bytes, self.tensor_bytes = count, [0, 0], [0, 0]  # read, written

    def add_conflicts(self, launch, addresses, size):
        """A warp's access to 4 bytes takes as many cycles as the largest number of different words in one bank. Accesses to 8 and 16
        bytes are divided into halves and quarters of the warp."""
        parts = max(1, size // 4)
        lanes = launch.lanes()
        group = launch.warp[lanes] * parts + launch.special["%tid.x"][lanes] % 32 // (32 // parts)
        for_each_word = np.repeat(group, parts), (addresses[:, None] // 4 + np.arange(parts)).ravel()
        words = np.unique(np.stack(for_each_word), axis=1)
        in_bank = collections.Counter(zip(words[0], words[1] % BANKS))
        most = collections.Counter()
        for (of, _), count in in_bank.items():
            most[of] = max(most[of], count)
        self.cycles += sum(most.values())
        self.least_cycles += len(most)

    def add_traffic(self, launch, at, size, store):
        sectors = np.unique(np.stack([launch.warp[launch.lanes()], at // SECTOR]), axis=1)
        self.bytes[store] += SECTOR * sectors.shape[1]
        if self.count:
            is_tensor = np.array([array.values.size == self.count for array in launch.gpu.arrays])
            self.tensor_bytes[store] += SECTOR * np.count_nonzero(is_tensor[launch.gpu.owners[sectors[1] * SECTOR // ptx_emulator.PAGE]])


def print_bytes_per_activation(kernels, batch=64, pixels=32 * 32, channels=32):
    """Prints tables for the training step of a convolution in bfloat16, with relu. All blocks run."""
    bfloat16, count = ptx_cases.BFLOAT16, batch * pixels * channels
    # cuDNN reads and writes its tensors once; the weights are negligible.
    cudnn = [("cuDNN, y", 2, 2, 0.0), ("cuDNN, gradient of weights", 4, 0, 0.0), ("cuDNN, gradient of x", 2, 2, 0.0)]

    def launches(function, size, *variant):
        gpu, found = ptx_emulator.Gpu(), []
        launch = gpu.launch

        def launch_with_own_details(kernel, *arguments):
            details = gpu.details = Accesses(count)
            launch(kernel, *arguments)
            found.append((kernel.name, *(b / count for b in (*details.tensor_bytes, sum(details.bytes) - sum(details.tensor_bytes)))))
        gpu.launch = launch_with_own_details
        function(ptx_cases.Run(gpu, kernels), size, *variant)
        return found
    norm = launches(ptx_cases.persistent_batch_norm, (batch, pixels, channels, batch), bfloat16, bfloat16, "relu")
    rows = batch * pixels, channels
    bias = launches(ptx_cases.bias_activation, (*rows, channels), bfloat16, bfloat16, 8, "relu")[1:]  # without bias
    bias += launches(ptx_cases.bias_gradient, rows, bfloat16, "relu")
    for layer, own in (("batch_norm and relu", norm), ("bias and relu", bias)):
        print(f"\n| convolution with {layer}: kernel | read | written | others |\n| --- | --: | --: | --: |")
        every = [*own, *cudnn]
        for name, *numbers in [*every, ("total", *np.sum([row[1:] for row in every], axis=0))]:
            print(f"| {name} | " + " | ".join(f"{number:.2f}" for number in numbers) + " |")


def divisions_in_loops(kernel):
    """Returns how many integer divisions stand in loops that load from global memory."""
    in_loops = set()
    for number, block in enumerate(kernel.blocks):
        back = kernel.labels[block[-1].operands[0]] if block and block[-1].opcode.startswith("bra") else number + 1
        loop = range(back, number + 1)
        if any(i.opcode.startswith("ld.global") for b in loop for i in kernel.blocks[b]):
            in_loops |= {(b, at) for b in loop for at, i in enumerate(kernel.blocks[b]) if is_division(i.opcode)}
    return len(in_loops)


def is_division(opcode):
    return re.match(r"(div|rem)\.[us]", opcode) is not None


def assemble(path):
    """Returns (registers, spilled bytes, SASS instructions or None) by the kernels' symbols."""
    cubin = path.with_suffix(".cubin")
    report = subprocess.run([shutil.which("ptxas", path="/usr/local/cuda/bin") or "ptxas", "-v", "--gpu-name", "sm_90", path, "-o", cubin],
                            check=True, capture_output=True, text=True).stderr
    facts = {}
    for symbol, stores, loads, registers in re.findall(
            r"entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers", report, re.DOTALL):
        facts[symbol] = [int(registers), int(stores) + int(loads), None]
    if dump := shutil.which("cuobjdump") or shutil.which("cuobjdump", path="/usr/local/cuda/bin"):
        text = subprocess.run([dump, "-sass", cubin], check=True, capture_output=True, text=True).stdout
        for function in text.split("Function : ")[1:]:
            facts[function.split()[0]][2] = len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/", function, re.MULTILINE))
    return facts


def count(kernels, name):
    """Yields the kernel, the case, the Counts and the Accesses of each typical launch."""
    for function, variant, sizes in ptx_cases.CASES:
        gpu = ptx_emulator.Gpu(size=1 << 28, most_blocks=BLOCKS, details=Accesses())
        run, launch = ptx_cases.Run(gpu, kernels), gpu.launch

        def launch_with_own_details(kernel, *arguments):
            gpu.details = Accesses()
            return (launch(kernel, *arguments), gpu.details) if name in kernel.name else None
        gpu.launch = launch_with_own_details
        function(run, sizes["typical"], *variant)
        for kernel, result in run.counts:
            if result:
                yield kernel, " ".join(str(v) for v in variant), *result


def main():
    nvcc, name = ptx.find_nvcc(), (sys.argv[1:] or [""])[0]
    if not nvcc:
        sys.exit("cuda_static.py: there is no nvcc; install the CUDA toolkit, or set CUDACXX")
    kernels, facts = ptx.Kernels(), {}
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(ptx.KERNELS.glob("*.cu")):
            path = ptx.compile_ptx(nvcc, source, folder)
            kernels.add(path)
            symbols = ptx.kernel_names(path.read_text())
            facts |= {symbols[symbol]: fact for symbol, fact in assemble(path).items()}
    print("| kernel | case | blocks x threads | PTX/warp | FMA % | divisions | conflicts % | kB read | kB written | registers | spills "
          "| SASS |")
    print("| --- | --- | --- " + "| --: " * 9 + "|")
    for kernel, variant, counts, accesses in count(kernels, name):
        issued = sum(counts.issued.values())
        warps = counts.run * -(-counts.threads // 32)
        fused = sum(n for opcode, n in counts.executed.items() if opcode.startswith("fma.") and opcode.endswith("f32"))
        divisions = sum(n for opcode, n in counts.issued.items() if is_division(opcode))
        conflicts = 100 * (accesses.cycles / accesses.least_cycles - 1) if accesses.least_cycles else 0
        read, written = (b * counts.blocks / counts.run / 1000 for b in accesses.bytes)
        registers, spills, sass = facts[kernel]
        print(f"| {kernel} | {variant} | {counts.blocks} x {counts.threads} | {issued / warps:.0f} | {100 * fused / 32 / issued:.0f} "
              f"| {divisions / warps:.0f} ({divisions_in_loops(kernels(kernel))}) | {conflicts:.0f} | {read:.0f} | {written:.0f} "
              f"| {registers} | {spills} | {sass or '-'} |", flush=True)
    if not name:
        print_bytes_per_activation(kernels)


if __name__ == "__main__":
    main()
