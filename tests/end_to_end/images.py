"""Checks tools/images_to_hdf5.py: it stores images of each mode with the pixels that Pillow reads, or refuses an image
and names its file. The tool also counts skipped files. Then the test follows the names of classes from the folders
through a training to models/best.h5, `finch test` and its table, and the report."""
import base64
import csv
import itertools
import os
import re
import struct
import subprocess
import sys

import h5py
import numpy as np
from PIL import Image

from harness import SOURCE, Folder, check, end_of_short_form, individuals, passed

GENERATOR = np.random.default_rng(4)
COLOURS = GENERATOR.integers(0, 256, (8, 6, 3)).astype(np.uint8)
GREY = COLOURS[..., 0]
DEEP = (np.arange(48).reshape(8, 6) * 1365).astype(np.uint16)
RGB, L = Image.fromarray(COLOURS), Image.fromarray(GREY)
CONFIG = """
name: named
data: {kind: hdf5, path: made/data.h5, validation: own}
model: [flatten, {linear: {units: classes}}]
training: {epochs: 3, batch_size: 8, learning_rate: $lr}
workers: {ranks: 1, threads: 1}
search: {propagator: random, budget: {evaluations: 1}, space: {lr: {real: [0.01, 0.1]}}}
"""
AVIF_OF_10_BITS = (  # an AVIF file of 6 x 8 pixels
    "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUEAAADrbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAAAAAAAOcGl0bQAAAAAA"
    "AQAAAB5pbG9jAAAAAEQAAAEAAQAAAAEAAAETAAAAHgAAAChpaW5mAAAAAAABAAAAGmluZmUCAAAAAAEAAGF2MDFDb2xvcgAAAABqaXBycAAAAEtpcGNvAAAA"
    "FGlzcGUAAAAAAAAACAAAAAYAAAAQcGl4aQAAAAADCgoKAAAADGF2MUOBIEAAAAAAE2NvbHJuY2x4AAIAAgAGgAAAABdpcG1hAAAAAAAAAAEAAQQBAoMEAAAA"
    "Jm1kYXQSAAoIOAi9bwICBpAyEBeCYwTAAPIAAACQPT6zVcA=")
ODD = ['a,"quoted"', "<b>bold<!--<script>", "größe 猫", "two\nlines\x1b[31m"]


def write_tiff(path, pixels, tags):
    """Writes `pixels` (height, width, channels) as one uncompressed strip. Adds `tags` (16-bit values) to the required
    tags."""
    height, width, channels = pixels.shape
    data, longer, entries = pixels.tobytes(), b"", b""
    tags = {256: (width,), 257: (height,), 258: (8 * pixels.itemsize,) * channels, 259: (1,), 262: (2 if channels > 2 else 1,), 273: (8,),
            277: (channels,), 278: (height,), 279: (len(data),), **tags}
    for tag, numbers in sorted(tags.items()):
        values = struct.pack(f"<{len(numbers)}H", *numbers)
        if len(values) > 4:
            values, longer = struct.pack("<I", 8 + len(data) + len(longer)), longer + values
        entries += struct.pack("<HHI", tag, 3, len(numbers)) + values.ljust(4, b"\0")
    path.write_bytes(b"II*\0" + struct.pack("<I", 8 + len(data) + len(longer)) + data + longer + struct.pack("<H", len(tags)) + entries + bytes(4))


