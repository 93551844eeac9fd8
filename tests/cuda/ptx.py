"""ptx.py: runs nvcc's PTX of each own CUDA kernel on a CPU, and compares the results with float64 formulas (ptx_cases.py).

The test fails if a kernel has no case. It also plants faults, which the emulator must find: missing barriers, an index beyond the end,
misaligned vectors, wrong numbers. `ptx.py NAME` only runs the cases whose function or kernel has NAME in its name.
"""
import copy
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/support"), str(SOURCE / "tests/cuda")]
sys.dont_write_bytecode = True
import ptx_cases  # noqa: E402
import ptx_emulator  # noqa: E402

KERNELS = SOURCE / "src/backend/cuda"
FLAGS = ["-std=c++20", "-O3", "-DNDEBUG", f"-I{SOURCE}/include", f"-I{KERNELS}", f"-I{KERNELS}/nvcc", "-include",
         f"{KERNELS}/nvcc/portable.hpp"]


def find_nvcc():
    return os.environ.get("CUDACXX") or shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def compile_ptx(nvcc, source, folder):
    """Compiles a source with the flags of a Release build (src/backend/CMakeLists.txt). Returns the path of the PTX."""
    to = pathlib.Path(folder, source.stem + ".ptx")
    subprocess.run([nvcc, *FLAGS, "--generate-code=arch=compute_90,code=compute_90", "--ptx", source, "-o", to], check=True)
    return to


def kernel_names(text):
    """Returns the kernels' names by their symbols in PTX: `kernel_entry<finch::…::Transpose>(…)` is Transpose."""
    symbols = re.findall(r"\.entry (\w+)\(", text)
    names = subprocess.run(["c++filt"], input="\n".join(symbols), check=True, capture_output=True, text=True).stdout.splitlines()
    kernels = [re.search(r"kernel_entry<(.*?) ?>\(", name)[1] for name in names]
    return dict(zip(symbols, (re.sub(r"finch::backend::|cuda::|\(anonymous namespace\)::", "", kernel) for kernel in kernels)))


def find_case(function, size):
    return next((f, variant, sizes[size]) for f, variant, sizes in ptx_cases.CASES if f.__name__ == function)


class Kernels:
    """All kernels, compiled when they are first used."""

    def __init__(self):
        self.modules, self.compiled = {}, {}

    def add(self, path):
        text = path.read_text()
        module = ptx_emulator.Module(text, kernel_names(text))
        self.modules |= dict.fromkeys(module.texts, module)
        return self

    def __call__(self, name):
        if name not in self.modules:
            raise ptx_emulator.Fault(f"a case launches {name}, which is not a kernel")
        if name not in self.compiled:
            self.compiled[name] = self.modules[name].kernel(name)
        return self.compiled[name]

    def edited(self, name, pattern, replacement):
        """Returns these kernels, with the first match of a pattern replaced in the PTX of one kernel."""
        module = self.modules[name]
        text, edits = re.subn(pattern, replacement, module.texts[name], count=1)
        if not edits:
            raise AssertionError(f"no fault can be planted in {name}: its PTX has no {pattern}")
        changed, planted = Kernels(), copy.copy(module)
        planted.texts = {name: text}
        changed.modules = self.modules | {name: planted}
        changed.compiled = {other: kernel for other, kernel in self.compiled.items() if other != name}
        return changed


def run_case(kernels, function, variant, size, in_gang=False):
    run = ptx_cases.Run(ptx_emulator.Gpu(), kernels, in_gang=in_gang)
    function(run, size, *variant)
    return run


def run_cases(kernels, only):
    """Returns the failures, and for each kernel a case that launches it. In a gang, each case runs at one size, except those
    with kernels that are in no gang."""
    failures, case_of = [], {}
    for function, variant, sizes in ptx_cases.CASES:
        launched = {}
        for name, in_gang in (("small", False), ("awkward", False), ("gang", True)):
            if in_gang and function is ptx_cases.persistent_batch_norm:
                continue
            if in_gang:  # at the small size, unless the awkward size launches more kernels
                name = "small" if launched.get("awkward", set()) <= launched.get("small", set()) else "awkward"
            try:
                run = run_case(kernels, function, variant, sizes[name], in_gang)
                launched[name] = {kernel for kernel, _ in run.counts}
                case_of |= dict.fromkeys(launched[name], (function, variant, sizes[name], in_gang))
            except (ptx_emulator.Fault, AssertionError) as failure:
                if only in function.__name__ or only in str(failure):
                    failures.append(f"{function.__name__}{variant}, {name} size{', in a gang' if in_gang else ''}: {failure}")
    return failures, case_of


