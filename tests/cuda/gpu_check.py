"""gpu_check.py GPU_CHECK: tests tools/gpu_check.sh with programs that fail, crash, hang or find no GPU.

Each check must be reported, no check may prevent the next ones, and the script must write a summary however it ends.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

GPU_CHECK = pathlib.Path(sys.argv[1]).resolve()
DOCTOR = """#!/bin/sh
case $1 in
    doctor) echo "CUDA"; echo "  devices            {devices}"; echo "libraries" ;;
    *) echo "no such verb" >&2; exit 2 ;;
esac
"""
TESTS = {
    "fails": "echo a claim does not hold; exit 1",
    "crashes": "kill -SEGV $$",
    "hangs": "echo begun >hangs.begun; trap '' TERM; while :; do sleep 0.1; done",
    "skips": "echo this GPU is too small; exit 77",
    "holds": "echo all well",
    "tells": "echo kernels: $FINCH_TEST_PATH",
}

# A step of 2 networks at once takes half as long, and wide_residual fails.
BENCH_STEP = """#!/bin/sh
while read -r net batch steps slots; do
    case "$net $slots" in wide_residual*) echo nan ;; *" 2") echo 0.005 ;; *) echo 0.01 ;; esac
done
"""


class Folder:
    """A build folder of shell scripts, and the results of gpu_check.sh for it."""

    def __init__(self, path, devices, names, paths="own"):
        self.path = path
        path.mkdir()
        self.add("finch", DOCTOR.format(devices=devices))
        for name in names:
            self.add(f"program_{name}", "#!/bin/sh\n" + TESTS[name] + "\n")
        (path / "gpu_tests.txt").write_text("".join(f"test_{name} program_{name} tests/cuda/{name}.cpp 1 {paths}\n" for name in names))

    def add(self, name, text):
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def start(self, **environment):
        return subprocess.Popen([GPU_CHECK, self.path, self.path / "out"], cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=os.environ | {"FINCH_CHECK_ONLY": "^test_"} | environment, text=True)

    def run(self, **environment):
        process = self.start(**environment)
        output, _ = process.communicate(timeout=100)
        print(output)
        return process.returncode

    def summary(self):
        file = self.path / "out/summary.txt"
        return file.read_text() if file.exists() else ""

    def table(self):
        return [[cell.strip() for cell in line.split(" | ")] for line in (self.path / "out/table.txt").read_text().splitlines()]

    def wait_for_summary(self, text):
        end = time.monotonic() + 60
        while text not in self.summary() or not (self.path / "hangs.begun").exists():
            check(time.monotonic() < end, f"no '{text}' in\n{self.summary()}")
            time.sleep(0.05)

    def processes(self):
        """Returns the ids of processes of this build that still run."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if str(self.path / "program_").encode() in (process / "cmdline").read_bytes():
                    found.append(process.name)
            except OSError:
                pass
        return found


def check(claim, words):
    if not claim:
        sys.exit(f"FAILED: {words}")


def every_check_is_reported(folder):
    build = Folder(folder / "all", "1", TESTS)
    code = build.run(FINCH_CHECK_LIMIT="2")
    summary = build.summary()
    for words in ("OK  finch doctor", "FAILED (exit code 1)  test_fails (own)", "FAILED (signal SEGV)  test_crashes (own)",
                  "FAILED (not done after ", "SKIPPED (this GPU is too small)  test_skips (own)", "OK  test_holds (own)",
                  "3 OK, 3 FAILED, 1 SKIPPED"):
        check(words in summary, f"no '{words}' in the summary\n{summary}")
    check(code == 1, f"exit code {code} after failures")
    check("a claim does not hold" in (build.path / "out/output.txt").read_text(), "output.txt lacks what a check printed")
    check(not build.processes(), "what hung is still there")


def every_path_is_checked(folder):
    build = Folder(folder / "paths", "1", ["tells"], "automatic library")
    check(build.run() == 0, "a check of two paths failed")
    output = (build.path / "out/output.txt").read_text()
    for path in ("automatic", "library"):
        check(f"OK  test_tells ({path})" in build.summary(), f"no check of {path} in\n{build.summary()}")
        check(f"kernels: {path}\n" in output, f"the test was not told of {path}\n{output}")


