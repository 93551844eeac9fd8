"""Writes the Python files of an exported network: model.py and example.py."""
import hashlib
import json
import string

from .layers import number
from .state_dict import safetensors

WIDEST = 110  # columns

MODEL = string.Template('''"""$title

    import model
    network = model.load()  # with the weights in model.pt beside this file
    $results = network.predict(images)  # $type of shape (N, $height, $width, $channels)

The state dict has the names of Finch's models/best.h5. The SHA-256 of model.safetensors is
$digest.
"""
import importlib.machinery
import pathlib

import torch
from torch import nn

${classes}SHAPE = ($height, $width, $channels)  # of an image: height, width, channels
$mean$deviation

${blocks}class Network(nn.Sequential):
    def __init__(self):
        super().__init__(
$modules        )
        self.register_buffer("mean", torch.tensor(MEAN, dtype=torch.float32).view(-1, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(DEVIATION, dtype=torch.float32).view(-1, 1, 1), persistent=False)

    def _apply(self, convert, **options):  # half() and bfloat16() leave the normalisation in float32
        device = super()._apply(convert, **options).mean.device
        for name, values in ("mean", MEAN), ("deviation", DEVIATION):
            setattr(self, name, torch.tensor(values, dtype=torch.float32, device=device).view(-1, 1, 1))
        return self

    def forward(self, images):
        """Returns the $outputs of images (N, height, width, channels)."""
        pixels = images.permute(0, 3, 1, 2).float()$scaled
        pixels = ((pixels - self.mean) / self.deviation).to(next(self.parameters(), pixels).dtype)
        return super().forward(pixels)$flattened

    @torch.no_grad()
    def predict(self, images):
        """Returns the $predictions."""
        images = torch.as_tensor(images)
        if $is_other_type or images.shape[1:] != SHAPE:
            raise TypeError("predict() takes $accepted of shape (N, $height, $width, $channels), "
                            f"not {images.dtype} of shape {tuple(images.shape)}")
        outputs = torch.cat([self(part).float() for part in images.to(self.mean.device).split(256)])
        return $returned


def load(folder=pathlib.Path(__file__).parent):
    """Returns the trained network, ready for predict()."""
    here = pathlib.Path(__file__)
    found = importlib.machinery.PathFinder.find_spec("model") if __name__ == "model" else None
    for other in pathlib.Path(folder) / "model.py", pathlib.Path(found and found.origin or here):
        if other.with_suffix(".pt").exists() and other.exists() and other.read_bytes() != here.read_bytes():
            raise ImportError(f"{other} is another network than {here}, which Python has imported as {__name__}; "
                              "from the folder above both, import each as FOLDER.model")
    network = Network()
    network.load_state_dict(torch.load(pathlib.Path(folder) / "model.pt", map_location="cpu", weights_only=True))
    return network.eval()
''')

EXAMPLE = string.Template('''#!/usr/bin/env python3
"""example.py $file…: prints the $results of each file, according to the network in model.py.

Needs PyTorch, numpy$pillow.
"""
import sys

try:
    import numpy as np
$imports
    import model
except ModuleNotFoundError as error:
    sys.exit(f"example.py needs the Python package {error.name}, which {sys.executable} lacks")

$reader

if len(sys.argv) == 1:
    sys.exit(__doc__)
network = model.load()
for path in sys.argv[1:]:
$print''')

IMAGE_READER = string.Template('''
def pixels_of(path):
    """Returns an image as pixels (height, width, channels), converted as by Finch's tools/images_to_hdf5.py."""
    try:
        with Image.open(path) as file:
            image = ImageOps.exif_transpose(file)
    except OSError as error:  # no file, or no image
        sys.exit(f"{path}: {error}")
    if image.mode[0] in "IF":
        $deep
    if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
        image = image.convert("RGBA")
        if image.getchannel("A").getextrema()[0] < 255:
            sys.exit(f"{path}: has transparent pixels; save it with a background")
    image = image.convert("RGB" if image.mode in ("P", "RGBA") else image.mode).convert("$mode")
    image = image.resize((model.SHAPE[1], image.height)).resize(model.SHAPE[1::-1])  # Pillow 13 would choose the order
    return np.array(image, np.$type).reshape(model.SHAPE)
''')
DEEP_REFUSED = 'sys.exit(f"{path}: has more than 8 bits in each channel; save it with 8")'
DEEP_KEPT = '''image = image.resize((model.SHAPE[1], image.height)).resize(model.SHAPE[1::-1])
        return np.asarray(image, np.float32)[..., None].repeat(model.SHAPE[2], 2)'''

