"""Opens an HTML file in headless Chromium; returns the number of drawn elements and the lines of the console."""
import html.parser
import shutil
import subprocess

DRAWN = {"point", "js-line", "hm", "contour", "contourlayer", "parcoords-lines", "axis-brush"}


class Charts(html.parser.HTMLParser):
    """Counts the elements that plotly has drawn in each element of class `chart`; plotly marks them by class names."""

    def __init__(self):
        super().__init__()
        self.depth, self.chart, self.drawn = 0, None, {}

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        classes = set((given.get("class") or "").split())
        if tag == "div":
            if "chart" in classes:
                self.chart, self.depth = given["id"], 0
                self.drawn[self.chart] = 0
            self.depth += 1
        if self.chart and classes & DRAWN:
            self.drawn[self.chart] += 1

    def handle_endtag(self, tag):
        if tag == "div":
            self.depth -= 1
            if self.depth == 0:
                self.chart = None


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


def dumped(path, *flags):
    """Returns the page after its scripts ran, and the lines that it wrote to the console."""
    browser = subprocess.run([chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-unsafe-swiftshader", "--enable-logging=stderr",
                              "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=60000", "--dump-dom", *flags, f"file://{path}"],
                             capture_output=True, text=True, timeout=600, check=False)
    return browser.stdout, [line for line in browser.stderr.splitlines() if "CONSOLE" in line and "GL Driver Message" not in line]


def open_page(path):
    """Returns ({chart: number of drawn elements}, lines that the page wrote to the console)."""
    charts = Charts()
    page, console = dumped(path)
    charts.feed(page)
    return charts.drawn, console
