#!/usr/bin/env python3
"""images_to_hdf5.py FOLDER FILE [--size HEIGHT WIDTH] [--grey]: writes images to HDF5 for `data: {kind: hdf5}`.

FOLDER contains training/CLASS/*.png and optionally validation/CLASS/* and test/CLASS/*. The files may be .jpg, .tif or
any other format that Pillow reads, and may be in folders below CLASS. Other names of sets are accepted, too: train,
train_images, seg_train, Training, val, valid, dev, testing, test_set and the like. If FOLDER itself contains the
folders of the classes, all images are training images. Classes are numbered in the order of their names; the attribute
`classes` lists the names. GROUP/files lists the file names, in the order of the images. The images are contiguous, for
`data.memory: streamed`. `data: {kind: folder}` reads PNG and JPEG files with the same rules and the same pixels, but at
each start.

The script rotates images according to their EXIF orientation, or tiff:Orientation in XMP if EXIF has none. It stops
with an error that lists all files that it cannot store unchanged: more than 8 bits (see --floats), numbers that Pillow
scales or float32 rounds, more channels than colours, transparent pixels (see --background), several pages or frames, a
broken file. It counts the files that it skips (hidden files, files without the extension of an image, dead links), and
images with damaged EXIF data. Needs h5py, numpy and Pillow.
"""
import argparse
import os
import pathlib
import re
import struct
import sys
import warnings

try:
    import h5py
    import numpy as np
    from PIL import Image, UnidentifiedImageError
except ImportError as error:
    sys.exit(f"images_to_hdf5.py needs the Python package {error.name or error}: tools/install.sh --report installs all that it needs for /usr/bin/python3; "
             f"then start /usr/bin/python3 {sys.argv[0]}")

GROUPS = ("training", "validation", "test")
FILLER = "(?:set|data|dataset|split|folder|seg|x|images?|imgs?|photos?|pictures?|files?)"
SETS = rf"\b(?:(train|training)|(val|valid|validation|dev)|(tests?|testing)){FILLER}?\b"  # by GROUPS
MOST_LISTED = 50  # refused files in a message
LITTER = ("__macosx", "thumbs.db", "desktop.ini", "@eadir")
UNREADABLE = ("BUFR", "GRIB", "HDF5", "MPEG", "WMF")  # formats that Pillow recognises, but cannot read
Image.init()
EXTENSIONS = {extension for extension, name in Image.registered_extensions().items() if name in Image.OPEN and name not in UNREADABLE}


class Refused(Exception):
    """A file or folder that cannot be used. The message says what is expected instead."""


class Notes:
    """Counts of events, with the first example of each event."""

    def __init__(self):
        self.counts, self.examples = {}, {}

    def add(self, what, path, count=1):
        if count:
            self.counts[what] = self.counts.get(what, 0) + count
            self.examples.setdefault(what, path)

    def report(self, folder):
        for what, count in self.counts.items():
            print(f"{what}: {count}, for example {text_of(self.examples[what].relative_to(folder))}", flush=True)


