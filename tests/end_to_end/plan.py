"""Checks `finch plan`: it refuses the same configurations as `finch evolve`, and prints a description of the data, the
sizes of the networks, and the memory to request."""
import os
import re

from harness import TINY, Folder, check, passed, stop_in_training

REFUSED = {
    "another number of classes": lambda y: y.replace("units: classes", "units: 7"),
    "stride with same": lambda y: y.replace("kernel: 3,", "kernel: 3, padding: same, stride: 40,"),
    "pools that never fit": lambda y: y.replace("kernel: 2}", "kernel: $pool}").replace("    layers:", "    pool: {choice: [39, 40]}\n    layers:"),
    "nothing to train on": lambda y: y.replace("validation_samples: 203", "validation_samples: 600"),
    "precision without a GPU": lambda y: y.replace("epochs: 3", "epochs: 3, precision: tf32"),
    "float16 without a GPU": lambda y: y.replace("epochs: 3", "epochs: 3, precision: float16"),
    "a gene with a precision that needs a GPU": lambda y: y.replace("epochs: 3", "epochs: 3, precision: $precision").replace(
        "    layers:", "    precision: {choice: [float32, tf32]}\n    layers:"),
    "too many islands": lambda y: y.replace("islands: 2", "islands: 9"),
    "missing path": lambda y: y.replace("kind: generated, samples: 600, size: 12", "kind: idx"),
    "an empty folder": lambda y: y.replace("kind: generated, samples: 600, size: 12", "kind: idx, path: empty"),
}
FOUR = ("--nodes", "1", "--ranks-per-node", "4")


def message(output):
    found = [line for line in output.splitlines() if line.startswith("finch: ")]
    check(len(found) == 1, f"{len(found)} messages\n{output}")
    return found[0]


def megabytes(paths):
    return sum(path.stat().st_size for path in paths) / 2**20


def check_disk(folder):
    """Compares the bound of the disk space with the files of a run that is stopped in training, and resumed."""
    wide = TINY.replace("  - linear:", "  - linear: {units: 1000, activation: relu}\n  - linear:").replace("ranks: 2,", "ranks: 1,")
    folder.write("disk.yaml", wide.replace("name: tiny", "name: disk"))
    output = folder.run(0, "plan", "disk.yaml", "--nodes", "1", "--ranks-per-node", "2")
    bound = int(re.search(r"disk: at most (\d+) MiB in the run directory\n", output)[1])
    stop_in_training(folder, "runs/disk", "disk.yaml", "--set", "training.epochs=300")
    run = folder.path / "runs" / "disk"
    stopped = megabytes(path for path in run.rglob("*") if path.is_file())
    folder.run(2, "evolve", "disk.yaml", "--fresh")
    found = max(stopped, megabytes(path for path in run.rglob("*") if path.is_file()))
    check(1 < found <= bound < 10 * found, f"the files take {found} MiB, and the bound is {bound}")
    passed(f"the bound of the disk space: {bound} MiB for {found:.1f}")


def memory(folder, config, ranks):
    output = folder.run(0, "plan", config, "--nodes", "2", "--ranks-per-node", str(ranks))
    return int(re.search(rf"at most (\d+) MiB on a node of {ranks} ranks", output)[1])


