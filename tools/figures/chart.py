"""Draws line charts as SVG, with several panels, lines with bands, and linear or logarithmic axes."""
import html
import math

COLOURS = ["#2b6cb0", "#c05621", "#2f855a", "#b83280", "#6b46c1", "#d69e2e", "#0987a0", "#9b2c2c", "#4a5568"]
PANEL, HEIGHT, LEFT, TOP, GAP = 270, 220, 62, 40, 62
FONT = 'font-family="system-ui, sans-serif"'


class Axis:
    def __init__(self, values, pixels, log, margin=0.04):
        scaled = [math.log10(value) if log else value for value in values]
        least, most = min(scaled), max(scaled)
        room = margin * ((most - least) or 1)
        self.least, self.most, self.pixels, self.log = least - room, most + room, pixels, log

    def __call__(self, value):
        scaled = math.log10(value) if self.log else value
        return self.pixels[0] + (scaled - self.least) / (self.most - self.least) * (self.pixels[1] - self.pixels[0])

    def ticks(self):
        if self.log:
            decades = range(math.ceil(self.least), math.floor(self.most) + 1)
            if len(decades) >= 3:
                step = math.ceil(len(decades) / 6)
                return [10.0 ** decade for decade in decades if decade % step == 0]
            steps = (1, 2, 5) if len(decades) else range(1, 10)
            found = [digit * 10.0 ** decade for decade in range(math.floor(self.least), math.ceil(self.most)) for digit in steps]
            return [value for value in found if self.least <= math.log10(value) <= self.most]
        size = 10 ** math.floor(math.log10(self.most - self.least))
        step = next(part * size for part in (0.1, 0.2, 0.5, 1, 2) if (self.most - self.least) / (part * size) <= 6)
        return [number * step for number in range(math.ceil(self.least / step), math.floor(self.most / step) + 1)]


def number_text(value):
    if value and (abs(value) >= 1e5 or abs(value) < 1e-3):
        mantissa, power = f"{value:.0e}".split("e")
        power = "".join("⁻" if sign == "-" else "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(sign)] for sign in str(int(power)))
        return f"10{power}" if mantissa == "1" else f"{mantissa}·10{power}"
    return f"{value:g}"


def text(x, y, words, size=12, anchor="middle", colour="#2d3748", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" {more}>{html.escape(words)}</text>'


def path(points, x, y):
    return " ".join(f"{'M' if i == 0 else 'L'}{x(one):.1f} {y(other):.1f}" for i, (one, other) in enumerate(points))


def panel(one, left, top, log_x, log_y, x_title):
    """Returns the SVG elements of the panel `one`: {title, lines: [{points, band, colour, width, opacity, mark}],
    note}."""
    drawn = [point for line in one["lines"] for point in line["points"] + line.get("band", [])]
    x = Axis([point[0] for point in drawn], (left, left + PANEL), log_x)
    y = Axis([point[1] for point in drawn], (top + HEIGHT, top), log_y)
    parts = [text(left + PANEL / 2, top - 10, one["title"], 14, more='font-weight="600"')]
    for value in x.ticks():
        parts += [f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{top}" y2="{top + HEIGHT}" stroke="#edf2f7"/>', text(x(value), top + HEIGHT + 16, number_text(value), 11)]
    for value in y.ticks():
        parts += [f'<line x1="{left}" x2="{left + PANEL}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#edf2f7"/>', text(left - 6, y(value) + 4, number_text(value), 11, "end")]
    parts.append(f'<rect x="{left}" y="{top}" width="{PANEL}" height="{HEIGHT}" fill="none" stroke="#cbd5e0"/>')
    for line in one["lines"]:
        if line.get("band"):
            parts.append(f'<path d="{path(line["band"], x, y)} Z" fill="{line["colour"]}" opacity="0.10"/>')
    for line in one["lines"]:
        style = f'stroke="{line["colour"]}" stroke-width="{line.get("width", 2)}" opacity="{line.get("opacity", 1)}"'
        parts.append(f'<path d="{path(line["points"], x, y)}" fill="none" stroke-linejoin="round" {style}/>')
        if line.get("mark"):
            end = line["points"][-1]
            parts.append(f'<circle cx="{x(end[0]):.1f}" cy="{y(end[1]):.1f}" r="2.6" fill="{line["colour"]}" opacity="{line.get("opacity", 1)}"/>')
    parts.append(text(left + PANEL / 2, top + HEIGHT + 34, x_title))
    if one.get("note"):
        parts.append(text(left + PANEL / 2, top + HEIGHT + 52, one["note"], 11, colour="#718096"))
    return parts


def chart(panels, legend, x_title, y_title, log_x=False, log_y=False, columns=3):
    """Returns the text of the SVG file. `legend` is {name: colour}; it is drawn below the panels."""
    columns, step = min(columns, len(panels)), TOP + HEIGHT + (60 if any(one.get("note") for one in panels) else 42)
    width = LEFT + columns * (PANEL + GAP) - GAP + 14
    parts = []
    for number, one in enumerate(panels):
        left, top = LEFT + number % columns * (PANEL + GAP), TOP + number // columns * step
        parts += panel(one, left, top, log_x, log_y, x_title)
        if number % columns == 0:
            middle = top + HEIGHT / 2
            parts.append(text(15, middle, y_title, more=f'transform="rotate(-90 15 {middle})"'))
    below = -(-len(panels) // columns) * step + 16
    in_a_row = min(len(legend), max(1, (width - LEFT) // 150))
    for place, (name, colour) in enumerate(legend.items()):
        left, top = LEFT + place % in_a_row * 150, below + place // in_a_row * 20
        parts += [f'<line x1="{left}" x2="{left + 22}" y1="{top - 4}" y2="{top - 4}" stroke="{colour}" stroke-width="3"/>', text(left + 28, top, name, 12, "start")]
    height = below + (len(legend) - 1) // in_a_row * 20 + 14
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" {FONT}>\n'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n")
