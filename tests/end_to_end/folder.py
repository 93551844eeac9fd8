"""Checks `data: {kind: folder}`: the images of a folder are those that tools/images_to_hdf5.py writes, to the last bit,
also resized, turned and in grey. Then runs a search on a folder and on the tool's file, which must give equal results,
resumes it, and tests its best network."""
import shutil
import subprocess
import sys

import h5py
import numpy as np
from PIL import Image

from harness import SOURCE, Folder, check, curves, end_of_short_form, individuals, passed

GENERATOR = np.random.default_rng(7)
COLOURS = {"black cat": (40, 40, 45), "größe": (30, 160, 200), "red": (200, 40, 20)}
CONFIG = """
name: photos
data: {kind: folder, path: photos, validation: own}
model: [{conv: {channels: 4, kernel: 3, activation: relu}}, flatten, {linear: {units: classes}}]
training: {epochs: 2, batch_size: 8, learning_rate: $lr}
workers: {ranks: 2, threads: 1}
search: {propagator: random, budget: {evaluations: 4}, space: {lr: {real: [0.01, 0.1]}}}
"""


def picture(colour, height, width):
    """Returns coarse noise about `colour`, as smooth as a photo."""
    coarse = np.clip(np.array(colour) + GENERATOR.normal(0, 50, (max(2, height // 3), max(2, width // 3), 3)), 0, 255)
    return Image.fromarray(coarse.astype(np.uint8)).resize((width, height))


def save(path, image, number):
    """Saves `image` in one of several formats, which `number` selects."""
    exif = Image.Exif()
    exif[0x0112] = number % 8 + 1
    kind = number % 7
    if kind == 0:
        image.save(path.with_suffix(".png"), exif=exif if image.width == image.height else None)
    elif kind == 1:
        image.save(path.with_suffix(".jpg"), quality=80, exif=exif if image.width == image.height else Image.Exif())
    elif kind == 2:
        image.save(path.with_suffix(".jpeg"), quality=60, progressive=True, subsampling=2)
    elif kind == 3:
        image.quantize(16).save(path.with_suffix(".png"))
    elif kind == 4:
        image.convert("RGBA").save(path.with_suffix(".PNG"))
    elif kind == 5:
        image.convert("L").save(path.with_suffix(".jpg"), quality=95)
    else:
        image.convert("CMYK").save(path.with_suffix(".jpg"), quality=90)


def make(path, sizes):
    for group, count in (("train", 24), ("val", 10), ("test", 10)):
        for name, colour in COLOURS.items():
            (path / group / name).mkdir(parents=True)
            for number in range(count):
                height, width = sizes()
                save(path / group / name / f"{number:02}", picture(colour, height, width), number)


def checksum(run):
    with h5py.File(run / "population.h5") as file:
        return file.attrs["data_fingerprint"]


def convert(folder, source, target, *words):
    done = subprocess.run([sys.executable, SOURCE / "tools/images_to_hdf5.py", source, target, *words], cwd=folder.path, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, done.stdout)


def same_search(folder):
    (folder.path / "photos/train/red/notes.txt").write_text("no image")
    (folder.path / "photos/train/.hidden").write_text("no image")
    convert(folder, "photos", "photos.h5")
    said = folder.run(2, "evolve", "photos.yaml", "--run", "folder")
    for text in ("photos: skipped hidden files: 1, for example train/.hidden", "photos: skipped files without an image's extension: 1, for example train/red/notes.txt",
                 "photos: turned as EXIF says: 18, for example train"):
        check(said.count(text) == 1, f"'{text}' is not once in\n{said}")
    folder.run(2, "evolve", "photos.yaml", "--run", "hdf5", "--set", "data.kind=hdf5", "--set", "data.path=photos.h5")
    check(checksum(folder.path / "folder") == checksum(folder.path / "hdf5"), "other images than those of images_to_hdf5.py")
    losses = [{one: row["loss"] for one, row in individuals(folder.path / run).items()} for run in ("folder", "hdf5")]
    check(len(losses[0]) == 4 and losses[0] == losses[1], f"the losses are {losses[0]} on the folder, {losses[1]} on its file")
    check(curves(folder.path / "folder") == curves(folder.path / "hdf5"), "other learning curves")
    for run in ("folder", "hdf5"):
        with h5py.File(folder.path / run / "models/best.h5") as best:
            check(list(best.attrs["classes"]) == list(COLOURS), f"best.h5 has the classes {list(best.attrs['classes'])}")
    unused = "data.validation: the images in photos/val are not used"
    for own in (True, False):
        said = folder.run(0, "plan", "photos.yaml", "--nodes", "1", "--ranks-per-node", "2", "--set",
                          f"data={{kind: folder, path: photos, {'validation: own' if own else 'validation_samples: 12'}}}")
        check((f" W {unused}" in said) != own, f"the warning about the folder val, where data.validation is {'own' if own else 'random'}\n{said}")
        check(" I photos: skipped hidden files: 1" in said, f"plan does not log as evolve\n{said}")
    shutil.copytree(folder.path / "photos", folder.path / "more")
    said = folder.run(0, "plan", "photos.yaml", "--nodes", "1", "--ranks-per-node", "2", "--set",
                      "data={kind: folder, systems: [{path: photos}, {path: more}], validation_samples: 12}")
    both = (f" W {unused}", f" W {unused.replace('photos', 'more')}")
    check(all(warning in said for warning in both), f"not a warning about each system\n{said}")
    data = "{kind: folder, path: photos, size: [14, 14], background: [0, 0, 0], validation_samples: 12}"
    said = folder.run(2, "evolve", "photos.yaml", "--run", "random", "--set", f"data={data}")
    check(said.count(f" W {unused}") == 1, f"not one warning\n{said}")
    passed("a search on a folder is the one on the file of images_to_hdf5.py, bit for bit; files are counted once")


def results(folder):
    said = folder.run(1, "test", "folder")
    check("(30 images)" in said and all(f"  {i} {name} " in said for i, name in enumerate(COLOURS)), said)
    for run in ("folder", "random"):  # data.size and data.background of `random` are for its folder
        said = folder.run(1, "test", run, "--data", "photos.h5", "--set", "data.kind=hdf5")
        check("test loss" in said, f"{run}: test on HDF5\n{said}")
    make(folder.path / "large", lambda: (20, 20))
    said = folder.run(1, "test", "random", "--data", "large", "--set", "data.kind=folder")
    check("(30 images)" in said, f"the run's data.size is not used for other data of its kind\n{said}")
    shutil.copytree(folder.path / "photos/test/red", folder.path / "some/test_set/red")
    rows = [line for line in folder.run(1, "test", "folder", "--data", "some", "--csv", "some.csv").splitlines() if "(10 images)" in line]
    check(rows and all(line.split(",")[1] == "2" for line in (folder.path / "some.csv").read_text().splitlines()[1:]), f"a class is not found by its name\n{rows}")
    (folder.path / "photos").rename(folder.path / "moved")
    folder.run(2, "evolve", "photos.yaml", "--run", "folder", "--set", "data.path=moved", "--set", "search.budget.evaluations=5")
    check(len(individuals(folder.path / "folder")) == 5, "a resume does not go on with a moved folder")
    (folder.path / "moved/train/red/00.png").unlink()
    said = folder.run(2, "evolve", "photos.yaml", "--run", "folder", "--set", "data.path=moved", "--set", "search.budget.evaluations=6", expect=2)
    check("checksum" in said, said)
    passed("finch test names the classes; a moved folder resumes, a changed one is refused")


def resized(folder):
    """Compares the images that Pillow resized with Finch's, by their checksum: the tolerance is 0 of 255."""
    make(folder.path / "mixed", lambda: GENERATOR.integers(5, 90, 2))
    clear = picture((9, 9, 9), 31, 33).convert("RGBA")
    clear.putalpha(Image.fromarray(GENERATOR.integers(0, 256, (31, 33)).astype(np.uint8)))
    clear.save(folder.path / "mixed/train/red/clear.png")
    for number, (words, settings) in enumerate(((("--size", "24", "20"), "size: [24, 20]"), (("--size", "70", "9", "--grey"), "size: [70, 9], grey: true"))):
        convert(folder, "mixed", f"mixed{number}.h5", *words, "--background", "250", "10", "99")
        for run, data in ((f"a{number}", f"kind: folder, path: mixed, background: [250, 10, 99], {settings}"), (f"b{number}", f"kind: hdf5, path: mixed{number}.h5")):
            folder.run(1, "evolve", "photos.yaml", "--run", run, "--set", f"data={{{data}, validation: own}}", "--set", "search.budget.evaluations=1",
                       "--set", "workers.ranks=1")
        check(checksum(folder.path / f"a{number}") == checksum(folder.path / f"b{number}"), f"{settings}: other pixels than Pillow's")
    passed("images of several sizes are resized to Pillow's pixels, in colour and in grey; a background is mixed in alike")


def refused(folder):
    def plan(text, path):
        said = folder.run(0, "plan", "photos.yaml", "--nodes", "1", "--ranks-per-node", "2", "--set", f"data={{kind: folder, path: {path}}}", expect=2)
        check(text in said, f"'{text}' is not in\n{said}")

    (folder.path / "nothing").mkdir()
    for number in range(4):
        (folder.path / f"nothing/{number}.txt").write_text("no image")
    plan("nothing: has 0 folders and 4 files (0.txt, 1.txt, 2.txt, …); expected a folder of PNG or JPEG files for each of two classes", "nothing")
    plan("photos.yaml: is no folder", "photos.yaml")
    for name in ("cat", "dog"):
        (folder.path / "deep" / name).mkdir(parents=True)
        picture((9, 9, 9), 8, 8).save(folder.path / "deep" / name / "0.png")
    Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 900).save(folder.path / "deep/dog/1.png")
    plan("deep/dog/1.png: has 16 bits in each channel", "deep")
    (folder.path / "deep/dog/1.png").unlink()
    picture((9, 9, 9), 8, 8).save(folder.path / "deep/dog/1.png", save_all=True, append_images=[picture((0, 0, 0), 8, 8)])
    plan("deep/dog/1.png: holds 2 frames", "deep")
    picture((9, 9, 9), 8, 8).save(folder.path / "deep/dog/0.webp")
    plan("deep/dog/0.webp: is WebP; expected PNG or JPEG (tools/images_to_hdf5.py converts", "deep")
    shutil.rmtree(folder.path / "deep")
    passed("a folder without images says what it has; 16 bits, animations and other formats are refused by name")


with Folder() as folder:
    folder.write("photos.yaml", CONFIG)
    make(folder.path / "photos", lambda: (14, 14))
    same_search(folder)
    results(folder)
    refused(folder)
    end_of_short_form()
    resized(folder)