def expect(kernels, case, *messages):
    """Returns a failure unless a case fails with all these messages."""
    expect.planted += 1
    try:
        run_case(kernels, *case)
    except (ptx_emulator.Fault, AssertionError) as failure:
        if all(message in str(failure) for message in messages):
            return []
        return [f"a planted fault was reported as: {failure}; expected: {messages}"]
    return [f"a planted fault was not found; expected: {messages}"]


expect.planted = 0


def plant_in_ptx(kernels, case_of):
    failures = []
    for name, case in case_of.items():
        if not name.startswith("GangKernel") and "bar.sync" in kernels.modules[name].texts[name]:  # without its first barrier
            failures += expect(kernels.edited(name, r"bar\.sync\s+0;", ""), case, f"{name}: thread", "without a barrier in between")
    for name, pattern, replacement, *messages in (
            ("OptimizerUpdate<Adam, 2, 4>", r"(ld\.global\.v4\.f32[^;]*)\]", r"\1+4]", "not a multiple of 16", "ld.global.v4.f32"),
            ("DirectConvolution<3, 4, 5>", r"(ld\.shared\.v4\.f32 \s*\{[^}]*\}, \[%r\d+)[+\d]*\]", r"\1+4]",
             "not a multiple of 16", "ld.shared.v4.f32"),
            *(("DirectConvolution<3, 4, 5>", rf"(?s)((?:bar\.sync.*?){{{barriers}}})bar\.sync\s+0;", r"\1", "without a barrier in between")
              for barriers in (1, 2)),  # without its other barriers
            ("HalfKernel<PersistentBatchNorm<__nv_bfloat16, __nv_bfloat16, 8, false>, false>", r"(ld\.global\.v4\.u32[^;]*)\]", r"\1+8]",
             "not a multiple of 16"),
            ("BiasActivation<__nv_bfloat16, __nv_bfloat16, 8>", r"st\.global\.v4\.u32 (.*\[%rd\d+)\]", r"st.global.v4.u32 \1+16]",
             "out of bounds", "behind the start of y"),
            ("HalfKernel<PersistentBatchNorm<__nv_bfloat16, float, 8, true>, false>", r"cvt\.rn\.bf16", "cvt.rz.bf16",
             "does not know the opcode cvt.rz.bf16.f32"),
            ("BiasGradientPart<__nv_bfloat16, 8>", r"(st\.global\.v4\.u32[^{]*\{)(%r\d+), (%r\d+)", r"\1\3, \2", "grad[",
             "values are wrong"),
            ("LoadBatch<4>", r"st\.global\.v4\.f32 (.*\[%rd\d+)\]", r"st.global.v4.f32 \1+1600]", "out of bounds"),
            *((f"GangKernel<{kernel}>", r"@%p\d+ bra \s*\$L__BB\d+_\d+;", "", "out of bounds")  # members without a step run
              for kernel in ("AddPartials", "DirectConvolution<3, 2, 5> ")),
            ("GangKernel<LoadBatch<4> >", r"(setp\.lt\.s32\s+%p\d+, %r\d+), 1;", r"\1, -1;", "out of bounds"),
            ("GangKernel<AddPartials>", r"(ld\.global\.u32[^\[]*\[%rd\d+)\+32\]", r"\1+36]", "out of bounds"),  # another member's step
            ("GangKernel<RegressionLoss>", r"(?s)(.*add\.s32\s+%r\d+, %r\d+, )-1;", r"\g<1>0;", "gang[0, 1] is 1, not 0"),  # no step counted
            # A block that does not wait for the others, and one that does not arrive.
            ("PersistentBatchNorm<__nv_bfloat16, __nv_bfloat16, 8, true>", r"(ld\.acquire[^@]*)@%p\d+ bra[^;]*;", r"\1",
             "without a barrier in between"),
            ("PersistentBatchNorm<__nv_bfloat16, __nv_bfloat16, 8, true>", r"(atom\.add\.release[^\]]*\],)%r\d+", r"\g<1>0",
             "waits for a number in memory that does not come"),
            ("PersistentBatchNorm<__nv_bfloat16, __nv_bfloat16, 8, true>", r"(?s)(ld\.acquire.*?ld\.global)\.f64", r"\1.nc.f64",
             "reads by ld.global.nc an array to which this launch has written"),
            # Without one of the block's barriers after the grid's.
            *(("PersistentBatchNorm<__nv_bfloat16, __nv_bfloat16, 8, false>", rf"(?s)(ld\.acquire(?:.*?bar\.sync){{{barriers}}}.*?)bar\.sync\s+0;",
               r"\1", "without a barrier in between") for barriers in (0, 1)),
            ("LayerNormForward", r"sqrt\.rn\.f64", "sqrt.approx.f64", "the emulator does not know the opcode sqrt.approx.f64"),
            ("RegressionLoss", r"shfl\.sync\.bfly\.b32", "shfl.sync.down.b32", "the emulator does not know the opcode shfl.sync.down.b32"),
            ("AddPartials", r"(?s)(bar\.sync.*?add\.f32.*?)add\.f32", r"\1sub.f32", "grad_parameters[", "values are wrong")):
        failures += expect(kernels.edited(name, pattern, replacement), case_of[name], f"{name}", *messages)
    return failures


