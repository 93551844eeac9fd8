"""Checks tools/export.py --format pytorch and onnx for networks with every kind of layer, for genes in layers, for
colour images with class names, for regression and for the README's example. model.pt and model.safetensors must contain the arrays of
best.h5; Python's zipfile, pickle and json read them. If torch is installed, model.py must give the scores in best.h5
within 1e-5, and example.py the classes of image files."""
import collections
import hashlib
import importlib.util
import json
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import zipfile

import h5py
import numpy as np
from PIL import Image

from exported_sources import SOURCES
from harness import FINCH, SOURCE, Folder, check, environment, passed

FILES = ["example.py", "model.pt", "model.py", "model.safetensors"]
NETWORKS = {
    # Every layer that has a module of torch.nn, with options other than PyTorch's defaults.
    "layers": """
  - conv: {channels: 6, kernel: 3, activation: relu}
  - conv: {channels: 6, kernel: 4, activation: leaky_relu, repeat: 2}
  - conv: {channels: 6, kernel: 2, stride: 2, activation: silu}
  - batch_norm: {activation: gelu, momentum: 0.3, epsilon: 0.001}
  - conv: {channels: 8, kernel: 3, padding: 0, groups: 2, activation: sigmoid}
  - conv: {channels: 16, kernel: 3, groups: depthwise, dilation: 2}
  - layer_norm: {activation: tanh, epsilon: 0.01}
  - activation: gelu
  - dropout: {rate: 0.1}
  - max_pool: {kernel: 3, stride: 1, padding: 1}
  - average_pool: {kernel: 2, stride: 1, padding: 1}
  - flatten
  - linear: {units: 20, activation: leaky_relu}
  - layer_norm
  - batch_norm: {activation: tanh}
  - linear""",
    # Blocks that keep or change the shape, within blocks, and after a flatten.
    "blocks": """
  - conv: {channels: 4, kernel: 3}
  - block: {layers: [conv: {channels: 6, kernel: 3}, batch_norm: {activation: relu}, conv: {channels: 6, kernel: 3}, batch_norm], activation: relu, repeat: 6}
  - block: {layers: [conv: {channels: 8, kernel: 3, stride: 2, groups: 2, activation: tanh}, layer_norm], activation: silu}
  - block: {layers: [batch_norm, conv: {channels: 4, kernel: 3, activation: relu}], join: concatenate, activation: tanh, repeat: 3}
  - block: {layers: [block: {layers: [conv: {channels: 10, kernel: 1, activation: tanh}], join: concatenate}, conv: {channels: 12, kernel: 1, activation: relu}], repeat: 2}
  - block: {residual: false, layers: [conv: {channels: 16, kernel: 1}], activation: leaky_relu}
  - global_average_pool
  - flatten
  - block: {layers: [linear: {units: 20, activation: gelu}, layer_norm], activation: gelu, repeat: 2}
  - block: {layers: [linear: {units: 20, activation: relu}], activation: sigmoid}
  - linear""",
    # Layers that PyTorch would need a flatten for.
    "pixels": """
  - conv: {channels: 6, kernel: 5, stride: 3, activation: relu}
  - global_average_pool
  - linear: {units: 12, activation: tanh}
  - batch_norm
  - conv: {channels: 10, kernel: 1}""",
    "flat": """
  - block: {layers: [flatten], activation: relu}
  - block: {layers: [linear: {units: 12}], repeat: 2}
  - linear""",
}


class Rebuilt(pickle.Unpickler):
    """Reads model/data.pkl without PyTorch: tensors become numpy arrays."""

    def __init__(self, archive):
        super().__init__(archive.open("model/data.pkl"))
        self.archive = archive

    def find_class(self, module, name):
        known = {("torch._utils", "_rebuild_tensor_v2"): self.tensor, ("collections", "OrderedDict"): collections.OrderedDict,
                 ("torch", "FloatStorage"): np.float32, ("torch", "LongStorage"): np.int64}
        check((module, name) in known, f"the pickle names {module}.{name}")
        return known[module, name]

    def persistent_load(self, storage):
        kind, dtype, key, device, size = storage
        values = np.frombuffer(self.archive.read(f"model/data/{key}"), dtype)
        check(kind == "storage" and device == "cpu" and len(values) == size, f"a storage {storage}")
        return values

    @staticmethod
    def tensor(storage, offset, shape, strides, requires_grad, hooks):
        check(offset == 0 and requires_grad is False and not hooks, "a tensor with hooks")
        check(storage.reshape(shape).strides == tuple(stride * storage.itemsize for stride in strides), f"strides {strides} of {shape}")
        return storage.reshape(shape)


