"""Checks `data.normalize: auto`: mean and deviation of the training pixels must agree with numpy. Networks must get the
same normalised pixels on one and two ranks, after a stop, in PyTorch (only from models/best.h5), and in `finch test` of
other data."""
import importlib.util

import h5py
import numpy as np

from harness import Folder, check, curves, individuals, kill, passed, stop_in_training, wait_for, write_hdf5

CONFIG = """
name: own
data: {kind: hdf5, path: own.h5, validation_samples: 150, training_samples: 400, normalize: {mean: auto, deviation: auto}}
model: [{conv: {channels: 4, kernel: 3, activation: relu}}, flatten, linear]
training: {epochs: 3, batch_size: 16, optimizer: adam, learning_rate: $lr}
workers: {ranks: 2, threads: 1}
search: {propagator: random, budget: {evaluations: 3}, space: {lr: {real: [0.001, 0.01], scale: log}}}
checkpoint: {archive_seconds: 0.2, training_seconds: 0.2}
"""
LONG = ("--set", "training.epochs=400", "--set", "search.budget.evaluations=1")


def images_of(labels, generator, brightness):
    """Makes images of three channels. Channel 0 is noise, brighter in the middle for class 1. Channel 1 is the same
    kind of noise divided by 3. Channel 2 is constant."""
    images = generator.normal(brightness, 20, (len(labels), 8, 8, 3))
    images[:, 3:5, 3:5, :] += 60 * labels[:, None, None, None]
    images[..., 1] /= 3
    images[..., 2] = 77
    return np.clip(images, 0, 255).astype(np.uint8)


def snippet(path, images):
    """Computes the scores with the README's PyTorch code, adapted to this network."""
    import torch
    from torch import nn
    with h5py.File(path) as file:
        weights = {name: torch.tensor(file[name][()]) for name in file if "." in name}
        mean, deviation = (torch.tensor(file[name][()]).float().view(-1, 1, 1) for name in ("data/mean", "data/deviation"))
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding="same"), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 8 * 8, 2))
    model.load_state_dict(weights, strict=True)
    return model.eval()((torch.tensor(images).permute(0, 3, 1, 2) / 255 - mean) / deviation).softmax(1).detach().numpy()


