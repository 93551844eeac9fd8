#!/usr/bin/env python3
"""images_to_hdf5.py FOLDER FILE [--size HEIGHT WIDTH] [--grey]: one HDF5 file for `data: {kind: hdf5, path: FILE}`.

FOLDER/training/CLASS/*.png (or .jpg, .tif … whatever Pillow reads), and likewise FOLDER/test and FOLDER/validation where they are
there; or FOLDER/CLASS/* alone, which all train. Classes are numbered in the order of their names, which stand in the attribute
`classes`; the names of the files, in the order of the images, stand in GROUP/files. The images are contiguous, for `data.memory: streamed`.
Needs h5py, numpy and Pillow.
"""
import argparse
import pathlib
import sys

try:
    import h5py
    import numpy as np
    from PIL import Image, UnidentifiedImageError
except ModuleNotFoundError as error:
    sys.exit(f"images_to_hdf5.py needs the Python package {error.name}: tools/install.sh --report installs all that it needs, for /usr/bin/python3")

GROUPS = ("training", "validation", "test")


def folders_in(folder):
    return sorted(path for path in folder.iterdir() if path.is_dir())


def pixels_of(path, size, grey):
    """(height, width, channels) of bytes."""
    try:
        with Image.open(path) as image:
            image = image.convert("L" if grey else "RGB")
            return np.asarray(image.resize((size[1], size[0])) if size else image).reshape(image.height if not size else size[0], -1, 1 if grey else 3)
    except UnidentifiedImageError:
        sys.exit(f"{path}: is no image that Pillow reads; move it away")


def write_group(file, group, folder, classes, size, grey):
    paths = [(label, path) for label, name in enumerate(classes) for path in sorted((folder / name).glob("*")) if path.is_file() and not path.name.startswith(".")]
    if not paths:
        sys.exit(f"{folder}: holds no images; expected {folder}/{classes[0]}/*.png and so on")
    empty = [name for label, name in enumerate(classes) if label not in {label for label, _ in paths}]
    if empty and group == "training":
        sys.exit(f"{folder / empty[0]}: holds no images, so nothing would train this class; put some there, or remove the folder")
    if empty:
        print(f"{group}: no images of {', '.join(empty)}", file=sys.stderr)
    first = pixels_of(paths[0][1], size, grey)
    images = file.create_dataset(f"{group}/images", (len(paths), *first.shape), np.uint8)
    images.attrs["axes"] = "NHWC"
    for row, (_, path) in enumerate(paths):
        pixels = pixels_of(path, size, grey)
        if pixels.shape != first.shape:
            sys.exit(f"{path}: is {pixels.shape[0]} x {pixels.shape[1]}, {paths[0][1]} is {first.shape[0]} x {first.shape[1]}; give --size HEIGHT WIDTH")
        images[row] = pixels
    file[f"{group}/labels"] = np.array([label for label, _ in paths], np.int64)
    file.create_dataset(f"{group}/files", data=[str(path.relative_to(folder)) for _, path in paths], dtype=h5py.string_dtype())
    print(f"{group}: {len(paths)} images of {' x '.join(map(str, first.shape))} in {len(classes)} classes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--size", type=int, nargs=2, metavar=("HEIGHT", "WIDTH"), help="resizes every image")
    parser.add_argument("--grey", action="store_true", help="one channel; otherwise red, green and blue")
    given = parser.parse_args()
    if not given.folder.is_dir():
        sys.exit(f"{given.folder}: is no folder")
    parts = {name: given.folder / name for name in GROUPS if (given.folder / name).is_dir()}
    parts = parts if "training" in parts else {"training": given.folder}
    classes = [path.name for path in folders_in(parts["training"])]
    if len(classes) < 2:
        sys.exit(f"{parts['training']}: has {len(classes)} folders; expected one for each of two classes or more")
    for folder in parts.values():
        unknown = [path.name for path in folders_in(folder) if path.name not in classes]
        if unknown:
            sys.exit(f"{folder / unknown[0]}: is a class of which {parts['training']} has no image")
    unfinished = given.file.with_name(given.file.name + ".new")
    try:
        with h5py.File(unfinished, "w") as file:
            file.attrs["classes"] = classes
            for group, folder in parts.items():
                write_group(file, group, folder, classes, given.size, given.grey)
        unfinished.replace(given.file)
    finally:
        unfinished.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
