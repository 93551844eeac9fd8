"""Checks several data sets in place of one (data.systems). Without weights, training gives the same bits as with one
file that holds all images. With weights, an epoch uses images of a small system more often than without. One and two
ranks agree, and a stop in mid-epoch changes no bit. Each system can have its own validation and test set. Finch refuses
settings that do not fit, and names the key or file."""
import gzip
import struct

import h5py
import numpy as np

from harness import Folder, check, curves, individuals, passed, set_of, stop_in_training, write_hdf5

CONFIG = """
name: own
data: {kind: hdf5, path: null, validation_samples: 100, normalize: {mean: auto, deviation: auto}, augmentation: {rotation: 20, shift: 1, mirror: true}}
model: [{conv: {channels: 4, kernel: 3, activation: relu}}, flatten, linear]
training: {epochs: 3, batch_size: 16, optimizer: adam, learning_rate: $lr}
workers: {ranks: 2, threads: 1}
search: {propagator: random, budget: {evaluations: 2}, space: {lr: {real: [0.001, 0.01], scale: log}}}
checkpoint: {archive_seconds: 0.2, training_seconds: 0.2}
"""
LONG = ("--set", "training.epochs=300", "--set", "search.budget.evaluations=1")
BY_SIZE = "data.systems=[{path: a.h5}, {path: b.h5}]"
WEIGHTED = "data.systems=[{path: a.h5, weight: 1}, {path: b.h5, weight: 2}]"


def samples(count, generator, brightness):
    """Returns images of noise with a bright square in one of four corners, and the corners as labels."""
    labels = generator.integers(0, 4, count)
    images = generator.normal(brightness, 25, (count, 10, 10))
    for image, label in zip(images, labels):
        row, column = 5 * (label // 2), 5 * (label % 2)
        image[row + 1:row + 4, column + 1:column + 4] += 50
    return np.clip(images, 0, 255).astype(np.uint8), labels


def write_idx(folder, prefix, images, labels):
    folder.mkdir(exist_ok=True)
    with gzip.open(folder / f"{prefix}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4B3I", 0, 0, 8, 3, *images.shape) + images.tobytes())
    with gzip.open(folder / f"{prefix}-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4BI", 0, 0, 8, 1, len(labels)) + labels.astype(np.uint8).tobytes())


