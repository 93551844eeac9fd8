"""Checks programs on several ranks. If one rank fails while the others wait, the individual gets the right outcome and
explanation. The environment has all variables of torchrun."""
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
     "it ended without a loss: no line of standard output of rank 0 begins with 'finch loss='"),
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
    run(folder, 2, code=1)
    check(all(one == ("failed", "it did not end within 2 s (search.objective.timeout_seconds)") for one in results(folder).values()), f"{results(folder)}")
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
    program = script(folder, """
rank, case = int(os.environ["RANK"]), json.loads(sys.stdin.readline())["genes"]["case"]
print("finch loss=1\\nfinch loss=0.5")
if rank == 1 or case > 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)
""")
    for more, cases, silence in (("", (0, 2), 0), (", persistent: true", (1, 2), 0), (", timeout_seconds: 15", (2,), 1000)):
        folder.write("run.yaml", config(program, ", epochs: 2" + more, budget=len(cases), search=f"first: [{', '.join(f'{{case: {case}}}' for case in cases)}]"))
        output = run(folder, 2, "--fresh", FINCH_TEST_SILENCE=str(silence))
        check(results(folder) == {case: ("evaluated", "") for case in cases}, f"{more}: {results(folder)}")
        check(output.count("it reported its last epoch, has printed nothing") == (silence == 0), f"{more}: {output}")
passed("the time limit ends all ranks, whichever of them waits; a program that does not exit after its last epoch is ended, and its result counts")
end_of_short_form()

SPEAKS = """
case = json.loads(sys.stdin.readline())["genes"]["case"]
speaks = [
    lambda: print("\\r1/2 |#|\\r2/2 |##|\\r\\033[32mfinch\\033[0m loss=0.25"),
    lambda: print("2/2 |##|finch loss=0.25"),
    lambda: print("finch loss=0.25 epoch=0"),
    lambda: print("finch loss=abc"),
    lambda: print("\\r1/2\\r2/2\\rTraceback …\\nValueError: 7", file=sys.stderr),
    lambda: print("INFO: finch loss=0.5 epoch=1\\nfinch loss=0.5\\nfinch is done: loss 0.25"),
]
speaks[case]()
"""
SAID = [
    ("evaluated", ""),
    ("failed", "it ended without a loss: no line of standard output begins with 'finch loss='"),
    ("failed", "invalid report: epochs are whole numbers and count from 1, in 'finch loss=0.25 epoch=0'; valid is 'finch loss=0.31 epoch=3'"),
    ("failed", "invalid report: 'loss=abc' is no number, in 'finch loss=abc'; valid is 'finch loss=0.31 epoch=3'"),
    ("failed", "it ended without a loss: no line of standard output begins with 'finch loss='\nTraceback …\nValueError: 7"),
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
    program = script(folder, """
for line in sys.stdin:
    print("finch loss=1")
    print("finch done", json.loads(line)["id"])
""")
    folder.write("run.yaml", config(program, ", persistent: true", budget=3, workers="{ranks: 1}"))
    run(folder, 1, keep=lambda name: name != "PYTHONUNBUFFERED")
    check([one[0] for one in results(folder).values()] == ["evaluated"] * len(results(folder)), f"{results(folder)}")
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
    run(folder, 1, "--fresh", code=1)
    check(results(folder)[0] == ("failed", "it did not end within 3 s (search.objective.timeout_seconds)"), f"{results(folder)}")
passed("late reports and 'finch done' of another individual do not count for a persistent program; Python is unbuffered")

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
        check((seen["PET_MASTER_ADDR"], seen["PET_MASTER_PORT"]) == (seen["MASTER_ADDR"], seen["MASTER_PORT"]), "torchrun's options")
        of_finch = ("HDF5_USE_FILE_LOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "NCCL_NVLS_ENABLE", "OMPI_MCA_mpi_yield_when_idle")
        check(not [name for name in of_finch if name in seen], "a variable that Finch sets for itself is handed on")
    check("evaluate it again:\n  mpirun -n 2 finch replay runs/run 0.0.1\n" in folder.run(0, "show", "runs/run", "0.0.1"), "a replay")
    folder.write("run.yaml", config(program + " {hosts} {hostfile}", ", launch: leader"))
    output = run(folder, 2, "--fresh", LOCAL_RANK="3", OMPI_MCA_orte_base_help_aggregate="0")
    seen = json.loads((folder.path / "runs/run/seen-0").read_text())
    has_gpu = any(os.path.exists(f"/dev/{device}") for device in ("nvidia0", "kfd", "dri/renderD128"))
    check([seen.get("LOCAL_RANK"), seen.get("TORCHELASTIC_RUN_ID")] == (["0", "0.0.1"] if has_gpu else [None, None]), "the only rank of a program without a GPU")
    check(seen["OMPI_MCA_orte_base_help_aggregate"] == "0", "a user's setting for Open MPI")
    again = folder.run(0, "show", "runs/run", "0.0.1").split("evaluate it again:\n")[1]
    subprocess.run(["sh", "-ec", "export RANK=again; " + again], cwd=folder.path, check=True)
    seen = json.loads((folder.path / "runs/run/seen-again").read_text())
    check(seen["hosts_argument"] == seen["FINCH_HOSTS"] == os.uname().nodename, f"{seen['hosts_argument']}")
    check((folder.path / "again-0.0.1.hosts").read_text() == f"{os.uname().nodename} slots=2\n", "the hosts of the same evaluation")
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
