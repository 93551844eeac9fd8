"""Writes a state dict, {name: array of float32 or int64}, in two formats without PyTorch."""
import json
import pickle
import struct
import zipfile

ALIGNMENT = 64  # of a tensor's values in an archive, as torch.save() aligns them
ZIP_HEADER, FIELD_HEADER = 30, 4  # bytes before an entry's name, and before the content of its extra field
TYPES = {"float32": ("F32", "FloatStorage"), "int64": ("I64", "LongStorage")}  # of safetensors and of PyTorch


def safetensors(arrays):
    """Returns the format of safetensors 0.4 (https://github.com/huggingface/safetensors): the size of a JSON header,
    the header, and the values."""
    header, values, end = {"__metadata__": {"format": "pt"}}, [], 0
    for name, array in sorted(arrays.items(), key=lambda item: item[1].dtype != "int64"):  # so that each tensor is aligned to its type
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": TYPES[array.dtype.name][0], "shape": array.shape, "data_offsets": [begin, end]}
        values.append(array.tobytes())
    lines = json.dumps(header, separators=(",", ":")).encode()
    lines += b" " * (-len(lines) % 8)
    return b"".join([struct.pack("<Q", len(lines)), lines, *values])


def text(value):
    return pickle.BINUNICODE + struct.pack("<I", len(value.encode())) + value.encode()


def number(value):
    return pickle.BININT + struct.pack("<i", value)


def numbers(values):
    return pickle.MARK + b"".join(map(number, values)) + pickle.TUPLE


def pickled(arrays):
    """Returns a pickle of the state dict, in protocol 2. The values of a tensor are in the archive, as data/NUMBER.

    A tensor is torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks).
    """
    parts = [pickle.PROTO + b"\2" + pickle.EMPTY_DICT + pickle.MARK]
    for key, (name, array) in enumerate(arrays.items()):
        storage = text("storage") + pickle.GLOBAL + f"torch\n{TYPES[array.dtype.name][1]}\n".encode() + text(str(key)) + text("cpu") + number(array.size)
        strides = [stride // array.itemsize for stride in array.strides]
        parts += [text(name), pickle.GLOBAL, b"torch._utils\n_rebuild_tensor_v2\n", pickle.MARK, pickle.MARK, storage, pickle.TUPLE, pickle.BINPERSID, number(0),
                  numbers(array.shape), numbers(strides), pickle.NEWFALSE, pickle.GLOBAL, b"collections\nOrderedDict\n", pickle.EMPTY_TUPLE,
                  pickle.REDUCE, pickle.TUPLE, pickle.REDUCE]
    return b"".join([*parts, pickle.SETITEMS, pickle.STOP])


def write_torch_archive(path, arrays):
    """Writes what torch.save(state_dict) of PyTorch 1.6 and later writes: a zip archive of a pickled dict and the values
    of each tensor (serialize_tensor() in torch/serialization.py). torch.load(weights_only=True) reads it."""
    with open(path, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        def add(name, content):
            entry = zipfile.ZipInfo(f"model/{name}")  # of 1980, so that equal weights give equal archives
            padding = -(file.tell() + ZIP_HEADER + len(entry.filename) + FIELD_HEADER) % ALIGNMENT
            entry.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding  # the field that torch.save() fills with padding
            archive.writestr(entry, content)

        add("data.pkl", pickled(arrays))
        add("byteorder", b"little")
        for key, array in enumerate(arrays.values()):
            add(f"data/{key}", array.tobytes())
        add("version", b"3\n")
