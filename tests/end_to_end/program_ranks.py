"""Checks programs on several ranks. If one rank fails while the others wait, the individual gets the right outcome and
explanation. The environment has all variables of torchrun. Finch explains waiting ranks and late reports once."""
import json
import os
import pathlib
import re
import subprocess
import sys

import h5py

from harness import Folder, check, end_of_short_form, environment, individuals, outcome_words, passed

MPI_PROGRAM = sys.argv[2]


def config(command, objective="", budget=1, workers="{ranks: 2, islands: 1}", search=""):
    return f"""
name: run
search:
  objective: {{command: "{command}", grace_seconds: 0.5{objective}}}
  space: {{case: {{int: [0, 20]}}}}
  propagator: random
  duplicates: train
  budget: {{evaluations: {budget}}}
  {search}
workers: {workers}
"""


def script(folder, text):
    folder.write("program.py", "import json, os, signal, socket, sys, time\n" + text)
    return f"{sys.executable} program.py"


def run(folder, ranks, *settings, keep=None, code=0, **variables):
    """Runs a search and returns its output. Its environment is that of the test and `variables`, limited to the names
    for which `keep` is true."""
    given = {name: value for name, value in {**environment(), **variables}.items() if keep is None or keep(name)}
    done = subprocess.run(folder.command(ranks, "evolve", "run.yaml", *settings), cwd=folder.path, env=given, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    check(done.returncode == code, f"exit code {done.returncode}, not {code}\n{done.stdout}")
    return done.stdout


def results(folder):
    """Returns {case: (outcome, problem)}; `case` is the only gene."""
    path = folder.path / "runs/run"
    words = outcome_words(path)
    with h5py.File(path / "population.h5") as file:
        problems = {row["individual"]: row["text"].decode() for row in file["problems"][:]} if "problems" in file else {}
    return {int(row["case"]): (words[row["outcome"]], problems.get(number, "")) for number, row in individuals(path).items()}


WAITS = "signal.pause()"
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
TAKEN = "sys.exit(f'RuntimeError: [Errno 98] the port {os.environ[\"MASTER_PORT\"]} cannot be had' + 50 * '\\nframe')"
# Each case has the action of rank 0, the action of rank 1, the outcome, and the beginning of the explanation.
CASES = [
    (f"once({TAKEN!r})", f"once({WAITS!r})", "evaluated", ""),
    (f"once({DEAF!r})", f"once({TAKEN!r})", "evaluated", ""),
    (f"once('signal.signal(signal.SIGTERM, lambda *_: sys.exit(\"bind: Address already in use\")); time.sleep(1000)')",
     "once('time.sleep(0.3); sys.exit(\"connection refused\")')", "evaluated", ""),
    (f"time.sleep(0.2); {TAKEN}", WAITS, "failed", "rank 0: exit code 1: "),
    (WAITS, "os.kill(os.getpid(), signal.SIGKILL)", "failed", "rank 1: ended by signal 9 (Killed, as the kernel does where memory runs out)"),
    ("os.kill(os.getpid(), signal.SIGSEGV)", DEAF, "failed", "rank 0: ended by signal 11"),
    (WAITS, "raise MemoryError", "failed", "rank 1: exit code 1: Traceback"),
    ("fails_with_the_other()", "peer = meets(); os._exit(7)", "failed", "rank 1: exit code 7"),
    ("print('finch loss=nan'); sys.exit(0)", "time.sleep(0.3); sys.exit(3)", "failed", "rank 1: exit code 3"),
    ("sys.exit(0)", "print('finch loss=1'); sys.exit(0)", "failed",
     "it ended without a loss: no line of standard output begins with 'finch loss='; 'finch loss=1' came from rank 1, but only rank 0's reports are read"),
    (WAITS, "os.kill(os.getpid(), signal.SIGTERM)", "failed", "rank 1: ended by signal 15"),
    (f"print('finch loss=1'); time.sleep(0.2); {TAKEN}", WAITS, "failed", "rank 0: exit code 1: "),
]

with Folder() as folder:
    cases = "".join(f"    ({zero!r}, {one!r}),\n" for zero, one, _, _ in CASES)
    program = script(folder, f"""
rank, given = int(os.environ["RANK"]), json.loads(sys.stdin.readline())
cases = [
{cases}]


def once(text):
    mark = os.path.join(os.environ["FINCH_RUN"], f"began-{{given['genes']['case']}}-{{rank}}")
    if not os.path.exists(mark):
        open(mark, "w").close()
        time.sleep(0.1 if "Errno" in text else 0)
        exec(text)


def meets():
    while True:
        try:
            return socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
        except ConnectionRefusedError:
            time.sleep(0.01)


def fails_with_the_other():
    peer = socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))).accept()[0]
    peer.recv(1)
    time.sleep(0.03)
    sys.exit("RuntimeError: Connection closed by peer")


exec(cases[given["genes"]["case"]][rank])
if rank == 0:
    print("finch loss=1")
""")
    first = ", ".join(f"{{case: {number}}}" for number in range(len(CASES)))
    folder.write("run.yaml", config(program, budget=len(CASES), search=f"first: [{first}]"))
    output = run(folder, 2)
    found = results(folder)
    for number, (_, _, outcome, problem) in enumerate(CASES):
        check(found[number][0] == outcome and found[number][1].startswith(problem), f"case {number}: {found[number]}, not {(outcome, problem)}")
    check(len(re.findall(r"begins once more with another MASTER_PORT than \d+: rank ", output)) == 4, output)
    check(output.count("begins once more") == 4, output)
passed("a taken port, a signal, a fault and an exit on one rank are judged right while the other rank waits")

with Folder() as folder:
    program = script(folder, """
rank, case = int(os.environ["RANK"]), json.loads(sys.stdin.readline())["genes"]["case"]
if rank == 0:
    print("finch loss=1")
if rank != case:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)
""")
    folder.write("run.yaml", config(program, ", timeout_seconds: 2", budget=3, search="first: [{case: 0}, {case: 1}, {case: 2}]"))
    output = run(folder, 2, code=1, FINCH_TEST_SILENCE="0")
    check(all(one == ("failed", "it did not end within 2 s (search.objective.timeout_seconds)") for one in results(folder).values()), f"{results(folder)}")
    check(output.count("some ranks of the program ended") == 1, output)
    program = script(folder, """
rank, case = int(os.environ["RANK"]), json.loads(sys.stdin.readline())["genes"]["case"]
if rank == 0:
    print(f"finch loss={case}\\nfinch loss={case}")
if rank == 1 or case > 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000 if case > 0 else 0.1)
print("finch loss=0 epoch=9")
""")
    folder.write("run.yaml", config(program, ", epochs: 9", budget=3, search="first: [{case: 0}, {case: 1}, {case: 2}]\n  pruning: {median: {least: 1}}"))
    run(folder, 2, "--fresh")
    check([one[0] for _, one in sorted(results(folder).items())] == ["evaluated", "pruned", "pruned"], f"{results(folder)}")
passed("the time limit ends all ranks, whichever of them waits, and what they wait for is said once")
end_of_short_form()

SPEAKS = """
case = json.loads(sys.stdin.readline())["genes"]["case"]
speaks = [
    lambda: print("\\r1/2 |#|\\r2/2 |##|\\r\\033[32mfinch\\033[0m loss=0.25"),
    lambda: print("2/2 |##|finch loss=0.25"),
    lambda: print("INFO: finch loss=0.25", file=sys.stderr),
    lambda: print("finch loss=0.25 epoch=0"),
    lambda: print("finch loss=abc"),
    lambda: print("\\r1/2\\r2/2\\rTraceback …\\nValueError: 7", file=sys.stderr),
    lambda: print("finch loss=0.5\\n2/2 |##|finch loss=0.25\\nfinch is done: loss 0.25"),
    lambda: print("INFO: finch loss=0.5 epoch=1\\nfinch loss=0.5\\nINFO: finch loss=0.5\\nfinch's loss: 0.25"),
]
speaks[case]()
"""
SAID = [
    ("evaluated", ""),
    ("failed", "it ended without a loss: no line of standard output begins with 'finch loss='; '2/2 |##|finch loss=0.25' is not a report"),
    ("failed", "it ended without a loss: no line of standard output begins with 'finch loss='; 'INFO: finch loss=0.25' is on standard error\nINFO: finch loss=0.25"),
    ("failed", "invalid report: epochs are whole numbers and count from 1, in 'finch loss=0.25 epoch=0'; valid is 'finch loss=0.31 epoch=3'"),
    ("failed", "invalid report: 'loss=abc' is no number, in 'finch loss=abc'; valid is 'finch loss=0.31 epoch=3'"),
    ("failed", "it ended without a loss: no line of standard output begins with 'finch loss='\nTraceback …\nValueError: 7"),
    ("failed", "invalid report: '2/2 |##|finch loss=0.25' does not begin with 'finch '; valid is 'finch loss=0.31 epoch=3' on a line of its own"),
    ("evaluated", ""),
]
with Folder() as folder:
    first = ", ".join(f"{{case: {number}}}" for number in range(len(SAID)))
    folder.write("run.yaml", config(script(folder, SPEAKS), budget=len(SAID), workers="{ranks: 1}", search=f"first: [{first}]"))
    run(folder, 1)
    check(results(folder) == dict(enumerate(SAID)), f"{results(folder)}")
passed("a report behind a progress bar or in colours counts; one that cannot be read is quoted, with what would be valid")

with Folder() as folder:
    folder.write("program.sh", """
if [ $FINCH_GENE_case = 0 ]; then
    exec > >(while kill -0 $$; do :; done 2>&-; cat; echo finch loss=0.25)
    echo finch loss=0.5
else
    sleep 1000 &
    echo finch loss=0.5
    [ $FINCH_GENE_case = 1 ] || echo finch loss=0.4 epoch=3
fi
""")
    folder.write("run.yaml", config("bash program.sh", ", epochs: 3", budget=3, workers="{ranks: 1}", search="first: [{case: 0}, {case: 1}, {case: 2}]"))
    run(folder, 1)
    found = results(folder)
    check(found[0] == ("evaluated", "") and [row["loss"] for row in individuals(folder.path / "runs/run").values() if row["case"] == 0] == [0.25], f"{found}")
    check(found[1] == ("failed", 'it ended while 1 of its processes still ran (a "&" without "wait"?)'), f"{found}")
    check(found[2] == ("evaluated", ""), f"{found}")
passed("the last report comes through a filter of the output; a program that leaves its training in the background has failed, one that leaves a helper has not")

with Folder() as folder:
    folder.write("run.yaml", config(script(folder, "sys.stdin.read()"), ", persistent: true, timeout_seconds: 3", budget=2, workers="{ranks: 1}"))
    output = run(folder, 1, code=1, FINCH_TEST_SILENCE="1")
    check(output.count("the persistent program has said nothing for") == 1, output)
    program = script(folder, """
for line in sys.stdin:
    print("finch loss=1")
    print("finch done", json.loads(line)["id"])
""")
    folder.write("run.yaml", config(program, ", persistent: true", budget=3, workers="{ranks: 1}"))
    run(folder, 1, "--fresh", keep=lambda name: name != "PYTHONUNBUFFERED")
    check([one[0] for one in results(folder).values()] == ["evaluated"] * len(results(folder)), f"{results(folder)}")
    program = script(folder, """
sys.stdout = open(1, "w", buffering=1 << 16)
for epoch in range(1, 7):
    print(f"finch loss=1 epoch={epoch}")
    time.sleep(0.2)
""")
    folder.write("run.yaml", config(program, ", epochs: 6", budget=2, workers="{ranks: 1}", search="pruning: median"))
    output = run(folder, 1, "--fresh")
    check(output.count("arrived at the end of its") == 1 and "must flush each one" in output, output)
    late = 'import time; [(print("finch loss=1"), time.sleep(0.3)) for _ in range(6)]'
    output = run(folder, 1, "--fresh", "--set", f"search.objective.command={sys.executable} -c '{late}'")
    check("arrived at the end of its" not in output, output)
    program = script(folder, """
for number, line in enumerate(sys.stdin):
    if number:
        print("finch loss=-1")  # late: of the individual before
    print("finch done")
""")
    folder.write("run.yaml", config(program, ", persistent: true", budget=2, workers="{ranks: 1}", search="first: [{case: 0}, {case: 1}]"))
    run(folder, 1, "--fresh", code=1)
    check(list(results(folder).values()) == 2 * [("failed", "it said 'finch done' before a loss")], f"{results(folder)}")
    program = script(folder, "print('finch loss=1\\nfinch done 1')\nsys.stdin.read()\n")
    folder.write("run.yaml", config(program, ", persistent: true, timeout_seconds: 3", budget=2, workers="{ranks: 1}", search="first: [{case: 0}, {case: 1}]"))
    output = run(folder, 1, "--fresh", code=1)
    check(output.count("'finch done 1' is ignored, it names another individual") == 1, output)
    check(results(folder)[0][1].endswith("; 'finch done 1' names another individual than 0.0.1"), f"{results(folder)}")
    program = script(folder, "print('finch loss=1\\nfinch loss=2')")
    folder.write("run.yaml", config(program, ", epochs: 27, interactive: true", budget=2, workers="{ranks: 1}", search="pruning: median"))
    output = run(folder, 1, "--fresh")
    check(output.count("it ended with exit code 0 after 2 of 27 epochs") == 1 and output.count("it has not asked 'finch stop?'") == 1, output)
    folder.write("run.yaml", config(program, ", epochs: 2", budget=2, workers="{ranks: 1}", search="pruning: median"))
    output = run(folder, 1, "--fresh")
    check("exit code 0" not in output and "has not asked" not in output, output)
passed("what waits for a silent program, and reports that come too late for pruning, are explained once; Python is unbuffered")

with Folder() as folder:
    program = script(folder, """
for line in sys.stdin:
    mark = os.path.join(os.environ["FINCH_RUN"], "began-" + os.environ["RANK"])
    if not os.path.exists(mark):
        open(mark, "w").close()
        while os.environ["RANK"] == "1" or not os.path.exists(mark[:-1] + "1"):
            time.sleep(0.01)
        sys.exit(0)
    print("finch loss=1\\nfinch done")
""")
    folder.write("run.yaml", config(program, ", persistent: true", budget=2))
    output = run(folder, 2)
    check(output.count("begins once more") == 1, output)
    check({one[0] for one in results(folder).values()} == {"evaluated"}, f"{results(folder)}")
passed("a persistent program that ends on one rank before it has said anything is started again on all of them")

with Folder() as folder:
    program = script(folder, """
with open(os.path.join(os.environ["FINCH_RUN"], "seen-" + os.environ["RANK"]), "w") as file:
    json.dump(dict(os.environ, hosts_argument=sys.argv[1]), file)
print("finch loss=1")
""")
    folder.write("run.yaml", config(program + " {hosts}"))
    run(folder, 2, keep=lambda name: name not in ("HDF5_USE_FILE_LOCKING", "PYTHONUNBUFFERED", "CUDA_VISIBLE_DEVICES"),
        OMPI_MCA_btl_tcp_if_include="lo", MASTER_PORT="1", NODE_RANK="7")
    for rank in ("0", "1"):
        seen = json.loads((folder.path / "runs/run" / f"seen-{rank}").read_text())
        expected = {"RANK": rank, "LOCAL_RANK": rank, "ROLE_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "ROLE_WORLD_SIZE": "2",
                    "GROUP_RANK": "0", "NODE_RANK": "0", "GROUP_WORLD_SIZE": "1", "ROLE_NAME": "default", "TORCHELASTIC_RUN_ID": "0.0.1",
                    "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_USE_AGENT_STORE": "False",
                    "PYTHONUNBUFFERED": "1", "OMPI_MCA_btl_tcp_if_include": "lo", "MASTER_ADDR": "127.0.0.1", "FINCH_HOSTS": os.uname().nodename}
        check(all(seen.get(name) == value for name, value in expected.items()), f"{ {name: seen.get(name) for name in expected} }")
        check(seen["hosts_argument"] == seen["FINCH_HOSTS"] and seen["MASTER_PORT"] != "1", f"{seen['hosts_argument']}")
        of_finch = ("HDF5_USE_FILE_LOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "NCCL_NVLS_ENABLE", "OMPI_MCA_mpi_yield_when_idle")
        check(not [name for name in of_finch if name in seen], "a variable that Finch sets for itself is handed on")
for more, is_said in (("", True), (", share_device: true", False)):
    with Folder() as folder:
        folder.write("run.yaml", config("echo finch loss=1", budget=2, workers="{ranks: 1, islands: 1" + more + "}"))
        output = run(folder, 2, CUDA_VISIBLE_DEVICES="3")
        check(("the workers 0 and 1 share the device CUDA_VISIBLE_DEVICES=3 on" in output) == is_said, output)
passed("a program finds all of torchrun's variables, and none that Finch and its launcher set for themselves")

with Folder() as folder:
    command = f"mpirun -n 2 --hostfile {{hostfile}} {MPI_PROGRAM}"
    folder.write("run.yaml", config(command, ", launch: leader", budget=2))
    run(folder, 2)
    check({one[0] for one in results(folder).values()} == {"evaluated"}, f"{results(folder)}")
    losses = [row["loss"] for row in individuals(folder.path / "runs/run").values()]
    check(losses == [2.01, 2.01], f"{losses}")
    left = [path.name for path in (folder.path / "runs/run").glob("evaluations/*/*.hosts")]
    check(not left, f"{left}")
passed("the leader's program starts an MPI program on the ranks of its worker")
