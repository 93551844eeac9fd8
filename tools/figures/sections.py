#!/usr/bin/env python3
"""sections.py RUN FILE.png SECTION [SECTION …] [--dark]: makes a picture of sections of a report, for the documents.

Makes the report of RUN (tools/report.py) and keeps only the sections with the titles SECTION. Chromium renders them,
and the script crops the empty margins.
"""
import argparse
import html
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

REPORT = pathlib.Path(__file__).resolve().parents[1] / "report.py"
WIDTH, HEIGHT, COLOURS = 1180, 3000, 200


def chosen(page, titles):
    """Returns the page with only the sections `titles`, in the order of the page."""
    sections = re.findall(r'<section id="section-.*?</section>', page, re.DOTALL)
    named = {html.unescape(re.search(r"<h[23]>([^<]*)<", section)[1]): section for section in sections}
    missing = [title for title in titles if title not in named]
    if missing:
        sys.exit(f"the report has no section {missing[0]}; it has {', '.join(named)}")
    head, script = re.search(r"^.*<body>", page, re.DOTALL)[0], page[page.rindex("<script>"):]
    return head + '<style>.modebar { display: none; }</style><button id="theme" hidden></button>' + "".join(section for title, section in named.items() if title in titles) + script


def cut(path):
    """Crops the empty margins of the picture, and reduces its colours for a small file."""
    image = Image.open(path).convert("RGB")
    pixels = np.asarray(image)
    rows, columns = (np.flatnonzero((pixels != pixels[0, 0]).any(axis=(axis, 2))) for axis in (1, 0))
    image = image.crop((max(0, columns[0] - 12), max(0, rows[0] - 12), columns[-1] + 12, rows[-1] + 12))
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("sections", nargs="+")
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or sys.exit("sections.py needs chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        subprocess.run([sys.executable, REPORT, given.run, "-o", page], check=True, stdout=subprocess.DEVNULL)
        page.write_text(chosen(page.read_text(), given.sections))
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-unsafe-swiftshader", "--hide-scrollbars",
                        "--virtual-time-budget=60000", f"--window-size={WIDTH},{HEIGHT}", *["--blink-settings=preferredColorScheme=0"] * given.dark, f"--screenshot={given.picture.resolve()}", f"file://{page}"],
                       check=True, capture_output=True)
    cut(given.picture)
    print(f"{given.picture}: {given.picture.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