def check_warnings(folder):
    """Checks the warnings about what finch evolve would refuse on this machine."""
    os.environ["FINCH_TEST_RAPL"] = "/there/are/no/counters"
    output = folder.run(0, "plan", "tiny.yaml", *FOUR, "--set", "search.objective=[validation_loss, joules]")
    check("warning: search.objective needs joules, but this machine cannot measure them" in output, output)
    check("joules are not known" not in folder.run(0, "plan", "tiny.yaml", *FOUR, "--set", "search.objective=[validation_loss, joules]", "--set", "workers.watts=5"),
          "a warning about estimated joules")
    (folder.path / "data/digits").mkdir(parents=True)
    folder.write("digits.yaml", REFUSED["missing path"](TINY).replace("kind: idx", "kind: idx, path: data/digit"))
    output = folder.run(0, "plan", "digits.yaml", *FOUR)
    check("warning: data/digit is not here yet (did you mean data/digits?)" in output, output)

    folder.run(4, "evolve", "tiny.yaml", "--set", "search.budget.evaluations=2")
    check("warning" not in folder.run(0, "plan", "tiny.yaml", *FOUR), "a warning about the same search")
    other = ("tiny.yaml", "--set", "training.epochs=4")
    refused = message(folder.run(4, "evolve", *other, expect=2))
    output = folder.run(0, "plan", *other, *FOUR)
    check("training.epochs: 3 → 4" in output and "warning: finch evolve refuses this run directory: " + refused[len("finch: "):] in output,
          f"evolve says\n{refused}\nplan says\n{output}")
    for name, objective in (("function", "{function: sphere}"), ("program", "{command: 'echo finch loss={x}'}")):
        space = "" if name == "function" else ", space: {x: {real: [0, 1]}}"
        search = f"{{objective: {objective}{space}, budget: {{evaluations: 2}}}}"
        folder.write(f"{name}.yaml", f"name: {name}\nsearch: {search}\n")
        folder.run(1, "evolve", f"{name}.yaml")
        output = folder.run(0, "plan", f"{name}.yaml", *FOUR)
        check("warning" not in output, f"a warning about the same search\n{output}")
        output = folder.run(0, "plan", f"{name}.yaml", *FOUR, "--set", "seed=8")
        check("warning: finch evolve refuses this run directory: " in output and "seed: 1 → 8" in output, output)
    for name in ("population.h5", "population.h5.previous"):
        (folder.path / "runs/tiny" / name).write_bytes(b"no archive")
    unreadable = "runs/tiny/population.h5: neither the archive nor its predecessor can be read"
    output = folder.run(0, "plan", "tiny.yaml", *FOUR)
    check("warning: finch evolve refuses this run directory: " + unreadable in output, output)
    check("finch: " + unreadable in message(folder.run(4, "evolve", "tiny.yaml", expect=1)), "evolve reads what plan cannot read")
    passed("warnings: another search or damaged archives in the run directory, a misspelled data path, unknown joules")


