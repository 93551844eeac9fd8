"""Exports the best network of a run as a folder for PyTorch."""
import dataclasses
import importlib.util
import inspect
import os
import pathlib
import shlex
import shutil
import warnings

import h5py
import numpy as np

from reporting.program import shown

from .layers import Layers
from .sources import example_source, model_source
from .state_dict import safetensors, write_torch_archive

PARTS = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]  # of a module, in PyTorch's order


class NoNetwork(Exception):
    """The network cannot be exported. The message says why, and what would be accepted."""


@dataclasses.dataclass
class Network:
    title: str  # one line: the individual and the run
    layers: Layers
    shape: tuple  # height, width, channels of an image
    outputs: int
    classifies: bool  # the outputs are logits of classes, otherwise values
    float_pixels: bool  # pixels are floats, otherwise bytes, which are divided by 255
    mean: list  # of each channel
    deviation: list
    classes: list  # class names; empty: the data have none
    weights: dict  # PyTorch's state dict


def place_of(name):
    """Returns the key by which the tensors of a state dict are sorted: modules in order, counters last."""
    *module, part = name.split(".")
    return part == PARTS[-1], [int(word) if word.isdigit() else word for word in module], PARTS.index(part)


def read_network(run):
    """Reads models/best.h5, and asks finch for the layers of its individual."""
    path = run / "models/best.h5"
    if not path.is_file():
        raise NoNetwork(f"{path}: is not there; a run has it once a network is trained, but not if its objective is a function or a program")
    try:
        with h5py.File(path) as best:
            individual, loss = best.attrs["id"], best.attrs["loss"]
            shape, outputs, float_pixels, mean, deviation = (best[f"data/{name}"][()].tolist() for name in ("shape", "outputs", "float_pixels", "mean", "deviation"))
            classes = list(best.attrs.get("classes", []))
            weights = {name: np.asarray(best[name]) for name in sorted((name for name in best if "." in name), key=place_of)}
    except (OSError, KeyError) as error:
        raise NoNetwork(f"{path}: cannot be read, or does not say which images its network takes ({error}); "
                        "accepted: a network that this version trained") from error
    record = shown(run, individual)
    if record["loss"] != loss or "recipe" not in record:
        raise NoNetwork(f"{path}: is not of this run, whose individual {individual} has another loss")
    title = f"The best network of {run}: individual {individual}."
    return Network(title="".join(letter if letter.isprintable() else "?" for letter in title),
                   layers=Layers(record["recipe"]["model"], shape, outputs), shape=tuple(shape), outputs=outputs,
                   classifies=record["recipe"]["training"]["loss"] == "cross_entropy", float_pixels=bool(float_pixels), mean=mean, deviation=deviation,
                   classes=classes, weights=weights)


def write_folder(folder, network):
    """Creates `folder` with all files or not at all."""
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise NoNetwork(f"--output: {folder} is there already; accepted: a new folder, or an empty one")
    new = pathlib.Path(f"{folder.absolute()}.new")
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        new.mkdir()
    except OSError as error:
        raise NoNetwork(f"--output: {new} cannot be created ({error.strerror}); accepted: a new folder, or an empty one") from error
    try:
        (new / "model.py").write_text(model_source(network), encoding="utf-8")
        (new / "example.py").write_text(example_source(network), encoding="utf-8")
        (new / "model.safetensors").write_bytes(safetensors(network.weights))
        write_torch_archive(new / "model.pt", network.weights)
        new.replace(folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def write_onnx(folder, network):
    """Writes model.onnx with the PyTorch of this Python. Newer versions export with TorchDynamo by default, which needs
    the package onnxscript."""
    import torch

    source = importlib.util.spec_from_file_location("exported_model", folder / "model.py")
    model = importlib.util.module_from_spec(source)
    source.loader.exec_module(model)
    outputs, last = ("probabilities", [torch.nn.Softmax(1)]) if network.classifies else ("values", [])
    images = torch.zeros((2, *network.shape), dtype=torch.float32 if network.float_pixels else torch.uint8)
    older = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    new = folder / "model.onnx.new"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(torch.nn.Sequential(model.load(folder), *last).eval(), (images,), str(new), input_names=["images"], output_names=[outputs],
                              dynamic_axes={"images": {0: "N"}, outputs: {0: "N"}}, **older)
        new.replace(folder / "model.onnx")
    finally:
        new.unlink(missing_ok=True)


def write(run, output, with_onnx):
    """Writes the folder `output`, by default NAME-pytorch of the run NAME. Returns a text for the user."""
    folder = output or pathlib.Path(f"{pathlib.Path(os.path.abspath(run)).name}-pytorch")
    network = read_network(run)
    write_folder(folder, network)
    files = "model.py, example.py, model.safetensors, model.pt"
    if with_onnx:
        try:
            write_onnx(folder, network)
        except Exception as error:  # whatever PyTorch or a package of its own raises
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise NoNetwork(f"{folder} is complete, but without model.onnx: PyTorch could not write it ({said}); "
                            "accepted: a Python with PyTorch, and a new folder") from error
        files += ", model.onnx"
    return f"{network.title} Written to {folder}: {files}\nuse it: python3 {shlex.quote(str(folder / 'example.py'))} FILE…"
