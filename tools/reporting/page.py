"""Builds an HTML file with sections of figures, tables and text. By default the file contains the plotting library."""
import base64
import contextlib
import html
import io
import pathlib

import numpy as np
import plotly
import plotly.offline
from PIL import Image

FOLDER = pathlib.Path(__file__).resolve().parent


class Page:
    def __init__(self, title):
        self.title = title
        self.parts, self.links, self.figures = [], [], 0
        self.is_in_section, self.heading_level = False, 2

    def section(self, title, sentence=""):
        self.end_section()
        name = f"section-{len(self.links)}"
        self.links.append(f'<a href="#{name}">{html.escape(title)}</a>')
        self.parts.append(f'<section id="{name}"><h{self.heading_level}>{html.escape(title)}</h{self.heading_level}>')
        self.is_in_section = True
        self.text(sentence)

    def end_section(self):
        if self.is_in_section:
            self.parts.append("</section>")
        self.is_in_section = False

    @contextlib.contextmanager
    def folded(self, title):
        """The sections that are added in the `with` block are hidden until the reader opens them."""
        self.end_section()
        self.parts.append(f"<details><summary><h2>{html.escape(title)}</h2></summary>")
        self.heading_level = 3
        yield
        self.end_section()
        self.heading_level = 2
        self.parts.append("</details>")

    @contextlib.contextmanager
    def folded_text(self, title):
        """Hides what is added in the `with` block, inside a section."""
        self.parts.append(f"<details><summary>{html.escape(title)}</summary>")
        yield
        self.parts.append("</details>")

    def heading(self, title):
        self.parts.append(f"<h{self.heading_level + 1}>{html.escape(title)}</h{self.heading_level + 1}>")

    def text(self, sentence):
        if sentence:
            self.parts.append(f"<p>{html.escape(sentence)}</p>")

    def items(self, sentences):
        self.parts.append("<ul>" + "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences) + "</ul>")

    def figure(self, made):
        """Adds a figure, or the sentence that replaces it."""
        if isinstance(made, str):
            self.parts.append(f'<p class="absent">{html.escape(made)}</p>')
            return
        self.figures += 1
        width = f"width:{made.layout.width}px;" if made.layout.width else ""
        self.parts.append(f'<div class="chart" id="figure-{self.figures}" style="{width}height:{made.layout.height}px"></div>'
                          '<script type="application/json">' + made.to_json().replace("<", "\\u003c") + "</script>")

    def table(self, header, rows):
        def row(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
        self.parts.append('<div class="scroll"><table>' + row(header, "th") + "".join(row(cells, "td") for cells in rows) + "</table></div>")

    def code(self, text, button="Copy"):
        """Adds a text that the reader can copy by a button."""
        self.parts.append(f'<div class="code"><pre>{html.escape(text)}</pre><button type="button">{html.escape(button)}</button></div>')

    def pictures(self, images, captions):
        """Adds pictures. `images` is (N, height, width, channels), in bytes, or in floats that are scaled to 0 to
        255."""
        tiles = [f'<figure><img alt="" src="{picture_source(image)}"><figcaption>{html.escape(caption)}</figcaption></figure>'
                 for image, caption in zip(images, captions)]
        self.parts.append('<div class="pictures">' + "".join(tiles) + "</div>")

    def text_of_page(self, library="inline", reload_seconds=0):
        """Returns the page. `library` "cdn" loads plotly from the network. A page with `reload_seconds` reloads
        itself."""
        self.end_section()
        script = f"<script>{plotly.offline.get_plotlyjs()}</script>" if library == "inline" else \
            f'<script src="https://cdn.plot.ly/plotly-{plotly.offline.get_plotlyjs_version()}.min.js"></script>'
        style, behaviour = ((FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
        return (f'<!DOCTYPE html>\n<html lang="en" data-reload="{reload_seconds}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
                f'<link rel="icon" href="data:,"><title>{html.escape(self.title)}</title><style>{style}</style>'
                f'{script}</head>\n<body><h1>{html.escape(self.title)}</h1>'
                f'<nav><button type="button" id="theme">Dark</button>{"".join(self.links)}</nav>\n' + "\n".join(self.parts) +
                f"\n<script>{behaviour}</script></body></html>\n")


def picture_source(image):
    """Returns a data URL with a PNG of the image. Three channels are colours; otherwise the first channel is grey."""
    image = np.asarray(image)
    if image.dtype != np.uint8:
        low, high = float(image.min()), float(image.max())
        image = np.rint((image - low) / (high - low) * 255 if high > low else image * 0).astype(np.uint8)
    image = image if image.shape[-1] == 3 else image[..., 0]
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