with Folder() as folder:
    generator = np.random.default_rng(9)
    a, b = samples(500, generator, 60), samples(120, generator, 130)
    tests_of_a, tests_of_b = samples(40, generator, 60), samples(30, generator, 130)
    own_of_a, own_of_b = samples(50, generator, 60), samples(20, generator, 130)
    write_hdf5(folder.path / "a.h5", {**set_of("training", *a), **set_of("test", *tests_of_a), **set_of("validation", *own_of_a), "training/site": np.arange(500) % 3})
    write_hdf5(folder.path / "b.h5", {**set_of("training", *b), **set_of("test", *tests_of_b), **set_of("validation", *own_of_b), "training/site": np.arange(120) % 5})

    def joined(one, other):
        return tuple(np.concatenate(pair) for pair in zip(one, other))

    write_hdf5(folder.path / "joint.h5", {**set_of("training", *joined(a, b)), **set_of("test", *joined(tests_of_a, tests_of_b)),
                                     **set_of("validation", *joined(own_of_a, own_of_b))})
    for name, training, tests in (("idx_a", a, tests_of_a), ("idx_b", b, tests_of_b)):
        write_idx(folder.path / name, "train", *training)
        write_idx(folder.path / name, "t10k", *tests)
    folder.write("own.yaml", CONFIG)

    def evolve(run, *settings, ranks=2, more=()):
        folder.run(ranks, "evolve", "own.yaml", "--run", f"runs/{run}", *(word for setting in settings for word in ("--set", setting)), *more)
        return str(curves(folder.path / "runs" / run))

    def plan(*settings, expect=0):
        return folder.run(0, "plan", "own.yaml", "--nodes", "1", "--ranks-per-node", "2", *(word for setting in settings for word in ("--set", setting)), expect=expect)

    said = plan(WEIGHTED)
    with h5py.File(folder.path / "b.h5") as file:
        check(len(file["training/images"]) == 120, "b.h5 has 120 images")
    lines = [line for line in said.splitlines() if line.startswith("system ")]
    check(len(lines) == 2 and "620 images" in said, said)
    check("system a.h5: 500 images, " in lines[0] and "; 173 of the 520 samples of an epoch; 40 test" in lines[0], said)
    check("system b.h5: 120 images, " in lines[1] and "; 347 of the 520 samples of an epoch; 30 test" in lines[1], said)
    passed("plan prints the systems, their sizes and their shares of an epoch")

    joint = evolve("joint", "data.path=joint.h5")
    check(joint == evolve("by_size", BY_SIZE), "two systems by size train otherwise than their images in one file")
    check(joint == evolve("idx", "data.kind=idx", "data.systems=[{path: idx_a}, {path: idx_b}]"), "two folders of IDX files train otherwise")
    own = evolve("own_joint", "data.path=joint.h5", "data.validation=own")
    check(own == evolve("own", BY_SIZE, "data.validation=own"), "own validation sets are not those of one file that holds them all")
    with h5py.File(folder.path / "runs/joint/models/best.h5") as one, h5py.File(folder.path / "runs/by_size/models/best.h5") as other:
        check(all(np.array_equal(one[name][()], other[name][()]) for name in ("test/scores", "test/truth", "validation/index", "data/mean")), "other results")
        check(len(one["test/index"]) == 70, "the test sets are not joined")
    passed("by size, systems train, validate and test as one file that holds them all, to the same bits; HDF5 and IDX")

    evolve("column", BY_SIZE, "data.validation={column: {name: site, values: [2]}}")
    apart = np.flatnonzero(np.concatenate([np.arange(500) % 3, np.arange(120) % 5]) == 2)
    with h5py.File(folder.path / "runs/column/models/best.h5") as model:
        check(np.array_equal(model["validation/index"][()], apart), "a column of both files does not say who validates")
    passed("a column in each file says who validates")

    weighted = evolve("weighted", WEIGHTED)
    check(weighted != joint, "weights change nothing")
    check(weighted == evolve("again", WEIGHTED.replace("1}", "3}").replace("2}", "6}")), "the same proportions train otherwise")
    check(weighted == evolve("blocks", BY_SIZE, "data.auto_prob=prob_sys_size;0:1:0.5;1:2:1"), "blocks of one system train otherwise than weights")
    check(joint == evolve("one_block", BY_SIZE, "data.auto_prob=prob_sys_size;0:2:1"), "one block of all systems is not by size")
    evolve("one", WEIGHTED, "workers.ranks=1", ranks=1)
    losses = [[row["loss"] for row in individuals(folder.path / f"runs/{name}").values()] for name in ("one", "weighted")]
    check(np.allclose(*losses, atol=1e-5), f"one rank and two: {losses}")
    passed("weights in proportion; one rank and two agree")

    stop_in_training(folder, "runs/stopped", "own.yaml", "--set", WEIGHTED, *LONG)
    with h5py.File(next((folder.path / "runs/stopped").glob("state/training-*.h5"))) as snapshot:
        names = []
        snapshot.visit(names.append)
        at = {name.split("position/")[-1]: snapshot[name][()] for name in names if "position/" in name}
    (folder.path / "b.h5").rename(folder.path / "moved.h5")
    moved = WEIGHTED.replace("b.h5", "moved.h5")
    stopped = evolve("stopped", moved, more=LONG)
    check(stopped == evolve("whole", moved, more=LONG), "a training that was stopped ends otherwise")
    passed(f"a training that stopped at sample {at['sample']} of epoch {at['epoch']} goes on to the same bits, also where a system has moved")

    said = folder.run(2, "evolve", "own.yaml", "--run", "runs/stopped", "--set", moved.replace("weight: 2", "weight: 3"), *LONG, expect=2)
    check("data.systems[1].weight: 2 → 3" in said, said)
    said = folder.run(2, "evolve", "own.yaml", "--run", "runs/stopped", "--set", "data.systems=[{path: moved.h5, weight: 1}, {path: a.h5, weight: 2}]", *LONG, expect=2)
    check("checksum" in said, said)
    (folder.path / "moved.h5").rename(folder.path / "b.h5")
    folder.run(2, "evolve", "own.yaml", "--run", "runs/taken", "--set", WEIGHTED, "--reuse", "runs/weighted")
    taken = [row["reused_run"] != 0 for row in individuals(folder.path / "runs" / "taken").values()]
    check(sum(taken) == 2, f"reused {taken}")
    said = folder.run(2, "evolve", "own.yaml", "--run", "runs/other", "--set", BY_SIZE, "--reuse", "runs/weighted", expect=2)
    check("data.systems[0].weight: 1 → null" in said, said)
    passed("weights and the order of systems are fixed for a run; results are reused under the same weights alone")

    text = folder.run(2, "test", "runs/weighted", "--data", "b.h5")
    check("30 images" in text and "other data, b.h5" in text, text)
    check("70 images" in (text := folder.run(2, "test", "runs/weighted")), text)
    check("40 images" in (text := folder.run(2, "test", "runs/weighted", "--set", "data.systems=[{path: a.h5}]")), text)
    passed("finch test takes the systems' test sets, one file, or other systems")

    def refused(text, *settings):
        said = plan(*settings, expect=2)
        check(text in said, f"'{text}' is not in\n{said}")

    wide = samples(20, generator, 60)
    write_hdf5(folder.path / "wide.h5", set_of("training", np.pad(wide[0], ((0, 0), (0, 0), (0, 2))), wide[1]))
    write_hdf5(folder.path / "tiny.h5", {**set_of("training", *samples(2, generator, 60)), "training/site": np.array([2, 2])})
    refused("data.systems: has 0 entries", "data.systems=[]")
    refused("data.systems[1].path: './a.h5' is there already", "data.systems=[{path: a.h5}, {path: ./a.h5}]")
    refused("data.systems[0].path: has no value", "data.systems=[{weight: 1}]")
    refused("data.systems: cannot be combined with data.path", BY_SIZE, "data.path=a.h5")
    refused("data.systems: are of files", "data={kind: generated, systems: [{path: a.h5}]}")
    refused("data.systems[1].weight: stands in some systems only", "data.systems=[{path: a.h5, weight: 1}, {path: b.h5}]")
    for weight in ("0", "-1", ".nan", ".inf", "1e10", "much", "[1]"):
        refused("data.systems[1].weight: ", f"data.systems=[{{path: a.h5, weight: 1}}, {{path: b.h5, weight: {weight}}}]")
    refused("data.systems[1].weight: 1e-06 gives b.h5 none", "data.systems=[{path: a.h5, weight: 1}, {path: b.h5, weight: 1e-6}]")
    refused("wide.h5: images are 10 x 12 x 1 bytes, those of a.h5 10 x 10 x 1 bytes", "data.systems=[{path: a.h5}, {path: wide.h5}]")
    refused("none of the images of tiny.h5 trains", "data.systems=[{path: a.h5, weight: 1}, {path: tiny.h5, weight: 1}]",
            "data.validation={column: {name: site, values: [2]}}")
    refused("wide.h5: has no validation set", "data.systems=[{path: wide.h5}]", "data.validation=own")
    refused("data.path: has no value")
    check("remark: nowhere.h5 is not here yet" in plan("data.systems=[{path: a.h5}, {path: nowhere.h5}]"), "plan of what is not here yet")
    check("no gene can stand here" in plan("data.systems=[{path: a.h5, weight: $w}]", "search.space.w.real=[1, 2]", expect=2), "a gene as a weight")
    passed("what does not fit is refused by name")
