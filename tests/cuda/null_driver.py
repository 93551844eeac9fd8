"""Writes the C source of a CUDA driver that does nothing: null_driver.py NM STUB SOURCE, where STUB is the toolkit's stub
of libcuda.so. With this driver, cuDNN offers the engines that it compiles at run time as well."""
import subprocess
import sys

# These calls return a handle through their first argument.
HANDLES = ("cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuModuleLoadData", "cuModuleGetFunction")
# No device, and not found. All other calls succeed.
ERRORS = {"cuInit": 100, "cuGetProcAddress": 500, "cuGetProcAddress_v2": 500}

listing = subprocess.run([sys.argv[1], "-D", "--defined-only", sys.argv[2]], check=True, capture_output=True, text=True).stdout
names = sorted({line.split()[2] for line in listing.splitlines() if line.split()[1] in "Tt" and line.split()[2].startswith("cu")})
lines = []
for name in names:
    if name in HANDLES:
        lines.append(f"int {name}(void** handle) {{ *handle = (void*)4096; return 0; }}")
    elif name == "cuDriverGetVersion":
        lines.append(f"int {name}(int* version) {{ *version = 13000; return 0; }}")
    elif name in ("cuGetErrorString", "cuGetErrorName"):
        lines.append(f'int {name}(int code, const char** text) {{ (void)code; *text = "no driver"; return 0; }}')
    else:
        lines.append(f"int {name}(void) {{ return {ERRORS.get(name, 0)}; }}")
with open(sys.argv[3], "w") as source:
    source.write("\n".join(lines) + "\n")