def text_of(path):
    """Returns `path` as UTF-8 text without control characters, even if the name is not UTF-8."""
    return re.sub("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", "?", str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def is_hidden(path):
    return path.name.startswith(".") or path.name.lower() in LITTER


def folders_in(folder):
    return sorted(path for path in folder.iterdir() if path.is_dir() and not is_hidden(path))


def has_image_name(path):
    """True if the file has the extension of an image. A file without extension is an image if Pillow can open it."""
    if path.suffix:
        return path.suffix.lower() in EXTENSIONS
    try:
        with Image.open(path):
            return True
    except Exception:  # no image
        return False


def skip(path, why, notes):
    files = [one for one in path.rglob("*") if not one.is_dir()] if path.is_dir() else [path]
    why = "hidden files" if is_hidden(path) else why if path.exists() else "dead links"
    notes.add(f"skipped {why}", files[0] if files else path, len(files))


def images_below(folder, around, notes):
    """Yields the images in `folder` and below, in the order of their names. `around` has the folders that contain
    `folder`."""
    around = (*around, folder.resolve())
    for path in sorted(folder.iterdir()):
        if is_hidden(path) or not path.exists():
            skip(path, "", notes)
        elif path.is_dir() and path.resolve() in around:
            notes.add("skipped links to a folder that contains them", path)
        elif path.is_dir() and set_name(path) in (("validation", ""), ("test", "")):
            raise Refused(f"{path}: is a set within a class; expected test/CLASS, not CLASS/test; or give it another name")
        elif path.is_dir():
            yield from images_below(path, around, notes)
        elif not path.is_file():
            skip(path, "what is no regular file", notes)
        elif not has_image_name(path):
            skip(path, "files without an image's extension", notes)
        else:
            yield path


def is_number(image):
    """True if Pillow reads the pixels of `image` with more than 8 bits."""
    return image.mode[0] in "IF" and "transparency" not in image.info


def jpeg2000_depths(path):
    """Returns Ssiz of each component (ISO/IEC 15444-1, A.5.1): its bits - 1, plus 128 if it is signed."""
    data = path.read_bytes()
    start = data.index(b"\xff\x4f\xff\x51")  # SOC, SIZ
    count = int.from_bytes(data[start + 40:start + 42], "big")
    return data[start + 42:start + 42 + 3 * count:3]


def avif_is_deep(path):
    """True if an AV1CodecConfigurationBox has high_bitdepth or twelve_bit, or if the file has no such box."""
    data = path.read_bytes()
    flags = [data[box.end() + 2] for box in re.finditer(b"av1C", data)]
    return not flags or any(one & 0x60 for one in flags)


def bits_above_8(image, path):
    """True if `image` has channels of more than 8 bits. `image` must not be loaded yet."""
    arguments = [part for tile in image.tile for part in (tile[3] if isinstance(tile[3], tuple) else (tile[3],))]
    bits = image.tag_v2.get(258, (8,)) if image.format == "TIFF" else (8,)
    largest = max((one for one in arguments if isinstance(one, int)), default=0) if image.format == "PPM" else 0
    if image.format == "JPEG2000" and any(one & 127 > 7 for one in jpeg2000_depths(path)) or image.format == "AVIF" and avif_is_deep(path):
        return True
    return image.mode[0] in "IF" or max(bits) > 8 or largest > 255 or any(isinstance(one, str) and ";16" in one for one in arguments)


def check_numbers(image, path):
    """Raises Refused if Pillow would change or omit numbers of `image`. `image` must not be loaded yet."""
    tags = image.tag_v2 if image.format == "TIFF" else {}
    channels = tags.get(277, 1)
    if channels > len(image.getbands()) or 0 in tags.get(338, ()):
        raise Refused(f"{path}: has {channels} channels, some of them neither colours nor opacity; save it without them")
    depths = set(jpeg2000_depths(path)) if image.format == "JPEG2000" else set()
    if 2 in tags.get(339, ()) and max(tags.get(258, (1,))) <= 8 or any(one > 127 for one in depths):
        raise Refused(f"{path}: has signed numbers, which Pillow would change; save it with unsigned ones")
    if image.mode == "I;16" and depths - {15}:
        raise Refused(f"{path}: has {min(depths) + 1} bits, which Pillow would scale to 16; save it with 8 or 16")
    if image.format == "FITS" and image.mode[0] == "I":
        raise Refused(f"{path}: has whole numbers of FITS, the sign and offset of which Pillow ignores; save it as TIFF")
    largest = [tile[3][1] for tile in image.tile if tile[0] in ("ppm", "ppm_plain") and isinstance(tile[3], tuple)]
    if image.format == "PPM" and any(one not in (None, 255, 65535) for one in largest):
        raise Refused(f"{path}: has numbers from 0 to {largest[0]}, which Pillow would scale; save it with 255 or 65535 as the largest")


def numbers_of(image, size, path):
    """Returns the pixels of a grey image of more than 8 bits, as float32 (height, width)."""
    numbers = np.asarray(image)
    if image.format == "TIFF" and image.mode == "I" and image.tag_v2.get(258) == (32,) and 2 not in image.tag_v2.get(339, ()):
        numbers = numbers.view(np.uint32)
    pixels = numbers.astype(np.float32)
    if not np.isfinite(pixels).all():
        raise Refused(f"{path}: holds infinite numbers or NaN; expected finite ones")
    if numbers.dtype.kind in "iu" and not np.array_equal(pixels.astype(np.int64), numbers):
        raise Refused(f"{path}: holds whole numbers that float32 would round, as all above 16777216 that are odd; scale it first")
    return np.asarray(resized(Image.fromarray(pixels), size))


def without_alpha(image, path, background):
    """Returns `image` without transparency. Raises Refused if pixels are transparent and no background is given."""
    if "transparency" not in image.info and image.mode not in ("LA", "La", "PA", "RGBA", "RGBa"):
        return image
    image = image.convert({"La": "LA", "PA": "RGBA"}.get(image.mode, image.mode)).convert("RGBA")
    if image.getchannel("A").getextrema()[0] == 255:
        return image.convert("RGB")
    if background is None:
        raise Refused(f"{path}: has transparent pixels; give --background RED GREEN BLUE, the colour behind them")
    return Image.alpha_composite(Image.new("RGBA", image.size, (*background, 255)), image).convert("RGB")


def convert(image, path, given, notes):
    """Returns the pixels (height, width, channels) and whether the image has more than 8 bits.

    The pixels are float32 if given.floats, else bytes.
    """
    frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)  # the further frames of MPO are previews
    if frames > 1:
        raise Refused(f"{path}: holds {frames} pages or frames; save each as a file of its own")
    is_deep = bits_above_8(image, path)
    if is_deep and not (given.floats and is_number(image)):
        remedy = "give --floats to store its numbers as they are, or save it with 8" if is_number(image) else "save it with 8, or in grey"
        raise Refused(f"{path}: has more than 8 bits in each channel, which would be cut off (mode {image.mode}); {remedy}")
    check_numbers(image, path)
    image = upright(image, path, notes)
    if is_deep:
        pixels = numbers_of(image, given.size, path)
        return np.repeat(pixels[..., None], 1 if given.grey else 3, axis=2), True
    image = without_alpha(image, path, given.background)
    if image.mode == "LAB":
        raise Refused(f"{path}: has colours of CIELAB, which Pillow does not convert; save it as RGB")
    image = image.convert("RGB" if image.mode == "P" else image.mode).convert("L" if given.grey else "RGB")
    image = resized(image, given.size)
    return np.asarray(image, np.float32 if given.floats else np.uint8).reshape(image.height, image.width, -1), False