def without_a_gpu_nothing_is_checked(folder):
    build = Folder(folder / "none", "none: no driver", ["fails", "holds"])
    code = build.run()
    summary = build.summary()
    check(code == 77, f"exit code {code} without a GPU")
    for name in ("finch doctor", "test_fails (own)", "test_holds (own)"):
        check(f"SKIPPED (no GPU: no driver)  {name}" in summary, f"{name} is not skipped for want of a GPU\n{summary}")


def a_program_that_does_not_start_is_said_once(folder):
    build = Folder(folder / "broken", "1", ["holds"])
    build.add("finch", "#!/bin/sh\necho 'libcudnn.so.9: cannot open shared object file'; exit 127\n")
    check(build.run() == 1, "a program that does not start is a failure")
    for words in ("FAILED (exit code 127)  finch doctor", "SKIPPED (finch does not run, see the doctor)  test_holds (own)"):
        check(words in build.summary(), f"no '{words}' in\n{build.summary()}")


def no_time_left(folder):
    build = Folder(folder / "late", "1", ["holds"])
    check(build.run(FINCH_CHECK_SECONDS="9") == 0, "what is skipped for want of time is no failure")
    check("SKIPPED (no time left)  test_holds (own)" in build.summary(), build.summary())


def the_table_has_each_check_and_measurement(folder):
    build = Folder(folder / "table", "1", ["fails", "skips"])
    build.add("bench_step", BENCH_STEP)
    code = build.run(FINCH_CHECK_ONLY="^(test_|speed)", FINCH_CHECK_DEVICE="cpu", FINCH_CHECK_SMALL="yes")
    table = build.table()
    check(code == 1, f"exit code {code} after failures")
    for row in (["test_fails (own)", "FAILED (exit code 1)"], ["test_skips (own)", "SKIPPED (this GPU is too small)"], ["speed", "FAILED (exit code 1)"],
                ["float32, L = 2, B = 1, 2 at once", "200.0 [200.0 … 200.0] steps/s", "Finch, one network: 100.0", "2.00 [2.00 … 2.00]"]):
        check(row in table, f"no row {row} in {table}")
    for name, result in (("float32, L = 2, B = 1", "100.0 [100.0 … 100.0] steps/s"), ("float32, wide_residual, B = 1", "FAILED")):
        check(any(row[:2] == [name, result] for row in table), f"no {name} with {result} in {table}")
    check([row[0] for row in table].index("speed") < [row[0] for row in table].index("float32, L = 2, B = 1"), "the measurements are not below speed")


def ended_from_outside(folder):
    build = Folder(folder / "ended", "1", ["holds", "hangs"])
    process = build.start()
    build.wait_for_summary("RUNNING  test_hangs")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    summary = build.summary()
    check(process.returncode == 124, f"exit code {process.returncode} after TERM")
    check("CUT OFF" in summary and "OK  test_holds (own)" in summary and "ended from outside" in summary, summary)
    check(not build.processes(), "what ran is still there")


def killed(folder):
    build = Folder(folder / "killed", "1", ["holds", "hangs"])
    process = build.start()
    build.wait_for_summary("RUNNING  test_hangs")
    process.kill()
    for pid in build.processes():
        os.kill(int(pid), signal.SIGKILL)
    process.communicate(timeout=60)
    check("OK  test_holds (own)" in build.summary() and "RUNNING  test_hangs" in build.summary(), build.summary())


def main():
    with tempfile.TemporaryDirectory() as folder:
        for test in (every_check_is_reported, every_path_is_checked, without_a_gpu_nothing_is_checked, a_program_that_does_not_start_is_said_once, no_time_left,
                     the_table_has_each_check_and_measurement, ended_from_outside, killed):
            print(f"---- {test.__name__}", flush=True)
            test(pathlib.Path(folder))


if __name__ == "__main__":
    main()
