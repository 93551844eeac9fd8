"""Builds an HTML file with sections of figures, tables and text. The file contains the plotting library."""
import base64
import html
import io

import numpy as np
import plotly
import plotly.offline
from PIL import Image

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a202c; margin: 0 auto; max-width: 1180px; padding: 0 24px 80px; }
h1 { margin: 28px 0 4px; } h2 { margin: 44px 0 4px; border-bottom: 1px solid #e2e8f0; } p { margin: 6px 0; color: #4a5568; }
nav { position: sticky; top: 0; background: #fffffff0; padding: 8px 0; z-index: 5; border-bottom: 1px solid #e2e8f0; font-size: 13px; }
nav a { margin-right: 14px; color: #2b6cb0; text-decoration: none; white-space: nowrap; display: inline-block; }
table { border-collapse: collapse; margin: 10px 0; } td, th { padding: 3px 14px 3px 0; text-align: left; vertical-align: top; border-bottom: 1px solid #edf2f7; }
.absent { font-style: italic; } pre { background: #f7fafc; padding: 12px; overflow: auto; max-height: 460px; font-size: 13px; }
.pictures { display: flex; flex-wrap: wrap; gap: 12px; } .pictures figure { margin: 0; font-size: 12px; width: 112px; text-align: center; }
.pictures img { width: 96px; height: 96px; object-fit: contain; image-rendering: pixelated; background: #000; }
"""


class Page:
    def __init__(self, title):
        self.title = title
        self.parts, self.links, self.figures = [], [], 0

    def section(self, title, sentence=""):
        name = f"section-{len(self.links)}"
        self.links.append(f'<a href="#{name}">{html.escape(title)}</a>')
        self.parts.append(f'<h2 id="{name}">{html.escape(title)}</h2>')
        if sentence:
            self.text(sentence)

    def heading(self, title):
        self.parts.append(f"<h3>{html.escape(title)}</h3>")

    def text(self, sentence):
        self.parts.append(f"<p>{html.escape(sentence)}</p>")

    def items(self, sentences):
        self.parts.append("<ul>" + "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences) + "</ul>")

    def figure(self, made):
        """Adds a figure, or the sentence that replaces it."""
        if isinstance(made, str):
            self.parts.append(f'<p class="absent">{html.escape(made)}</p>')
            return
        self.figures += 1
        name = f"figure-{self.figures}"
        made = made.to_json().replace("<", "\\u003c")
        self.parts.append(f'<div class="chart" id="{name}"></div><script>{{const made = {made}; '
                          f'Plotly.newPlot("{name}", made.data, made.layout, {{displaylogo: false, responsive: true}})}}</script>')

    def table(self, header, rows):
        def row(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"
        self.parts.append("<table>" + row(header, "th") + "".join(row(cells, "td") for cells in rows) + "</table>")

    def code(self, text):
        self.parts.append(f"<pre>{html.escape(text)}</pre>")

    def pictures(self, images, captions):
        """Adds pictures. `images` is (N, height, width, channels), in bytes, or in floats that are scaled to 0 to
        255."""
        tiles = [f'<figure><img alt="" src="{picture_source(image)}"><figcaption>{html.escape(caption)}</figcaption></figure>'
                 for image, caption in zip(images, captions)]
        self.parts.append('<div class="pictures">' + "".join(tiles) + "</div>")

    def text_of_page(self):
        library = plotly.offline.get_plotlyjs()
        return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
                f'<link rel="icon" href="data:,"><title>{html.escape(self.title)}</title><style>{STYLE}</style>'
                f'<script>{library}</script></head>\n<body><h1>{html.escape(self.title)}</h1>'
                f'<nav>{"".join(self.links)}</nav>\n' + "\n".join(self.parts) + "\n</body></html>\n")


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