def archive_tensors(path):
    with zipfile.ZipFile(path) as archive:
        check(archive.testzip() is None, f"{path}: a checksum is wrong")
        return Rebuilt(archive).load()


def safetensors(path):
    content = path.read_bytes()
    size, = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + size])
    check(header.pop("__metadata__") == {"format": "pt"} and size % 8 == 0, f"{path}: another header")
    ends, tensors = [0], {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        check(begin == ends[-1], f"{path}: a gap before {name}")
        ends.append(end)
        tensors[name] = np.frombuffer(content[8 + size + begin:8 + size + end], {"F32": np.float32, "I64": np.int64}[entry["dtype"]]).reshape(entry["shape"])
    check(len(content) == 8 + size + ends[-1], f"{path}: another size")
    return tensors


def check_files(folder, best_file):
    """Compares both files of weights with best.h5. Checks that the sources are valid Python."""
    check(sorted(path.name for path in folder.iterdir()) == FILES, f"{folder}: {list(folder.iterdir())}")
    with h5py.File(best_file) as best:
        weights = {name: best[name][()] for name in best if "." in name}
    check(weights, "no weights")
    for tensors in (archive_tensors(folder / "model.pt"), safetensors(folder / "model.safetensors")):
        check(sorted(tensors) == sorted(weights), f"{folder}: {sorted(tensors)}")
        check(all(tensors[name].dtype == weights[name].dtype and np.array_equal(tensors[name], weights[name]) for name in weights), f"{folder}: other weights")
    for name in ("model.py", "example.py"):
        compile((folder / name).read_text(), name, "exec")
    source = (folder / "model.py").read_text()
    check(all(len(line) <= 120 for line in source.splitlines()), f"{folder}: long lines")
    check(hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() in source, f"{folder}: model.py is of other weights")


def has_torch():
    return importlib.util.find_spec("torch") is not None


def can_write_onnx():
    if not has_torch():
        return False
    import torch
    return torch.__version__.startswith("1.") or importlib.util.find_spec("onnx") is not None


def load_module(folder):
    spec = importlib.util.spec_from_file_location("model", folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_scores(folder, best_file, images):
    """Compares the outputs of model.py with the recorded results on the test set."""
    if not has_torch():
        return
    import torch
    with h5py.File(best_file) as best:
        is_labelled = "scores" in best["test"]
        recorded = best["test/scores" if is_labelled else "test/predictions"][()]
        guesses, images = best["test/predictions"][()], images[best["test/index"][()]]
    module = load_module(folder)
    network = module.load()
    found = network.predict(images)
    if is_labelled:
        classes, found = found
        near = np.sort(recorded, 1)[:, -1] - np.sort(recorded, 1)[:, -2] < 1e-4
        check(all(name == module.CLASSES[guess] or tie for name, guess, tie in zip(classes, guesses, near)), f"{folder}: other classes")
    apart = np.abs(found.numpy() - recorded).max()
    check(apart < 1e-5, f"{folder}: the outputs are up to {apart} from the recorded ones")
    check(recorded.std(0).max() > 1e-3, f"{folder}: all images have the same outputs, so this shows little")
    pixels = torch.as_tensor(images[:4]).permute(0, 3, 1, 2).float() / (255 if images.dtype == np.uint8 else 1)
    alone = torch.nn.Sequential(*network)((pixels - network.mean) / network.deviation).flatten(1)
    check(torch.allclose(alone, network(torch.as_tensor(images[:4]))), f"{folder}: the layers alone give other logits")
    for kind in (torch.bfloat16, torch.double):
        outputs = module.load().to(kind).predict(images)
        mean_apart = np.abs((outputs[1] if is_labelled else outputs).numpy() - recorded).mean()
        check(mean_apart < 0.05 * recorded.std(), f"{folder}: in {kind} the outputs are {mean_apart} from the recorded ones")
    for other in (images / 255 if images.dtype == np.uint8 else images.astype(np.uint8), images.transpose(0, 3, 1, 2)):
        try:
            check(network.predict(other) is None, f"{folder}: predict() takes {other.dtype} of shape {other.shape}")
        except TypeError as error:
            check("predict() takes" in str(error) and str(other.shape) in str(error), str(error))
    read = torch.load(folder / "model.pt", weights_only=True)
    check(all(torch.equal(value, network.state_dict()[name]) for name, value in read.items()), f"{folder}: load() has other weights")
    passed(f"{folder.name}: model.py gives the recorded outputs, at most {apart:.1e} apart, which differ by {recorded.std(0).max():.1g} between images")


def train(folder, name, data, model, *settings, training=""):
    folder.write(f"{name}.yaml", f"name: {name}\ndata: {data}\nmodel:{model}\n"
                                 f"training: {{epochs: 2, batch_size: 20, optimizer: adam, learning_rate: 0.001{training}}}\n")
    folder.run(0, "train", f"{name}.yaml", "--run", f"runs/{name}", *settings)
    return folder.path / f"runs/{name}/models/best.h5"


def export(folder, name, *options, kind="pytorch", expect=0, **variables):
    command = [sys.executable, SOURCE / "tools/export.py", f"runs/{name}", "--format", kind, *options]
    ended = subprocess.run(command, cwd=folder.path, env=dict(environment(), FINCH=FINCH, **variables), capture_output=True, text=True, check=False)
    said = ended.stdout + ended.stderr
    check(ended.returncode == expect, f"{command}: exit code {ended.returncode}, expected {expect}\n{said}")
    check(expect == 0 or said.count("\n") == 1, f"not one line: {said}")
    return said


def check_source(folder, name):
    source = (folder / "model.py").read_text()
    check(SOURCES.get(name, "") in source, f"{folder}: expected{SOURCES.get(name)}in\n{source}")


def check_genes(folder, data):
    """Genes choose a layer, its options and repeats. A gene that is not active leaves its key at the default."""
    folder.write("genes.yaml", f"""
name: genes
data: {data}
model:
  - conv: {{channels: 4, kernel: $kernel, activation: $activation, repeat: $repeat}}
  - $pool: {{max_pool: {{kernel: $window, stride: 2}}, average_pool: {{kernel: 2}}}}
  - $norm
  - dropout: {{rate: $rate}}
  - dropout: {{rate: $other}}
  - flatten
  - linear
training: {{epochs: 1, batch_size: 20}}
search:
  space:
    kernel: {{choice: [3, 5]}}
    activation: {{choice: [relu, tanh]}}
    repeat: {{int: [0, 5]}}
    pool: {{choice: [average_pool, max_pool]}}
    window: {{int: [2, 3]}}
    norm: {{choice: [batch_norm, layer_norm]}}
    rate: {{real: [0.1, 0.5]}}
    other: {{real: [0.1, 0.4], when: {{activation: relu}}}}
""")
    genes = ("kernel=5", "activation=tanh", "repeat=5", "pool=max_pool", "window=3", "norm=layer_norm", "rate=0.125")
    folder.run(0, "train", "genes.yaml", "--run", "runs/genes", *(word for gene in genes for word in ("--gene", gene)))
    export(folder, "genes", "-o", "best-genes")
    check_files(folder.path / "best-genes", folder.path / "runs/genes/models/best.h5")
    check_source(folder.path / "best-genes", "genes")
    passed("genes have their values in model.py")


def set_of(random, count, shape, dtype):
    labels = random.integers(0, 3, count)
    images = random.integers(0, 120, (count, *shape)) + 60 * labels[:, None, None, None]
    return images.astype(dtype), labels


def make_data(folder):
    """Writes colour images with class names, and images of floats with five channels and two targets each."""
    random = np.random.default_rng(1)
    with h5py.File(folder.path / "colours.h5", "w") as file:
        file.attrs["classes"] = ['the "red"', "größe", "a\\b"]
        for group, count in (("training", 200), ("test", 60)):
            file[f"{group}/images"], file[f"{group}/labels"] = set_of(random, count, (9, 12, 3), np.uint8)
    with h5py.File(folder.path / "targets.h5", "w") as file:
        for group, count in (("training", 200), ("test", 60)):
            images, labels = set_of(random, count, (8, 7, 5), np.float32)
            file[f"{group}/images"] = images
            file[f"{group}/images"].attrs["axes"] = "NHWC"
            file[f"{group}/labels"] = np.stack([labels, images.mean((1, 2, 3)) / 100], 1).astype(np.float32)


def images_in(folder, name):
    with h5py.File(folder.path / name) as file:
        return file["test/images"][()]


def digits(folder):
    import gzip
    data = gzip.open(folder.path / "data/t10k-images-idx3-ubyte.gz").read()
    return np.frombuffer(data, np.uint8, offset=16).reshape(-1, 17, 17, 1)


def run_example(folder, *arguments):
    ended = subprocess.run([sys.executable, folder / "example.py", *arguments], capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def check_example(folder, best_file, images):
    """Saves test images as files of several kinds. example.py must print the recorded probabilities."""
    if not has_torch():
        return
    with h5py.File(best_file) as best:
        scores, names = best["test/scores"][()], list(best.attrs["classes"])
    picture = Image.fromarray(images[0])
    picture.save(folder / "plain.png")
    opaque = picture.convert("RGBA")
    opaque.save(folder / "opaque.png")
    code, said = run_example(folder, folder / "plain.png", folder / "opaque.png")
    expected = [f"  {scores[0, i]:6.1%}  {names[i]}" for i in np.argsort(-scores[0])]
    check(code == 0 and said.splitlines() == [str(folder / "plain.png"), *expected, str(folder / "opaque.png"), *expected], f"example.py\n{said}")
    check("Warning" not in said, said)
    opaque.putalpha(100)
    opaque.save(folder / "clear.png")
    Image.fromarray(np.arange(99, dtype=np.uint16).reshape(9, 11)).save(folder / "deep.png")
    (folder / "text.png").write_text("no image")
    for name, what in (("clear.png", "transparent pixels"), ("deep.png", "more than 8 bits"), ("text.png", "cannot identify"), ("none.png", "No such file")):
        code, said = run_example(folder, folder / name)
        check(code == 1 and what in said and said.count("\n") == 1, f"{name}\n{said}")
    picture.resize((30, 30)).save(folder / "large.jpg")
    code, said = run_example(folder, folder / "large.jpg")
    check(code == 0 and said.count("%") == 3, f"example.py of a larger image\n{said}")
    passed("example.py prints the recorded probabilities, and refuses what it cannot convert")


def check_onnx(folder, name):
    """Without PyTorch the folder is complete, and one sentence says what is missing. With PyTorch, model.onnx is there."""
    (folder.path / "broken").mkdir()
    folder.write("broken/torch.py", "raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    said = export(folder, name, "-o", "without", kind="onnx", expect=1, PYTHONPATH=str(folder.path / "broken"))
    check("complete, but without model.onnx" in said and "No module named 'torch'" in said, said)
    check(sorted(path.name for path in (folder.path / "without").iterdir()) == FILES, "not the files of --format pytorch")
    if can_write_onnx():
        said = export(folder, name, "-o", "with", kind="onnx")
        check("model.onnx" in said and sorted(path.name for path in (folder.path / "with").iterdir()) == sorted([*FILES, "model.onnx"]), said)
        check(b"probabilities" in (folder.path / "with/model.onnx").read_bytes(), "the output has no name")
    passed("--format onnx writes model.onnx, or says what is missing")


def check_readme(folder, name, images):
    """Runs the README's Python code on the test images."""
    page = (SOURCE / "README.md").read_text().split("## Use the network it found\n")[1].split("\n## ")[0]
    code = re.search(r"```python\n(.*?)```", page, re.S).group(1)
    check(len(code.splitlines()) <= 5, f"the README promises a few lines:\n{code}")
    if not has_torch():
        return
    variables = {"images": images}
    before = os.getcwd()
    os.chdir(folder.path)
    shutil.copytree(name, "best")
    exec(code, variables)
    other = subprocess.run([sys.executable, "-c", f"{code.split('classes')[0]}sys.path.insert(0, 'best-layers')\nmodel.load()"], capture_output=True, text=True)
    check("best-layers/model.py is another network than" in other.stderr, f"two networks in one Python\n{other.stderr}")
    os.chdir(before)
    check(len(variables["classes"]) == len(images) and abs(float(variables["probabilities"].sum()) - len(images)) < 1e-3, "the README's lines")
    passed("the README's lines in PyTorch")


def check_refusals(folder):
    check("best-layers is there already" in export(folder, "layers", "-o", "best-layers", expect=1), "a folder with files")
    folder.write("file", "mine")
    check("file/best.new cannot be created" in export(folder, "layers", "-o", "file/best", expect=1), "a file as a folder")
    (folder.path / "rest.new").mkdir()
    check("rest.new cannot be created (File exists)" in export(folder, "layers", "-o", "rest", expect=1), "the rest of an interrupted export")
    (folder.path / "empty").mkdir()
    export(folder, "layers", "-o", "empty")
    check_files(folder.path / "empty", folder.path / "runs/layers/models/best.h5")
    export(folder, "layers")
    check_files(folder.path / "layers-pytorch", folder.path / "runs/layers/models/best.h5")
    folder.write("sphere.yaml", "name: sphere\nsearch:\n  objective: {function: sphere}\n  budget: {evaluations: 20}\n")
    folder.run(0, "evolve", "sphere.yaml")
    check("not if its objective is a function or a program" in export(folder, "sphere", expect=1), "a run without a network")
    shutil.copy(folder.path / "runs/layers/models/best.h5", folder.path / "runs/flat/models/best.h5")
    said = export(folder, "flat", "-o", "none", expect=1)
    check("is not of this run" in said and not (folder.path / "none").exists(), said)
    said = folder.run(0, "export", "runs/layers", "--format", "onnx", "-o", "a b", expect=2)
    check("finch export does not write onnx; use this command: " in said and "export.py runs/layers --format onnx -o 'a b'" in said, said)
    passed("one sentence for each run and folder that cannot be used")


with Folder() as folder:
    if not has_torch():
        print("not compared with PyTorch: torch is not installed (Debian: python3-torch)", flush=True)
    folder.run(0, "data", "generate", "data", "--samples", 600, "--size", 17)
    make_data(folder)
    for name, model in NETWORKS.items():
        best = train(folder, name, "{kind: idx, path: data, validation_samples: 100, normalize: {mean: auto, deviation: auto}}", model)
        said = export(folder, name, "-o", f"best-{name}/")
        check(f"The best network of runs/{name}: individual 0.0.1. Written to best-{name}: model.py" in said, said)
        check_files(folder.path / f"best-{name}", best)
        check_source(folder.path / f"best-{name}", name)
        check_scores(folder.path / f"best-{name}", best, digits(folder))

    check_genes(folder, "{kind: idx, path: data, validation_samples: 100}")
    some = "\n  - conv: {channels: 6, kernel: 3, activation: relu}\n  - max_pool\n  - flatten\n  - linear"
    best = train(folder, "colours", "{kind: hdf5, path: colours.h5, validation_samples: 50, normalize: {mean: [0.3, 0.4, 0.5], deviation: [0.2, 0.1, 0.3]}}", some)
    export(folder, "colours", "-o", "best-colours")
    check_files(folder.path / "best-colours", best)
    check_scores(folder.path / "best-colours", best, images_in(folder, "colours.h5"))
    check('CLASSES = ["the \\"red\\"", "größe", "a\\\\b"]' in (folder.path / "best-colours/model.py").read_text(), "the classes have other names")
    check_example(folder.path / "best-colours", best, images_in(folder, "colours.h5"))
    check_onnx(folder, "colours")
    check_readme(folder, "best-colours", images_in(folder, "colours.h5"))

    best = train(folder, "targets", "{kind: hdf5, path: targets.h5, validation_samples: 50, normalize: {mean: auto, deviation: auto}}", some, training=", loss: mean_squared_error")
    export(folder, "targets", "-o", "best-targets")
    check_files(folder.path / "best-targets", best)
    check_scores(folder.path / "best-targets", best, images_in(folder, "targets.h5"))
    if has_torch():
        np.save(folder.path / "one.npy", images_in(folder, "targets.h5")[0])
        code, said = run_example(folder.path / "best-targets", folder.path / "one.npy")
        with h5py.File(best) as file:
            expected = file["test/predictions"][0]
        check(code == 0 and np.allclose([float(word) for word in said.split()[1:]], expected, atol=1e-4), f"example.py of an array\n{said}")
    passed("model.pt and model.safetensors have the weights of best.h5")

    check_refusals(folder)
