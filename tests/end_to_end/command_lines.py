"""Checks mistaken command lines: exit code 2, one line in total with the command that was meant, for any number of
ranks."""
import re
import subprocess

from harness import SOURCE, TINY, Folder, check, environment, passed

# {command line: parts of the message}
MISTAKES = {
    "": ["finch: a verb is missing; accepted: evolve, train, "],
    "zebra": ["finch: zebra: there is no such verb; accepted: evolve, "],
    "tiny.yaml": ["(did you mean 'evolve tiny.yaml'?)"],
    "version": ["(did you mean --version?)"],
    "--verison": ["there is no option --verison; did you mean --version?"],
    "report runs/tiny": ["there is no such verb (", "report.py RUN writes the report)"],
    "evolve": ["finch: evolve: config is required; finch evolve --help prints the options"],
    "evolve --resume tiny.yaml": ["there is no option --resume; a run resumes by itself"],
    "evolve tiny.yaml -n 4": ["there is no option -n; the launcher starts the ranks: mpirun -n 4"],
    "evolve tiny.yaml --epochs 3": ["did you mean --set training.epochs=...?"],
    "evolve tiny.yaml --lr=0.1": ["did you mean --set training.learning_rate=...?"],
    "evolve tiny.yaml --kernel 3": ["there is no option --kernel; accepted: --help, --run, --set"],
    "evolve tiny.yaml --output runs/a": ["did you mean --run?"],
    "evolve tiny.yaml --overwrite": ["did you mean --fresh?"],
    "evolve tiny.yaml --sett a=1": ["did you mean --set?"],
    "evolve tiny.yaml training.epochs=3": ["'training.epochs=3' is one argument too many; did you mean --set training.epochs=3?"],
    "evolve tiny.yaml more.yaml": ["finch: evolve: 'more.yaml' is one argument too many\n"],
    "evolve tiny.yaml --set budget.evaluations=80": ["(did you mean search.budget.evaluations?)"],
    "evolve tiny.yaml --set lr=0.1": ["(did you mean search.space.lr?)"],
    "show --watch runs/tiny": ["did you mean --follow?"],
    "show -n 3 runs/tiny": ["did you mean --top?"],
    "show tiny": ["tiny: there is no run here (no population.h5); did you mean runs/tiny?"],
    "show runs": ["; did you mean runs/tiny?"],
    "status tiny": ["; did you mean runs/tiny?"],
    "export runs/tinny --format csv": ["; did you mean runs/tiny?"],
    "test runs/tiny/population.h5": ["; did you mean runs/tiny?"],
    "replay tiny 0.0.1": ["; did you mean runs/tiny?"],
    "plan tiny.yaml --nodes many": ["--nodes: 'many' is not accepted; accepted: a whole number from 1"],
    "data make": ["finch: data: 'make' is no verb; accepted: generate"],
    "data generate digits --n 100": ["did you mean --samples?"],
}


def verbs_that_people_type():
    """Returns the pairs (typed word, own word) of verbs in the table of synonyms."""
    text = (SOURCE / "src/config/synonyms.cpp").read_text()
    text = text[text.index("// Verbs"):]
    return re.findall(r"([a-z]+)=([a-z]+)", text[:text.index("});")])


with Folder() as folder:
    folder.write("tiny.yaml", TINY)
    folder.run(2, "evolve", "tiny.yaml", "--set", "search.budget.evaluations=2", "--set", "workers.islands=1")
    for line, parts in MISTAKES.items():
        output = folder.run(0, *line.split(), expect=2)
        check(output.startswith("finch: ") and output.count("\n") == 1, f"finch {line}: not one line\n{output}")
        for part in parts:
            check(part in output, f"finch {line}: the message does not say '{part}'\n{output}")
    passed(f"{len(MISTAKES)} mistaken command lines, one message each, exit code 2")

    pairs = verbs_that_people_type()
    for word, own in pairs:
        output = folder.run(0, word, expect=2)
        check(re.search(rf"\(did you mean '?{own}\b", output), f"finch {word} does not lead to {own}\n{output}")
    for own in {own for _, own in pairs}:
        folder.run(0, own, "--help")
    check(len(pairs) > 15, f"{len(pairs)} pairs")
    output = folder.run(4, "evolve", "--resume", "tiny.yaml", expect=2)
    check(output.count("finch: ") == 1, f"not one message of 4 ranks:\n{output}")
    # mpirun ends all ranks when one fails: a rank that prints nothing must not fail before the rank that prints.
    for rank, code in ((0, 2), (1, 0)):
        done = subprocess.run(folder.command(0, "zebra"), cwd=folder.path, env=environment() | {"OMPI_COMM_WORLD_RANK": str(rank)},
                              text=True, capture_output=True, stdin=subprocess.DEVNULL)
        check(done.returncode == code and done.stderr.count("finch: ") == (rank == 0) and not done.stdout,
              f"rank {rank}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    passed("what people type instead of a verb leads to it; one rank of several prints the message")