def pixels_of(path, given, notes):
    """Returns the result of convert(). Raises Refused with the file name if Pillow cannot read the file."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            # If Image.open() gets a path, Pillow 13 maps the file into memory and rotates TIFF images wrongly.
            with open(path, "rb") as file, Image.open(file) as image:
                result = convert(image, path, given, notes)
        except Refused:
            raise
        except Exception as error:  # for broken files, Pillow raises exceptions of any type
            size = path.stat().st_size
            why = "of no kind that Pillow reads" if isinstance(error, UnidentifiedImageError) else " ".join(str(error).split()) or type(error).__name__
            raise Refused(f"{path}: cannot be read as an image ({why}; {size} bytes); replace it, or move it away") from error
    for warning in said:
        print(f"{path}: {warning.message}", file=sys.stderr)
    return result


def exif_orientation(exif):
    """Returns the orientation in EXIF data that begin with a TIFF header; 0 if they have none. Raises ValueError or
    struct.error if the data are damaged."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None:
        raise ValueError
    at, = struct.unpack_from(order + "I", exif, 4)
    entries, = struct.unpack_from(order + "H", exif, at)
    for entry in range(at + 2, at + 2 + 12 * entries, 12):
        tag, kind, count = struct.unpack_from(order + "HHI", exif, entry)
        value, = struct.unpack_from(order + ("H2x" if kind == 3 else "I"), exif, entry + 8)
        if (tag, count) == (0x0112, 1):
            return value if kind in (3, 4) and 1 <= value <= 8 else 1
    return 0


def orientation(image):
    """Returns the orientation of a loaded image that is no TIFF, 1 to 8, and the kind of metadata that has it. (What
    Image.getexif() finds depends on the version of Pillow.)"""
    exif = image.info.get("exif") or bytes.fromhex("".join(image.info.get("Raw profile type exif", "").split("\n")[3:]))
    while exif[:5] == b"Exif\0":
        exif = exif[6:]
    found = exif_orientation(exif) if exif else 0
    if found:
        return found, "EXIF"
    segments = [data for name, data in getattr(image, "applist", ()) if name == "APP1" and data.startswith(b"http://ns.adobe.com/xap/1.0/")]
    xmp = segments[-1] if segments else image.info.get("XML:com.adobe.xmp") or image.info.get("xmp") or ""
    match = re.search('tiff:Orientation(?:="|>)([1-8])', xmp if isinstance(xmp, str) else xmp.decode("latin-1"))
    return int(match[1]) if match else 1, "XMP"


