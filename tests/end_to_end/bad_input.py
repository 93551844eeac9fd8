"""Checks bad input: Finch exits with code 2 and prints one message in total with key path and line, for any number of
ranks."""
import os
import re

from harness import TINY, Folder, check, passed

CASES = {
    "unknown key": (lambda y: y.replace("epochs: 3", "epoch: 3"), ["training.epoch", "epochs"]),
    "duplicate key": (lambda y: y.replace("epochs: 3", "epochs: 3, epochs: 4"), ["training.epochs"]),
    "wrong type": (lambda y: y.replace("epochs: 3", "epochs: three"), ["training.epochs", "three"]),
    "out of range": (lambda y: y.replace("batch_size: 16", "batch_size: 0"), ["training.batch_size"]),
    "NaN": (lambda y: y.replace("learning_rate: $lr", "learning_rate: .nan").replace("    lr:", "    unused_lr:"),
            ["learning_rate"]),
    "reversed bounds": (lambda y: y.replace("[0.1, 1.0]", "[1.0, 0.1]"), ["search.space.lr"]),
    "unused gene": (lambda y: y.replace("repeat: $layers", "repeat: 2"), ["search.space.layers"]),
    "no such gene": (lambda y: y.replace("$layers", "$layer"), ["$layer", "layers"]),
    "reserved gene name": (lambda y: y.replace("$layers", "$loss").replace("    layers:", "    loss:"), ["search.space.loss"]),
    "no network can exist": (lambda y: y.replace("kernel: 2}", "kernel: 50}"), ["max_pool"]),
    "impossible layout": (lambda y: y.replace("ranks: 2", "ranks: 3"), ["workers.ranks"]),
    "too many islands": (lambda y: y.replace("islands: 2", "islands: 9"), ["workers.islands"]),
    "nothing to train on": (lambda y: y.replace("validation_samples: 203", "validation_samples: 600"), ["data.validation_samples"]),
    "missing data": (lambda y: y.replace("kind: generated, samples: 600, size: 12", "kind: idx, path: nowhere"), ["nowhere"]),
    "a path that is not read": (lambda y: y.replace("kind: generated,", "kind: generated, path: data/mnist,"), ["data.path: data/mnist is not used", "data.kind is generated"]),
}

with Folder() as folder:
    for name, (change, expected) in CASES.items():
        text = change(TINY)
        check(text != TINY, f"{name}: the case changes nothing")
        folder.write("bad.yaml", text)
        output = folder.run(4, "evolve", "bad.yaml", expect=2)
        messages = [line for line in output.splitlines() if line.startswith("finch: ")]
        check(len(messages) == 1, f"{name}: {len(messages)} messages\n{output}")
        for word in expected:
            check(word in output, f"{name}: the message does not name '{word}'\n{output}")
        check(not (folder.path / "runs").exists(), f"{name}: a run directory was made")
        print(f"{name}: {messages[0]}")
    line = next(i for i, text in enumerate(TINY.splitlines(), 1) if "epochs: 3" in text)
    folder.write("bad.yaml", TINY.replace("epochs: 3", "epoch: 3"))
    output = folder.run(4, "evolve", "bad.yaml", expect=2)
    check(re.search(rf"bad\.yaml:{line}\b", output), f"the message does not name line {line}\n{output}")
    output = folder.run(0, "shwo", "runs/tiny", expect=2)
    check(output.startswith("finch: shwo: there is no such verb (did you mean 'show'?); accepted: evolve, train, ") and output.count("\n") == 1, output)
    check("bad.yml" in folder.run(4, "evolve", "bad.yml", expect=2), "a missing file is not named")
    folder.write("tiny.yaml", TINY)
    os.symlink("loop", folder.path / "loop")
    for name in ("loop", "x" * 300):
        for verb, *more in (["status"], ["show"], ["export", "--format", "csv"], ["plan"]):
            output = folder.run(0, verb, name, *more, expect=2)
            check(output.startswith(f"finch: {name}: ") and output.count("\n") == 1 and "filesystem error" not in output, output)
        check(f"{name}: there is no run here" in folder.run(0, "status", name, "nowhere", expect=2), f"finch status of two names no {name}")
        folder.write("bad.yaml", TINY.replace("kind: generated, samples: 600, size: 12", f"kind: idx, path: {name}"))
        output = folder.run(4, "evolve", "bad.yaml", expect=2)
        check(f"finch: {name}: " in output and "filesystem error" not in output, output)
    os.environ["FINCH_WINOGRAD_TILE"] = "3"
    output = folder.run(4, "evolve", "tiny.yaml", expect=2)
    check(output.count("finch: ") == 1 and 'FINCH_WINOGRAD_TILE is "3"; it must be 2 or 4' in output, f"a wrong tile\n{output}")
    del os.environ["FINCH_WINOGRAD_TILE"]
    # srun without MPI and the mpirun of another MPI start 4 separate programs: only the first prints, and fails.
    genes = [word for gene in ("layers=1", "activation=relu", "lr=0.1") for word in ("--gene", gene)]
    for size, rank, remedy in (("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "--mpi=pmix"), ("PMI_SIZE", "PMI_RANK", "Start it with /")):
        for number, messages, code in (("0", 1, 2), ("1", 0, 0)):
            os.environ.update({size: "4", rank: number})
            for words in (["evolve"], ["train", *genes]):
                output = folder.run(0, words[0], "tiny.yaml", *words[1:], expect=code)
                check(output.count("finch: ") == messages == output.count(remedy), f"{rank}={number} without MPI says\n{output}")
        del os.environ[size], os.environ[rank]
    check(not (folder.path / "runs").exists(), "a start without MPI made a run directory")
    passed(f"{len(CASES) + 7} kinds of bad input, one message each, exit code 2")