with Folder() as folder:
    generator = np.random.default_rng(8)
    labels = generator.integers(0, 2, 600)
    images = images_of(labels, generator, 90)
    other_labels = generator.integers(0, 2, 80)
    others = images_of(other_labels, generator, 50)  # another mean brightness
    write_hdf5(folder.path / "own.h5", {"training/images": images, "training/labels": labels})
    write_hdf5(folder.path / "other.h5", {"test/images": others, "test/labels": other_labels})
    folder.write("own.yaml", CONFIG)

    plan = folder.run(0, "plan", "own.yaml", "--nodes", "1", "--ranks-per-node", "2")
    check("warning: data.normalize.deviation: auto: channel 2 is the same in all pixels that train" in plan, f"plan says\n{plan}")
    said = folder.run(4, "evolve", "own.yaml")
    check("channel 2 is the same" in said and "; normalised by mean 0." in said, said)
    best = folder.path / "runs/own/models/best.h5"
    with h5py.File(best) as model:
        validation = model["validation/index"][:]
        mean, deviation, scores = model["data/mean"][:], model["data/deviation"][:], model["validation/scores"][:]
    numbers = mean, deviation
    left = np.setdiff1d(np.arange(600), validation)
    check(len(left) == 450, "others validate")
    # The seed selects 400 of these 450 images for training, so their moments are near the moments of all 450.
    near = [images[left].astype(float) / 255, images.astype(float) / 255]
    check(np.allclose(mean, near[0].mean((0, 1, 2)), rtol=0.01), f"means of {mean}")
    check(abs(deviation[0] - near[0][..., 0].std()) < 0.01 and deviation[2] == 1, f"deviations of {deviation}")
    passed("plan and evolve say mean and deviation, and warn of a channel that never varies")

    all_train = ("--set", "data.training_samples=all", "--run", "runs/all")
    folder.run(2, "evolve", "own.yaml", *all_train)
    with h5py.File(folder.path / "runs/all/models/best.h5") as model:
        mean, deviation = model["data/mean"][:], model["data/deviation"][:]
        check(np.array_equal(model["validation/index"][:], validation), "another validation set")
    exact = near[0].mean((0, 1, 2)), near[0].std((0, 1, 2))
    check(np.allclose(mean, exact[0], rtol=1e-12) and np.allclose(deviation[:2], exact[1][:2], rtol=1e-12), f"{mean} {deviation}, not {exact}")
    check(not np.allclose(mean[:2], near[1].mean((0, 1, 2))[:2], rtol=1e-5), "the validation set counts, or this test cannot tell")
    passed("they are those of the images that train, and of no others")

    if importlib.util.find_spec("torch") is not None:
        check(np.allclose(snippet(best, images[validation]), scores, atol=2e-5), "PyTorch scores otherwise")
        folder.run(2, "test", "runs/own", "--data", "other.h5", "--csv", "other.csv")
        lines = np.loadtxt(folder.path / "other.csv", delimiter=",", skiprows=1)
        check(np.allclose(snippet(best, others), lines[:, 3:], atol=2e-5), "finch test does not see other data as the training did")
        passed("PyTorch by models/best.h5 alone gives the same scores, of the run's images and of other data")

    by_hand = [f"data.normalize.{key}=[{', '.join(repr(float(value)) for value in values)}]" for key, values in
               (("mean", mean), ("deviation", deviation))]
    folder.run(2, "evolve", "own.yaml", "--set", "data.training_samples=all", "--run", "runs/by_hand", *(word for one in by_hand for word in ("--set", one)))
    check(str(curves(folder.path / "runs/all")) == str(curves(folder.path / "runs/by_hand")), "the same numbers by hand train otherwise")
    passed("the same numbers, said by hand, train to the same bits")

    stop_in_training(folder, "runs/stopped", "own.yaml", *LONG)
    folder.run(2, "evolve", "own.yaml", "--run", "runs/stopped", *LONG)
    folder.run(2, "evolve", "own.yaml", "--run", "runs/whole", *LONG)
    stopped, whole = (curves(folder.path / f"runs/{name}") for name in ("stopped", "whole"))
    check(stopped and str(stopped) == str(whole), "a training that was stopped ends otherwise")
    folder.run(1, "evolve", "own.yaml", "--run", "runs/one", "--set", "workers.ranks=1", "--set", "search.budget.evaluations=1")
    folder.run(2, "evolve", "own.yaml", "--run", "runs/two", "--set", "search.budget.evaluations=1")
    one, two = (min(row["loss"] for row in individuals(folder.path / f"runs/{name}").values()) for name in ("one", "two"))
    check(abs(one - two) < 1e-5, f"{one} on one rank, {two} on two")
    passed("a stop and a resume change no bit; one rank and two agree")

    process = folder.start(2, "evolve", "own.yaml", "--run", "runs/killed", "--set", "search.budget.evaluations=100000")
    best = folder.path / "runs/killed/models/best.h5"
    wait_for(lambda: best.exists() or process.poll() is not None, "a best network")
    kill(process)
    process.wait()
    with h5py.File(best) as model:
        check("test" not in model and np.array_equal(model["data/mean"][:], numbers[0]) and np.array_equal(model["data/deviation"][:], numbers[1]),
              "best.h5 of a killed run does not say what its pixels were")
    check("other data" in folder.run(2, "test", "runs/killed", "--data", "other.h5"), "finch test of a killed run")
    write_hdf5(folder.path / "floats.h5", {"test/images": others.astype(np.float32), "test/labels": other_labels})
    said = folder.run(2, "test", "runs/killed", "--data", "floats.h5", expect=2)
    check("pixels are floating-point numbers, but the network was trained with bytes" in said, said)
    passed("best.h5 of a run that was killed knows what it was trained on")

    def refused(text, *settings):
        said = folder.run(0, "plan", "own.yaml", "--nodes", "1", "--ranks-per-node", "2", *(word for setting in settings for word in ("--set", setting)), expect=2)
        check(text in said, f"'{text}' is not in\n{said}")

    refused("data.normalize is auto, computed once", "data.training_samples=$n", "search.space.n.int=[100, 400]")
    refused("data.normalize.mean: is a gene, and auto no value of one", "data.normalize.mean=$m", "search.space.m.choice=[auto, 0.5]")
    refused("data.normalize.mean: 'automatic' is unknown", "data.normalize.mean=automatic")
    refused("data.validation_samples: 600 of 600", "data.validation_samples=600")
    said = folder.run(2, "evolve", "own.yaml", "--set", "data.normalize.mean=0.5", expect=2)
    check("data.normalize.mean: auto → 0.5" in said, said)
    passed("what does not fit is refused by name")
