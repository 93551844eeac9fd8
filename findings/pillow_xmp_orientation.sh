#!/usr/bin/env bash
# The version of Pillow decides whether a JPEG is turned: from Pillow 11.2 on, ImageOps.exif_transpose() also follows
# tiff:Orientation in the file's XMP packet if EXIF has no orientation. Pillow 11.1 does so for PNG only.
#
# Versions: Pillow 11.1.0 (Debian 13's version) and 12.0.0 from PyPI.
# Seen: an image of 16 x 8 pixels with tiff:Orientation="6" (turn by 90 degrees):
#   Pillow 11.1.0: JPEG (16, 8), PNG (8, 16)
#   Pillow 12.0.0: JPEG (8, 16), PNG (8, 16)
# Exit code: 0 as described, 1 if it changed, 77 if the packages cannot be installed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/turn.py" <<'PYTHON'
import io
import struct
import sys

import PIL
from PIL import Image, ImageOps, PngImagePlugin

XMP = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'


def turned(data):
    return ImageOps.exif_transpose(Image.open(io.BytesIO(data))).size


image, jpeg, png = Image.new("RGB", (16, 8)), io.BytesIO(), io.BytesIO()
image.save(jpeg, "JPEG")
segment = b"http://ns.adobe.com/xap/1.0/\0" + XMP.encode()
marked = jpeg.getvalue()[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + jpeg.getvalue()[2:]
text = PngImagePlugin.PngInfo()
text.add_itxt("XML:com.adobe.xmp", XMP)
image.save(png, "PNG", pnginfo=text)
print(f"Pillow {PIL.__version__}: JPEG {turned(marked)}, PNG {turned(png.getvalue())}")
sys.exit(turned(marked) != ((8, 16) if sys.argv[1] == "turns" else (16, 8)) or turned(png.getvalue()) != (8, 16))
PYTHON

for pair in 11.1.0:keeps 12.0.0:turns; do
    python3 -m venv "$folder/venv" || exit 77
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "pillow==${pair%:*}" || exit 77
    "$folder/venv/bin/python" "$folder/turn.py" "${pair#*:}" || exit 1
    rm -rf "$folder/venv"
done
