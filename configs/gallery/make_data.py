"""make_data.py KIND TARGET: writes generated images for configurations of the gallery.

    python3 configs/gallery/make_data.py images data/shapes       folders of circles, squares and triangles
    python3 configs/gallery/make_data.py unequal data/unequal     the same with 400, 60 and 15 training images
    python3 configs/gallery/make_data.py regression data/discs.h5 discs, with their centre and radius as targets

Needs NumPy and Pillow, and h5py for `regression` (tools/install.sh --report).
"""
import pathlib
import sys

import numpy as np
from PIL import Image, ImageDraw

GENERATOR = np.random.default_rng(1)
CLASSES = ("circle", "square", "triangle")
COUNTS = {"images": {"training": (300, 300, 300), "validation": (100, 100, 100), "test": (100, 100, 100)},
          "unequal": {"training": (400, 60, 15), "validation": (100, 30, 30), "test": (100, 30, 30)}}


def corners(name, centre, radius, angle):
    """Returns the corners of a regular polygon."""
    count = {"circle": 60, "square": 4, "triangle": 3}[name]
    turns = angle + 2 * np.pi * np.arange(count) / count
    return [(centre[0] + radius * np.cos(turn), centre[1] + radius * np.sin(turn)) for turn in turns]


def picture(name, side):
    """Draws a shape of random place, size, angle and colour over noise."""
    image = Image.new("RGB", (side, side), tuple(int(value) for value in GENERATOR.integers(0, 120, 3)))
    centre, radius = GENERATOR.uniform(0.35 * side, 0.65 * side, 2), GENERATOR.uniform(0.15 * side, 0.3 * side)
    ImageDraw.Draw(image).polygon(corners(name, centre, radius, GENERATOR.uniform(0, 7)), tuple(int(value) for value in GENERATOR.integers(90, 256, 3)))
    noisy = np.asarray(image) + GENERATOR.normal(0, 25, (side, side, 3))
    return Image.fromarray(noisy.clip(0, 255).astype(np.uint8))


def write_images(target, counts):
    for group, numbers in counts.items():
        for name, count in zip(CLASSES, numbers):
            folder = target / group / name
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                picture(name, int(GENERATOR.integers(32, 64))).save(folder / f"{number:04}.jpg", quality=90)


def write_regression(target):
    """Writes images of discs of 24 x 24 pixels. The targets are row, column and radius, between about -1 and 1."""
    import h5py  # pylint: disable=import-outside-toplevel
    side = 24
    row, column = np.mgrid[:side, :side]
    target.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(target, "w") as file:
        for group, count in (("training", 2000), ("test", 500)):
            centres, radii = GENERATOR.uniform(7, side - 7, (2, count, 1, 1)), GENERATOR.uniform(2, 6, (count, 1, 1))
            discs = (row - centres[0]) ** 2 + (column - centres[1]) ** 2 < radii ** 2
            images = (discs * 160 + GENERATOR.normal(50, 30, (count, side, side))).clip(0, 255)
            file[f"{group}/images"] = images.astype(np.uint8)
            file[f"{group}/labels"] = np.stack([centres[0].ravel() / 6 - 2, centres[1].ravel() / 6 - 2, radii.ravel() / 2 - 2], 1).astype(np.float32)


if len(sys.argv) != 3 or sys.argv[1] not in (*COUNTS, "regression"):
    sys.exit(__doc__)
if sys.argv[1] == "regression":
    write_regression(pathlib.Path(sys.argv[2]))
else:
    write_images(pathlib.Path(sys.argv[2]), COUNTS[sys.argv[1]])
