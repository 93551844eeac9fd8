#!/usr/bin/env bash
# Pillow 13 resizes some images to other pixels than Pillow 12: it resizes the height first if this leaves fewer pixels
# between both passes. Up to Pillow 12, the width came first. Each pass rounds to bytes and clips, so the order matters.
#
# Versions: Pillow 12.3.0 and 13.0.0 from PyPI, Image.resize() with the default filter (bicubic), mode RGB.
# Seen: 90 x 12 pixels (height x width) of noise to 24 x 24.
#   Pillow 12.3.0: width first: True, height first: False
#   Pillow 13.0.0: width first: False, height first: True, up to N of 255 from the other order
# What to do: two calls, each for one direction, give the same pixels with both versions.
# Exit code: 0 as described, 1 if it changed, 77 if the packages cannot be installed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/order.py" <<'PYTHON'
import random
import sys

import PIL
from PIL import Image

random.seed(0)
image = Image.new("RGB", (12, 90))
image.putdata([random.choice([(0, 0, 0), (255, 255, 255), (255, 0, 0)]) for _ in range(12 * 90)])
at_once = image.resize((24, 24)).tobytes()
width_first = image.resize((24, 90)).resize((24, 24)).tobytes()
height_first = image.resize((12, 24)).resize((24, 24)).tobytes()
difference = max(abs(a - b) for a, b in zip(width_first, height_first))
print(f"Pillow {PIL.__version__}: width first: {at_once == width_first}, height first: {at_once == height_first}, "
      f"up to {difference} of 255 apart")
expected = width_first if sys.argv[1] == "width" else height_first
sys.exit(at_once != expected or width_first == height_first)
PYTHON

for pair in 12.3.0:width 13.0.0:height; do
    python3 -m venv "$folder/venv" || exit 77
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "pillow==${pair%:*}" || exit 77
    "$folder/venv/bin/python" "$folder/order.py" "${pair#*:}" || exit 1
    rm -rf "$folder/venv"
done