with Folder() as folder:
    (folder.path / "empty").mkdir()
    for name, change in REFUSED.items():
        check(change(TINY) != TINY, f"{name}: the case changes nothing")
        folder.write("bad.yaml", change(TINY))
        planned = message(folder.run(0, "plan", "bad.yaml", *FOUR, expect=2))
        evolved = message(folder.run(4, "evolve", "bad.yaml", expect=2))
        check(planned == evolved, f"{name}: plan says\n{planned}\nevolve says\n{evolved}")
    folder.write("tiny.yaml", TINY)
    check("more ranks than devices" in folder.run(0, "plan", "tiny.yaml", *FOUR, "--gpus-per-node", "3", expect=2),
          "3 GPUs for 4 ranks are accepted")
    check("cuda:3" in folder.run(0, "plan", "tiny.yaml", *FOUR, "--gpus-per-node", "4"), "no rank on the fourth GPU")

    output = folder.run(0, "plan", "tiny.yaml", *FOUR)
    data = "600 images of 12 x 12 x 1 in 10 classes: 397 train, 203 validate; 100 more test the best model"
    check(data in output, f"plan does not say what the data are\n{output}")
    check(output.count("  cpu\n") == 4, f"four ranks without GPUs do not compute on the CPU\n{output}")
    # The network has 1 to 3 layers of 3x3 convolutions (channels 1 → 4 → 4 → 4, padding same). Pooling gives 6 x 6, and
    # the linear layer is 144 → 10.
    first, more, last = 4 * 9 + 4, 4 * 4 * 9 + 4, 10 * 144 + 10
    check(f"networks: {first + last} to {first + 2 * more + last} parameters" in output, f"parameters\n{output}")
    node, of_cpu, asked = map(int, re.search(r"at most (\d+) MiB on a node of 4 ranks: --mem-per-cpu=(\d+)M with --cpus-per-task=1, or, .* --mem=(\d+)M",
                                             output).groups())
    check(node < asked <= 4 * of_cpu < 1.1 * node, f"memory: {node}, {asked}, {of_cpu}")
    two, eight = memory(folder, "tiny.yaml", 2), memory(folder, "tiny.yaml", 8)
    check(abs((eight - node) - 2 * (node - two)) <= 3, f"every rank more does not take alike: {two}, {node}, {eight} for 2, 4, 8")
    limited = folder.run(0, "plan", "tiny.yaml", *FOUR, "--set", f"search.limits=[parameters <= {first + more + last}]")
    check(f"networks: {first + last} to {first + more + last} parameters" in limited and "break search.limits and are left out" in limited, limited)
    wide = TINY.replace("channels: 4", "channels: $channels").replace("    layers:", "    channels: {int: [1, 512]}\n    layers:")
    folder.write("wide.yaml", wide)
    folder.write("limited.yaml", wide.replace("  budget:", "  limits: [parameters <= 10000]\n  budget:"))
    unlimited, bounded = memory(folder, "wide.yaml", 4), memory(folder, "limited.yaml", 4)
    check(bounded < unlimited - 50, f"networks over the limit count in the memory: {bounded} MiB, without the limit {unlimited}")
    folder.write("few.yaml", TINY.replace("size: 12", "size: 28"))
    folder.write("many.yaml", TINY.replace("samples: 600, size: 12", "samples: 30000, size: 28"))  # 26.3 MiB with 5000 test images
    once = memory(folder, "many.yaml", 8) - memory(folder, "few.yaml", 8)
    check(25 <= once <= 27, f"the ranks of a node do not share one data set of 26.3 MiB: {once}")
    check(data in folder.run(4, "evolve", "tiny.yaml", "--set", "search.budget.evaluations=2"), "evolve does not say what the data are")

    folder.write("later.yaml", REFUSED["missing path"](TINY).replace("kind: idx", "kind: idx, path: data/mnist"))
    output = folder.run(0, "plan", "later.yaml", *FOUR)
    check("data/mnist is not here yet: images, classes and memory are not known" in output, f"no remark\n{output}")
    folder.write("program.yaml", "search: {objective: {command: 'echo {x}'}, space: {x: {real: [0, 1]}}, budget: {evaluations: 2}}\nworkers: {ranks: 3}\n")
    output, cores = folder.run(0, "plan", "program.yaml"), len(os.sched_getaffinity(0))
    ranks = 3 * max(1, cores // 3)
    check(f"this plan is for this machine ({ranks} ranks on its {cores} core" in output and f"{ranks} ranks, {ranks // 3} worker" in output, output)
    folder.run(0, "plan", "later.yaml", "--nodes", "1", "--ranks-per-node", "3", expect=2)
    check("add --ranks-per-node R" in message(folder.run(0, "plan", "later.yaml", "--nodes", "1", expect=2)),
          "one rank per node without a word")
    check("(--ranks-per-node" not in message(folder.run(0, "plan", "later.yaml", *FOUR[:3], "3", expect=2)), "a hint to the option that is given")
    check(message(folder.run(4, "plan", "tiny.yaml", "--set", "trainng.epochs=3", *FOUR, expect=2)), "no error of 4 ranks")
    output = folder.run(0, "plan", "tiny.yaml", "--nodes", "50", "--ranks-per-node", "4")
    check("… and 136 more ranks" in output and len(output.splitlines()) < 80, f"200 ranks are all printed\n{output}")
    passed(f"{len(REFUSED) + 2} refusals, in evolve's words; data, parameters, memory; data that are to come; 200 ranks")
    check_warnings(folder)
    check_disk(folder)