def plant_in_source(nvcc, folder):
    failures = []
    for text, wrong, *messages in (("there = column < width;", "there = column <= width;", "PoolingForward<", "thread", "out of bounds"),
                                   ("/ static_cast<float>(s.window)", "/ static_cast<float>(s.window + 1)", "PoolingForward",
                                    "values are wrong"),
                                   ("y[to] = static_cast<Y>(", "const_cast<X*>(x)[to] = static_cast<X>(", "PoolingForward",
                                    "writes to x, which is an input")):
        source = (KERNELS / "pooling.cu").read_text()
        assert text in source
        changed = pathlib.Path(folder, "pooling.cu")
        changed.write_text(source.replace(text, wrong, 1))
        failures += expect(Kernels().add(compile_ptx(nvcc, changed, folder)), find_case("mean", "awkward"), *messages)
    return failures


PLANTED = """.entry planted(.param .u64 planted_param_0)
.maxntid 64, 1, 1
{ .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [planted_param_0];
mov.u32 %r1, INDEX;
setp.eq.u32 %p1, %r1, NUMBER;
@%p1 bra $apart;
INSTRUCTIONS
$apart:
APART
ret;
}
"""


def plant_kernels():
    """Faults that no small change of a kernel makes: a thread apart from the others, or a block that ends before another's barrier."""
    failures = []
    for index, number, instructions, apart, message in (
            ("%tid.x", 37, "bar.sync 0;", "", "does not wait at the barrier"),
            ("%tid.x", 37, "shfl.sync.bfly.b32 %r2|%p1, %r1, 1, 31, -1;", "", "does not take part"),
            ("%tid.x", 37, "add.u32 %r2, %r3, 1;", "", "register %r3, which has no value"),
            ("%ctaid.x", 1, "st.global.u32 [%rd1], 7;\nret;", "bar.sync 0;\nld.global.u32 %r2, [%rd1];", "without a barrier in between")):
        text = PLANTED
        for word, by in (("INDEX", index), ("NUMBER", str(number)), ("INSTRUCTIONS", instructions), ("APART", apart)):
            text = text.replace(word, by)
        kernels = Kernels()
        kernels.modules["planted"] = ptx_emulator.Module(text, {"planted": "planted"})
        failures += expect(kernels, (lambda run, _: run.launch("planted", 2, 64, 0, run.output("word", 1, "u4")), (), None), "planted",
                           message)
    return failures


def main():
    nvcc = find_nvcc()
    if not nvcc:
        print("skipped: there is no nvcc (CUDA toolkit) in the PATH, in CUDACXX or in /usr/local/cuda/bin")
        return 77
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        kernels = Kernels()
        for source in sorted(KERNELS.glob("*.cu")):
            kernels.add(compile_ptx(nvcc, source, folder))
        failures, case_of = run_cases(kernels, only)
        uncovered = sorted(kernels.modules.keys() - case_of.keys())
        print(f"{len(case_of)} of {len(kernels.modules)} kernels, {len(ptx_cases.CASES)} cases at two sizes and in gangs, {time.process_time() - begin:.0f} s")
        if not only and not failures:
            failures += [f"{name} has no case in tests/cuda/ptx_cases.py" for name in uncovered]
            failures += plant_in_ptx(kernels, case_of) + plant_in_source(nvcc, folder) + plant_kernels()
            print(f"{expect.planted} planted faults, {time.process_time() - begin:.0f} s")
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