class Images:
    def __init__(self, folder):
        self.folder, self.path, self.number = folder, folder.path / "images0", 0

    def begin(self, *classes):
        """Makes a new folder of images, with one good image in each class."""
        self.number += 1
        self.path = self.folder.path / f"images{self.number}"
        for name in classes or ("a", "b"):
            (self.path / name).mkdir(parents=True)
            L.save(self.path / name / "good.png")
        return self.path

    def convert(self, *words, file="made/data.h5", refused=None):
        """Runs the tool and returns its output. `refused`: the tool must fail, and its last line must match this
        pattern."""
        done = subprocess.run([sys.executable, SOURCE / "tools/images_to_hdf5.py", self.path, file, *words], cwd=self.folder.path, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check("Traceback" not in done.stdout, done.stdout)
        check((done.returncode != 0) == (refused is not None), done.stdout)
        check(refused is None or re.search(refused, done.stdout), f"'{refused}' is not in\n{done.stdout}")
        return done.stdout

    def first(self):
        with h5py.File(self.folder.path / "made/data.h5") as file:
            return file["training/images"][0]


def modes(images):
    def stored(expected, name, *words, image=None, **options):
        (image or RGB).save(images.begin() / f"a/{name}", **options)
        (images.path / "a/good.png").unlink()
        if "--floats" in words:
            (image or RGB).save(images.path / f"b/{name}", **options)
            (images.path / "b/good.png").unlink()
        said = images.convert(*words)
        check(np.array_equal(images.first(), expected), f"{name} {words}:\n{images.first()}\nexpected\n{expected}")
        return said

    def refused(text, name, *words, image=None, **options):
        (image or RGB).save(images.begin() / f"a/{name}", **options)
        images.convert(*words, refused=rf"a/{name}: .*{text}")

    grey = np.repeat(GREY[..., None], 3, axis=2)
    half = RGB.copy()
    half.putalpha(Image.fromarray(np.where(GREY > 128, 255, 0).astype(np.uint8)))
    indexed = RGB.quantize(16)
    stored(COLOURS, "a.png")
    stored(COLOURS, "a.BMP")
    stored(COLOURS, "opaque.png", image=RGB.convert("RGBA"))
    stored(grey, "a.gif", image=L)
    stored(grey, "opaque.png", image=L.convert("LA"))
    stored(GREY[..., None], "a.png", "--grey", image=L)
    stored(np.repeat(255 * (np.asarray(L.convert("1"))[..., None]), 3, axis=2), "a.png", image=L.convert("1"))
    stored(np.asarray(indexed.convert("RGB")), "a.png", image=indexed)
    stored(255 - np.asarray(RGB.convert("CMYK"))[..., :3], "a.tif", image=RGB.convert("CMYK"))
    refused("transparent", "half.png", image=half)
    refused("transparent", "half.png", image=indexed, transparency=0)
    stored(np.where(GREY[..., None] > 128, COLOURS, (9, 8, 7)), "half.png", "--background", "9", "8", "7", image=half)
    refused("CIELAB", "a.tif", image=Image.fromarray(COLOURS, "LAB"))
    for name, image, number in (("a.png", Image.fromarray(DEEP), DEEP), ("a.tif", Image.fromarray(DEEP), DEEP),
                                ("a.tif", Image.fromarray(DEEP.astype(np.int32)), DEEP), ("a.tif", Image.fromarray(DEEP / np.float32(7)), DEEP / np.float32(7))):
        refused("more than 8 bits", name, image=image)
        image.save(images.begin() / f"a/{name}")
        images.convert("--floats", refused="good.png: has 8 bits, .* expected the same of all")
        stored(number[..., None], name, "--grey", "--floats", image=image)
    (images.begin() / "a/a.ppm").write_bytes(b"P6 2 1 65535\n" + bytes(12))
    images.convert("--floats", refused="a/a.ppm: has more than 8 bits")
    refused("2 pages or frames", "a.tif", save_all=True, append_images=[RGB])
    refused("2 pages or frames", "a.gif", save_all=True, append_images=[L])
    turned = {2: COLOURS[:, ::-1], 3: COLOURS[::-1, ::-1], 4: COLOURS[::-1], 5: COLOURS.swapaxes(0, 1), 6: np.rot90(COLOURS, -1),
              7: COLOURS[::-1, ::-1].swapaxes(0, 1), 8: np.rot90(COLOURS)}
    for orientation, expected in turned.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        said = stored(expected, "a.png", *(("--size", *map(str, expected.shape[:2])) if orientation > 4 else ()), exif=exif)
        check("turned as EXIF says: 1, for example a/a.png" in said, said)
        for name, options in (("a.jpg", {"quality": 100, "exif": exif}), ("a.tif", {"tiffinfo": {0x0112: orientation}}),
                              ("a.tif", {"tiffinfo": {0x0112: orientation}, "compression": "tiff_lzw"})):
            flat = Image.fromarray(np.repeat(COLOURS // 32 * 32, 8, axis=0).repeat(8, axis=1))
            flat.save(images.begin() / f"a/{name}", **options)
            (images.path / "a/good.png").unlink()
            said = images.convert("--size", *map(str, (8 * expected.shape[0], 8 * expected.shape[1])))
            error = np.abs(images.first()[4::8, 4::8].astype(int) - expected // 32 * 32).max()
            check(error == 0 if name == "a.tif" else error < 16, f"{name}, orientation {orientation}, {options}: differs by {error}")
            check(f"turned as EXIF says: 1, for example a/{name}" in said, said)
    for name, part in itertools.product(("a.png", "a.jpg", "a.tif", "a.gif", "a.bmp", "a.webp"), (0, 0.5)):
        Image.fromarray(GENERATOR.integers(0, 256, (40, 40, 3)).astype(np.uint8)).save(images.begin() / f"a/{name}")
        data = (images.path / f"a/{name}").read_bytes()
        (images.path / f"a/{name}").write_bytes(data[:int(len(data) * part)])
        images.convert(refused=f"a/{name}: cannot be read as an image")
    passed("images of all modes are stored as they are, or refused by name; so are broken ones and those of several pages")


def changed_numbers(images):
    """Checks that the tool refuses a file if Pillow would scale or clip its numbers or drop channels. It stores 32-bit
    integers, signed or unsigned, exactly."""
    def refused(text, name, *words, write):
        write(images.begin() / f"a/{name}")
        (images.path / "a/good.png").unlink()
        (images.path / "b/good.png").write_bytes((images.path / f"a/{name}").read_bytes())
        images.convert(*words, refused=rf"a/{name}: .*{text}")

    def changed_header(save, marker, offset, value):
        def write(path):
            save(path)
            data = bytearray(path.read_bytes())
            data[data.index(marker) + offset] = value
            path.write_bytes(data)
        return write

    for text, pixels, tags in (("has 4 channels", np.dstack([COLOURS, GREY]), {338: (0,)}), ("has 2 channels|cannot be read", COLOURS[..., :2].copy(), {338: (0,)}),
                               ("has 5 channels|cannot be read", np.dstack([COLOURS, GREY, GREY]), {338: (0, 0)}),
                               ("has signed numbers|cannot be read", GREY[..., None].astype(np.int8), {339: (2,)})):
        for words in ((), ("--floats",)):
            refused(text, "a.tif", *words, write=lambda path: write_tiff(path, pixels, tags))
    refused("float32 would round", "a.tif", "--floats", write=lambda path: write_tiff(path, np.full((8, 6, 1), 16777217, np.int32), {339: (2,)}))
    for numbers, tags in ((3000000000 + 256 * DEEP.astype(np.uint32), {}), (-DEEP.astype(np.int32), {339: (2,)})):
        images.begin()
        for name in "ab":
            (images.path / f"{name}/good.png").unlink()
            write_tiff(images.path / f"{name}/a.tif", numbers[..., None], tags)
        images.convert("--floats", "--grey")
        check(np.array_equal(images.first()[..., 0], numbers), f"{images.first()[..., 0]}\nexpected\n{numbers}")
    for words, header in (((), b"P5 6 8 15\n"), (("--floats",), b"P5 6 8 4095\n"), ((), b"P6 6 8 100\n")):
        refused("which Pillow would scale", "a.ppm", *words, write=lambda path: path.write_bytes(header + bytes(288)))
    refused("which Pillow would scale", "a.pgm", write=lambda path: path.write_bytes(b"P2 6 8 15\n" + b"7 " * 48))
    stored = images.begin()
    (stored / "a/a.ppm").write_bytes(b"P6 6 8 255\n" + COLOURS.tobytes())
    (stored / "a/good.png").unlink()
    images.convert()
    check(np.array_equal(images.first(), COLOURS), "a PPM of 255 is changed")
    start = b"\xff\x4f\xff\x51"
    for depth in (9, 12, 16):
        refused("more than 8 bits", "a.jp2", write=changed_header(RGB.save, start, 42, depth - 1))
    refused("has signed numbers", "a.jp2", write=changed_header(L.save, start, 42, 128 + 7))
    refused("has 12 bits, which Pillow would scale", "a.jp2", "--floats", write=changed_header(Image.fromarray(DEEP).save, start, 42, 11))
    if ".avif" in Image.registered_extensions():
        refused("more than 8 bits", "a.avif", write=lambda path: path.write_bytes(base64.b64decode(AVIF_OF_10_BITS)))
    passed("numbers that Pillow would scale or cut off, and channels that it would leave out, are refused")


def folders(images):
    path = images.begin("a", "b", ".ipynb_checkpoints", "__MACOSX")
    (path / "a/more/deep").mkdir(parents=True)
    L.save(path / "a/more/deep/1.PNG")
    L.save(path / "a/Thumbs.db", "PNG")
    L.save(path / "a/without", "PNG")
    for name in ("a/.DS_Store", "a/notes.txt", "a/README", "b/list.csv", "outside.txt"):
        (path / name).write_text("no image")
    (path / "b/dead.png").symlink_to("nowhere.png")
    (path / "a/loop").symlink_to(path)
    said = images.convert()
    for text in ("training: 4 images of 8 x 6 x 3 in 2 classes", "skipped hidden files: 4, for example", "skipped dead links: 1, for example b/dead.png",
                 "without an image's extension: 3, for example a/README", "skipped files in no class's folder: 1, for example outside.txt",
                 "skipped links to a folder that contains them: 1, for example a/loop"):
        check(text in said, f"'{text}' is not in\n{said}")
    for training, validation in (("train", "val"), ("training", "validation"), ("Train", "Valid")):
        path = images.begin(f"{training}/a", f"{training}/b", f"{validation}/a", f"{validation}/b", "test/a", "extra/a")
        said = images.convert()
        with h5py.File(images.folder.path / "made/data.h5") as file:
            check([len(file[f"{name}/labels"]) for name in ("training", "validation", "test")] == [2, 2, 1] and list(file.attrs["classes"]) == ["a", "b"], said)
        check("test: no images of b" in said and "skipped files outside of the sets: 1, for example extra/a/good.png" in said, said)
    images.begin("car", "plane", "train")
    check("3 images of 8 x 6 x 3 in 3 classes" in images.convert(), "a class may be called train")
    images.begin("val/a", "val/b", "valid/a", "train/a", "train/b")
    images.convert(refused="valid: is a validation set, and so is .*val; keep one")
    for problem, *layout in (("test_new: may be a test set or a class; ", "training_old/a", "test_new/a"), ("a/test: is a set within a class", "a/train", "a/test", "b/train")):
        images.begin(*layout)
        images.convert(refused=problem)
    images.begin("data/seg_train/seg_train/a", "data/seg_train/seg_train/b", "data/Test Images/b")
    said = images.convert()
    check("2 classes, from " in said and "seg_train/seg_train\n" in said and "test: 1 images" in said, said)
    for name in ("a/1.png", "b/2.png"):
        (images.path / "data/seg_train/seg_train" / name).write_text("no image")
    said = images.convert(refused="b/2.png: cannot be read as an image")
    check("2 images cannot be used\n" in said and "a/1.png: cannot be read as an image" in said, said)
    images.begin("val/a", "val/b")
    images.convert(refused="has val, but no training set; expected .*train")
    images.begin()
    (images.path / "file").write_text("")
    images.convert(file=images.path / "file/data.h5", refused="file: is not a folder")
    images.convert(file=images.path, refused="is a folder; expected the name of a file")
    images.convert(file="/proc/data.h5", refused="/proc/data.h5: cannot be read or written")
    check(not list(images.folder.path.glob("made/*.new")), "an unfinished file is left")
    passed("sets by their usual names, folders within classes; hidden files, dead links and what is no image are counted")


def names(folder, images):
    images.begin(*(f"{group}/{name}" for group in ("train", "val", "test") for name in ODD))
    images.convert()
    with h5py.File(folder.path / "made/data.h5") as file:
        expected = list(file.attrs["classes"])
    check(sorted(expected) == sorted([*ODD[:3], "two?lines?[31m"]), expected)
    folder.write("named.yaml", CONFIG)
    plan = folder.run(0, "plan", "named.yaml", "--nodes", "1", "--ranks-per-node", "1")
    check(f"classes: {', '.join(f'{i} {name}' for i, name in enumerate(expected))}" in plan and "warning" not in plan, plan)
    folder.run(1, "evolve", "named.yaml", "--run", "run")
    with h5py.File(folder.path / "run/models/best.h5") as best:
        check(list(best.attrs["classes"]) == expected, f"best.h5 has the classes {list(best.attrs['classes'])}")
    said = folder.run(1, "test", "run", "--csv", "table.csv")
    rows = said[said.index("confusion matrix"):].splitlines()[2:]
    check(len(rows) == 4 and all(row.startswith(f"  {i} {name} ") for i, (row, name) in enumerate(zip(rows, expected))), said)
    with open(folder.path / "table.csv", newline="") as file:
        table = list(csv.DictReader(file))
    check(len(table) == 4 and all(row[f"{one}_name"] == expected[int(row[one])] for row in table for one in ("truth", "guess")), f"{table}")
    made = subprocess.run([sys.executable, SOURCE / "tools/report.py", "run"], cwd=folder.path, capture_output=True, text=True)
    check(made.returncode == 0, made.stderr)
    page = (folder.path / "report.html").read_text()
    check("&lt;b&gt;bold&lt;!--" in page and "größe 猫" in page and "<b>bold" not in page, "names in the report")
    with h5py.File(folder.path / "made/data.h5", "a") as file:
        file.attrs["classes"] = expected[::-1]
    other = folder.run(1, "test", "run", "--data", "made/data.h5", "--csv", "other.csv")
    truths = [{row["index"]: row["truth"] for row in csv.DictReader(open(folder.path / name))} for name in ("table.csv", "other.csv")]
    check(all(int(truths[1][one]) == 3 - int(truth) for one, truth in truths[0].items()), f"classes in another order are not told apart by name\n{other}")
    more = ("evolve", "named.yaml", "--run", "run", "--set", "search.budget.evaluations=2")
    check("but the network was trained with" in (said := folder.run(1, *more, expect=2)), said)
    (folder.path / "run/models/best.h5").rename(folder.path / "best.h5")
    check("but the network was trained with" in (said := folder.run(1, *more, expect=2)), said)
    with h5py.File(folder.path / "made/data.h5", "a") as file:
        file.attrs["classes"] = expected
    folder.run(1, *more)
    check(len(individuals(folder.path / "run")) == 2, "a resume with the names of before does not go on")
    with h5py.File(folder.path / "made/data.h5", "a") as file:
        file.attrs["classes"] = expected[:3]
    said = folder.run(0, "plan", "named.yaml", "--nodes", "1", "--ranks-per-node", "1", expect=2)
    check("has 3 names of classes" in said and "labels are 0 to 3" in said, said)
    passed("names of classes reach the log, best.h5, finch test, its table and the report; a resume refuses those of another order")


def labels(folder):
    """Checks the warnings about labels that start at 1, and about a label that no training image has."""
    def write(shift, more):
        with h5py.File(folder.path / "made/data.h5", "w") as file:
            for group, count in (("training", 52), ("validation", 26), ("test", 26)):
                file[f"{group}/images"] = GENERATOR.integers(0, 256, (count, 4, 4)).astype(np.uint8)
                file[f"{group}/labels"] = np.where(np.arange(count) < more.get(group, 0), 27, np.arange(count) % 26 + shift)

    def warned(text):
        for said in (folder.run(0, "plan", "named.yaml", "--nodes", "1", "--ranks-per-node", "1"), folder.run(1, "evolve", "named.yaml", "--run", "run", "--fresh")):
            check(text in said if text else "labels:" not in said, f"'{text}' is not in\n{said}")

    write(0, {})
    warned("")
    write(1, {})
    warned("labels: no image has label 0 (labels 1 to 26: does counting start at 1? It must start at 0); networks get 27 classes")
    write(0, {"test": 1, "validation": 2})
    warned("no image has label 26; networks get 28 classes; no training image has label 27, only the validation set and the test set")
    passed("plan and start say which labels no image, or no training image, has")


with Folder() as folder:
    images = Images(folder)
    modes(images)
    changed_numbers(images)
    folders(images)
    end_of_short_form()
    names(folder, images)
    labels(folder)