def upright(image, path, notes):
    """Returns `image` turned as its metadata say."""
    if image.format == "TIFF":  # Pillow's load() turns it
        notes.add("turned as EXIF says", path, image.tag_v2.get(0x0112, 1) in range(2, 9))
        image.load()
        return image
    image.load()
    try:
        number, source = orientation(image)
    except (ValueError, struct.error):
        notes.add("damaged EXIF data, not turned", path)
        return image
    notes.add(f"turned as {source} says", path, number > 1)
    turns = (Image.FLIP_LEFT_RIGHT, Image.ROTATE_180, Image.FLIP_TOP_BOTTOM, Image.TRANSPOSE, Image.ROTATE_270, Image.TRANSVERSE, Image.ROTATE_90)
    return image.transpose(turns[number - 2]) if number > 1 else image


def resized(image, size):
    """Returns `image` in another size. Resizes the width first, as Pillow did up to version 12; later versions choose."""
    return image.resize((size[1], image.height)).resize((size[1], size[0])) if size else image


def write_group(file, group, folder, classes, given, notes, refused):
    """Writes the images of a set, and appends the messages about files that cannot be used to `refused`."""
    around = (given.folder.resolve(), folder.resolve())
    paths = [(label, path) for label, name in enumerate(classes) if (folder / name).is_dir() for path in images_below(folder / name, around, notes)]
    for path in sorted(folder.iterdir()):
        if path.name not in classes:
            skip(path, "files in no class's folder", notes)
    if not paths:
        raise Refused(f"{folder}: holds no images in folders of classes; expected {folder}/{classes[0]}/*.png and so on, or move the folder away")
    filled = {label for label, _ in paths}
    empty = [name for label, name in enumerate(classes) if label not in filled]
    if empty and group == "training":
        raise Refused(f"{folder / empty[0]}: holds no images, so nothing would train this class; put some there, or remove the folder")
    if empty:
        print(f"{group}: no images of {', '.join(map(text_of, empty))}", file=sys.stderr)
    images = None
    for row, (_, path) in enumerate(paths):
        try:
            pixels, deep = pixels_of(path, given, notes)
        except Refused as problem:
            refused.append(str(problem))
            continue
        if images is None:
            first, is_deep = path, deep
            images = file.create_dataset(f"{group}/images", (len(paths), *pixels.shape), pixels.dtype)
            images.attrs["axes"] = "NHWC"
        if deep != is_deep:
            raise Refused(f"{path}: has {'more than ' if deep else ''}8 bits, {first} has {'more than ' if is_deep else ''}8; expected the same of all")
        if pixels.shape != images.shape[1:]:
            raise Refused(f"{path}: is {pixels.shape[0]} x {pixels.shape[1]}, {first} is {images.shape[1]} x {images.shape[2]}; give --size HEIGHT WIDTH")
        images[row] = pixels
    if refused:
        return
    file[f"{group}/labels"] = np.array([label for label, _ in paths], np.int64)
    file.create_dataset(f"{group}/files", data=[text_of(path.relative_to(folder)) for _, path in paths], dtype=h5py.string_dtype())
    source = "" if folder in (given.folder, given.folder / group) else f", from {text_of(folder)}"
    print(f"{group}: {len(paths)} images of {' x '.join(map(str, images.shape[1:]))} in {len(classes)} classes{source}")


def set_name(path):
    """Returns what the name of a folder says: its group (None if the name has words for none or several), and the rest,
    such as "cars" of cars_train."""
    name = re.sub("([a-z])([A-Z0-9])|[ _.-]+", r"\1 \2", path.name).lower()  # trainImages, train2017
    groups = {GROUPS[match.lastindex - 1] for match in re.finditer(SETS, name, re.A)}
    rest = re.sub(rf"\b{FILLER}\b| ", "", re.sub(SETS, "", name, flags=re.A), flags=re.A)
    return (None, "") if len(groups) > 1 else (next(iter(groups), None), rest)