ARRAY_READER = string.Template('''
def pixels_of(path):
    """Returns an array (height, width, channels) that numpy.save() wrote."""
    try:
        return np.load(path).astype(np.$type).reshape(model.SHAPE)
    except (OSError, ValueError) as error:  # no file, or no array of this shape
        sys.exit(f"{path}: {error}")
''')

PRINT_CLASSES = '''    _, probabilities = network.predict(pixels_of(path)[None])
    print(path)
    for probability, index in zip(*probabilities[0].topk(min(5, len(model.CLASSES)))):
        print(f"  {probability:6.1%}  {model.CLASSES[index]}")
'''
PRINT_VALUES = '''    values = network.predict(pixels_of(path)[None])[0]
    print(path, *(f"{value:.6g}" for value in values))
'''


def list_source(name, items):
    """Returns "name = [a, b]", in several lines if there are many items."""
    lines = [f"{name} = ["]
    for place, item in enumerate(items):
        item += "," if place + 1 < len(items) else "]"
        if place > 0 and len(lines[-1].encode()) + len(item.encode()) >= WIDEST:
            lines.append(" " * len(lines[0].partition("[")[0]) + " " + item)
        else:
            lines[-1] += " " * (place > 0) + item
    return "\n".join(lines) + "\n"


def classes_source(network):
    if not network.classifies:
        return ""
    if not network.classes:
        return f"CLASSES = range({network.outputs})  # the data do not name the classes\n"
    return list_source("CLASSES", [json.dumps(name, ensure_ascii=False) for name in network.classes])


def model_source(network):
    """Returns the source of model.py: the network as an nn.Sequential, whose state dict has the names of its weights."""
    height, width, channels = network.shape
    if network.classifies:
        words = {"results": "classes, probabilities", "outputs": f"logits (N, {network.outputs})",
                 "predictions": "most probable class of each image, and the probabilities (N, classes)",
                 "returned": "[CLASSES[index] for index in outputs.argmax(1)], outputs.softmax(1)"}
    else:
        words = {"results": "values", "outputs": f"values (N, {network.outputs})", "predictions": "values (N, numbers) of the images", "returned": "outputs"}
    if network.float_pixels:
        words |= {"type": "float32", "scaled": "", "is_other_type": "not images.is_floating_point()", "accepted": "floats like the data"}
    else:
        words |= {"type": "uint8", "scaled": " / 255", "is_other_type": "images.dtype != torch.uint8", "accepted": "bytes (uint8, not divided by 255)"}
    return MODEL.substitute(
        words, title=network.title.replace("\\", "\\\\").replace('"', '\\"'), height=height, width=width, channels=channels,
        digest=hashlib.sha256(safetensors(network.weights)).hexdigest(), classes=classes_source(network),
        mean=list_source("MEAN", [number(value) for value in network.mean]), deviation=list_source("DEVIATION", [number(value) for value in network.deviation]),
        blocks=network.layers.classes, modules=network.layers.modules, flattened="" if network.layers.now.is_flat else ".flatten(1)")


def example_source(network):
    """Returns the source of example.py, which applies model.py to files of images."""
    reads_images = network.shape[2] in (1, 3)
    reader = IMAGE_READER if reads_images else ARRAY_READER
    return EXAMPLE.substitute(
        file="IMAGE" if reads_images else "ARRAY.npy", results="most probable classes" if network.classifies else "predicted numbers",
        pillow=" and Pillow" if reads_images else "", imports="    from PIL import Image, ImageOps\n" if reads_images else "",
        reader=reader.substitute(type="float32" if network.float_pixels else "uint8", mode="L" if network.shape[2] == 1 else "RGB",
                                 deep=DEEP_KEPT if network.float_pixels else DEEP_REFUSED),
        print=PRINT_CLASSES if network.classifies else PRINT_VALUES)
