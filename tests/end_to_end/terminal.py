"""Checks what a user sees on a terminal and in a log: `finch evolve` and `finch show --follow` run in pseudo-terminals.
The scenario waits for states of the screen, and holds evaluations back until it has seen them."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading

from harness import Folder, check, environment, passed, wait_for

PROGRAM = """
import os, time
here = os.environ["FINCH_RUN"] + "/../.."
number = int(os.environ["FINCH_ID"].split(".")[2])
def wait_for(name):
    while not os.path.exists(here + "/" + name):
        time.sleep(0.05)
print("finch epoch=1 loss=" + str(10 / number), flush=True)
wait_for("begin")
time.sleep(0.2)  # so that each result has its own line
if number == 2:
    raise FileNotFoundError("no images in data")
if number == 8:
    wait_for("end")
print("finch epoch=2 loss=" + str(8 / number), flush=True)
"""
CONFIG = f"""
name: run
search:
  objective: {{command: "{sys.executable} {{here}}/program.py", epochs: 2}}
  space: {{x: {{real: [0, 1]}}, a_gene_with_quite_a_long_name: {{int: [1, 1000000]}}, another_gene_with_a_long_name: {{int: [1, 1000000]}}}}
  budget: {{evaluations: 10}}
checkpoint: {{archive_seconds: 0.2}}
log: {{interval_seconds: 0.3}}
"""


class Screen:
    """A command in a pseudo-terminal. `lines` are the lines above the live line, `live` are the states of this line."""

    def __init__(self, command, folder, columns, **variables):
        variables = {"TERM": "xterm", "LANG": "C.UTF-8", "LC_ALL": "", "NO_COLOR": "", "FORCE_COLOR": "", **variables}
        self.bytes = b""
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(folder.path)
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            os.execvpe(command[0], command, dict(environment(), **variables))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while True:
            try:
                part = os.read(self.file, 65536)
            except OSError:  # the program has ended
                part = b""
            if not part:
                return
            self.bytes += part

    def text(self):
        return self.bytes.decode(errors="replace")

    def rows(self):
        """Returns every row that was ever visible, without escape sequences."""
        text = re.sub(r"\x1b\[[0-9;]*m", "", self.text())
        return [row for row in re.split(r"\r\n|\r\x1b\[K|\n|\x1b\[H\x1b\[J", text) if row]

    def wait(self, pattern):
        wait_for(lambda: re.search(pattern, "\n".join(self.rows()), re.M) or not self.reader.is_alive(), f"{pattern} on the screen")
        check(re.search(pattern, "\n".join(self.rows()), re.M), f"{pattern} did not appear\n{self.text()}")

    def end(self):
        self.reader.join()
        _, status = os.waitpid(self.pid, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)


def search(columns, ranks, **variables):
    """Returns the rows and the whole output of a search in a terminal of this width. `ranks`: under mpirun; 0: without."""
    with Folder() as folder:
        folder.write("program.py", PROGRAM)
        folder.write("run.yaml", CONFIG)
        screen = Screen(folder.command(ranks, "evolve", "run.yaml"), folder, columns, **variables)
        screen.wait(r"0/10\W+1 running, epoch 2/2")
        (folder.path / "begin").touch()
        screen.wait(r"7/10\W+(new )?best loss .*1 failed.* left")
        followed = Screen(folder.command(0, "show", "runs/run", "--follow"), folder, columns, **variables)
        followed.wait("Ctrl-C ends this view, not the run")
        (folder.path / "end").touch()
        check(screen.end() == 0, screen.text())
        check(followed.end() == 0, followed.text())
        return screen, followed


# mpirun of Open MPI 5 forwards only complete lines, so it shows no live line.
is_forwarded = "(Open MPI) 4" in subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout

screen, followed = search(80, 0)
rows = screen.rows()
live = [row for row in rows if re.match(r"[█░]* ?\d+/10", row)]
check(live and all(len(row) < 80 for row in live), f"the live line does not fit: {live}")
check(re.search(r"[█░]{8,} 7/10 · best loss 1\.1429 ★ · 1 failed · .* left", "\n".join(live)), f"{live}")
check(live[0].startswith("░") and "left" not in "".join(row for row in live if "/10 · 1 running" in row), f"{live}")
results = [row for row in rows if re.search(r" [IW] 0\.0\.\d+: ", row)]
check(len(results) == 10 and all(len(row) <= 80 and re.match(r"\d\d:\d\d:\d\d [IW] ", row) for row in results), f"{results}")
check("★" in results[0] and " W 0.0.2: failed: FileNotFoundError: no images in data" in "\n".join(results), f"{results}")
check("\x1b[1m0.0.1: " in screen.text() and "\x1b[33m" in screen.text(), f"no colours: {screen.text()}")
check(re.search(r"\nnext\n.*look at it: \S+report\S* runs/run$", "\n".join(rows), re.S), f"the end does not name the next steps: {rows[-5:]}")
passed("a terminal shows the running epochs, then the best, failures and the time left in one row; results fit, and mark new bests")

seen = followed.rows()
check(all(len(row) <= 80 for row in seen), f"--follow is too wide: {[row for row in seen if len(row) > 80]}")
check(any(re.match(r"  best loss so far  [▁-█]{6,}  from 8 to 1\.143", row) for row in seen), f"{seen}")
check(any("1 failed: 1 × FileNotFoundError: no images in data" in row for row in seen), f"{seen}")
check("Ctrl-C" not in followed.text().split("\x1b[H\x1b[J")[-1], "how to quit is shown after the end")
passed("show --follow shows the best so far, the failures with their reason, and how to quit")

screen, followed = search(110, 1 if is_forwarded else 0, NO_COLOR="1", LANG="C")
live = [row for row in screen.rows() if re.match(r"\[[#-]*\] \d+/10", row)]
check(live and all(row.isascii() and len(row) < 110 for row in live), f"{live}")
check(re.search(r"\[#+-+\] 7/10, new best loss 1\.1429, 1 failed, .* left", "\n".join(live)), f"{live}")
check(not re.search(r"\x1b\[[0-9;]*m", screen.text() + followed.text()), "NO_COLOR is not obeyed")
passed("without UTF-8 the lines are ASCII, and NO_COLOR is obeyed")

with Folder() as folder:
    folder.write("program.py", PROGRAM)
    folder.write("run.yaml", CONFIG)
    (folder.path / "begin").touch()
    (folder.path / "end").touch()
    output = folder.run(1, "evolve", "run.yaml")
    check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", output), f"control characters in a log: {output!r}")
    check(re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d I 0\.0\.1: new best loss 8, 2 epochs in ", output, re.M), output)
    progress = re.findall(r"^[-0-9]+ [:0-9]+ I (\d+/10.*)", output, re.M)
    check(progress and any("best loss" in row and "1 failed" in row for row in progress), f"no progress in the log\n{output}")
    check(all(len(row) <= 110 for row in output.splitlines() if re.search(r" I 0\.0\.\d+: ", row)), f"results do not fit\n{output}")
    forwarded = Screen(folder.command(0, "evolve", "run.yaml", "--run", "runs/forwarded"), folder, 80, PRTE_LAUNCHED="1")
    check(forwarded.end() == 0 and "\x1b[K" not in forwarded.text(), f"a line that mpirun 5 would hold back: {forwarded.text()}")
    os.environ["FORCE_COLOR"] = "1"
    coloured = folder.run(0, "show", "runs/run")
    check(coloured.startswith("\x1b[1mrun runs/run"), "FORCE_COLOR is not obeyed")
    del os.environ["FORCE_COLOR"]
    os.environ["NO_COLOR"] = "1"
    again = folder.run(2, "replay", "runs/run", "0.0.3", expect=1)  # other ranks than in the run
    check("\x1b" not in again and re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d W 0\.0\.3 was begun by 1 ranks", again, re.M), f"{again!r}")
passed("a log has no control characters, and the same content from time to time; FORCE_COLOR and NO_COLOR are obeyed, also by replay; "
       "no line is rewritten under mpirun of Open MPI 5")