def find_sets(folder):
    """Returns the folders of the sets, in `folder` or in its single folder. Besides the word for its set, the name of a
    set says nothing, or what the name of another set says."""
    folders = folders_in(folder)
    names = [set_name(path) for path in folders]
    are_sets = [group is not None and (not rest or any(other not in (None, group) and rest == others for other, others in names)) for group, rest in names]
    found = {}
    for path, (group, _), is_set in zip(folders, names, are_sets):
        if group is None or not all(are_sets) and not folders_in(path):  # a class may have the name `train`
            continue
        if not is_set:
            raise Refused(f"{path}: may be a {group} set or a class; expected for a set a name such as train, train_set or seg_test, for a class a name "
                          "without such a word")
        if group in found:
            raise Refused(f"{path}: is a {group} set, and so is {found[group]}; keep one of them")
        found[group] = path
    return found or (find_sets(folders[0]) if len(folders) == 1 else {})


def find_groups(folder, notes):
    """Returns the folder of each set. If there is no folder of a set, `folder` itself is the training set."""
    found = find_sets(folder)
    if found and "training" not in found:
        raise Refused(f"{folder}: has {', '.join(path.name for path in found.values())}, but no training set; expected {folder / 'training'} or {folder / 'train'}")
    for path in sorted(found["training"].parent.iterdir()) if found else ():
        if path not in found.values():
            skip(path, "files outside of the sets", notes)
    for group, path in found.items():
        inner = folders_in(path)
        if len(inner) == 1 and not set_name(inner[0])[1] and folders_in(inner[0]):  # train/train/cat
            found[group] = inner[0]
    return {group: found[group] for group in GROUPS if group in found} or {"training": folder}


def find_classes(parts):
    classes = [path.name for path in folders_in(parts["training"])]
    if len(classes) < 2:
        raise Refused(f"{parts['training']}: has {len(classes)} folders; expected one for each of two classes or more")
    for folder in parts.values():
        unknown = [path.name for path in folders_in(folder) if path.name not in classes]
        if unknown:
            raise Refused(f"{folder / unknown[0]}: is a class without images in {parts['training']}; add some there, or remove the folder")
    return classes


def write(given, notes):
    if not given.folder.is_dir():
        raise Refused(f"{given.folder}: is not a folder; expected one with images in folders of classes")
    if given.file.is_dir():
        raise Refused(f"{given.file}: is a folder; expected the name of a file")
    parts = find_groups(given.folder, notes)
    classes = find_classes(parts)
    if given.file.parent.exists() and not given.file.parent.is_dir():
        raise Refused(f"{given.file.parent}: is not a folder; expected one for the HDF5 file")
    given.file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = given.file.with_name(given.file.name + ".new")
    try:
        with h5py.File(unfinished, "w", libver=("v108", "latest")) as file:  # older formats allow only 4000 classes
            file.attrs["classes"] = [text_of(name) for name in classes]
            refused = []
            for group, folder in parts.items():
                write_group(file, group, folder, classes, given, notes, refused)
            if len(refused) > 1:
                refused = [f"{given.folder}: {len(refused)} images cannot be used", *refused[:MOST_LISTED]]
            if refused:
                raise Refused("\n".join(refused))
        unfinished.replace(given.file)
    finally:
        unfinished.unlink(missing_ok=True)
        notes.report(given.folder)


def colour(text):
    if not 0 <= int(text) <= 255:
        raise ValueError
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--size", type=int, nargs=2, metavar=("HEIGHT", "WIDTH"), help="resizes every image")
    parser.add_argument("--grey", action="store_true", help="one channel; otherwise red, green and blue")
    parser.add_argument("--floats", action="store_true", help="stores float32; grey images of 16 or 32 bits or of floats keep their numbers")
    parser.add_argument("--background", type=colour, nargs=3, metavar=("RED", "GREEN", "BLUE"), help="the colour behind transparent pixels, 0 to 255 each")
    given = parser.parse_args()
    if given.size and min(given.size) < 1:
        parser.error("--size: expected two numbers of 1 or more")
    try:
        write(given, Notes())
    except Refused as problem:
        sys.exit("\n".join(map(text_of, str(problem).split("\n"))))
    except OSError as problem:  # reading a folder or writing a file failed
        sys.exit(f"{text_of(problem.filename or given.file)}: cannot be read or written ({os.strerror(problem.errno) if problem.errno else problem})")
    except KeyboardInterrupt:
        sys.exit("interrupted: nothing was written")


if __name__ == "__main__":
    main()
