"""Checks tools/report.py on real runs. A real browser draws every figure without a console message, and the figures
agree with population.h5. Also checks reports of several runs, and the errors for folders without a run."""
import fcntl
import html
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys

import h5py
import numpy as np

from browser import chromium, dumped, open_page
from harness import FINCH, NOISY, SKIPPED, SOURCE, TINY, Folder, check, end_of_short_form, environment, individuals, listens, outcome_words, passed, wait_for

os.environ["FINCH"] = FINCH  # the report asks this program
REPORT = SOURCE / "tools" / "report.py"
FRONT = TINY.replace("objective: validation_loss", "objective: [validation_loss, parameters]\n  exchange: {kind: migration, probability: 1}").replace(
    "evaluations: 12", "evaluations: 40").replace("name: tiny", "name: front").replace("ranks: 2", "ranks: 1").replace("epochs: 3", "epochs: 2")
SPHERE = ["--set", "search.budget.evaluations=20000"]


def made(folder, *arguments, expect=0):
    ended = subprocess.run([sys.executable, str(REPORT), *map(str, arguments)], cwd=folder.path, env=environment(), capture_output=True, text=True, check=False)
    check(ended.returncode == expect, f"report.py {arguments}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    check(expect == 0 or ("Traceback" not in ended.stderr and ended.stderr.count("\n") == 1), f"no one line: {ended.stderr}")
    return ended.stdout + ended.stderr


def figures_of(page):
    """Returns {title of the section: figure} of a page. The second figure of a section has the title with " 2"."""
    found = {}
    for part in re.findall(r'<section id="[^"]*">.*?</section>', page.read_text(), re.DOTALL):
        title = html.unescape(re.search(r"<h[23]>([^<]*)", part)[1])
        for number, figure in enumerate(re.findall(r'<script type="application/json">(.*?)</script>', part, re.DOTALL)):
            found[title + " 2" * number] = json.loads(figure)
    return found


def sections_of(text):
    return [html.unescape(title) for title in re.findall(r'<section id="[^"]*"><h[23]>([^<]*)', text)]


def trace(figure, name):
    return next(trace for trace in figure["data"] if trace.get("name") == name)


def with_script(page, name, script):
    """Copies a page, with a script behind its own. Returns the path."""
    copy = page.with_name(name)
    copy.write_text(page.read_text().replace("</body>", f"<script>{script}</script></body>"))
    return copy


def check_drawn(page, least):
    """Checks that a browser draws every figure. A reader opens all folded parts."""
    charts, console = open_page(with_script(page, "opened.html", "document.querySelectorAll('details').forEach((part) => { part.open = true; })"))
    check(len(charts) >= least and all(charts.values()), f"{page}: drawn in each figure: {charts}; expected something in {least} or more")
    check(not console, f"{page}: the browser complains: {console}")
    text = page.read_text()
    outside = [address for address in re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]{0,80})', text) if not address.startswith("data:")]
    check(not outside, f"{page} loads {outside}")
    return charts


def check_numbers(run, figures):
    """Compares the figures with the rows of the archive, which this test reads without the code of the report."""
    rows, words = list(individuals(run).values()), outcome_words(run)
    done = [row for row in rows if words[row["outcome"]] == "evaluated"]
    progress = trace(figures["Progress"], "best so far")
    check(progress["y"][-1] == min(row["loss"] for row in done), f"best so far ends at {progress['y'][-1]}")
    check(all(one >= other for one, other in zip(progress["y"], progress["y"][1:])), "best so far rises")
    ended = figures["How evaluations ended"]["data"]
    counted = {bar["name"]: sum(bar["x"]) for bar in ended}
    expected = {word: sum(words[row["outcome"]] == word for row in rows) for word in counted}
    check(counted == expected and sum(counted.values()) == len(rows), f"outcomes {counted}, expected {expected}")
    return done


def check_norms(run, traces):
    """The weight norms of the best epoch must be those of the weights in best.h5."""
    with h5py.File(run / "models" / "best.h5") as best:
        layers = sorted({name.rpartition(".")[0] for name in best if name.endswith(".weight")})
        epoch = best.attrs["best_epoch"]
        expected = {layer: np.sqrt(sum((best[f"{layer}.{part}"][:].astype(float) ** 2).sum() for part in ("weight", "bias"))) for layer in layers}
    weights = {trace["name"]: dict(zip(trace["x"], trace["y"])).get(epoch) for trace in traces[:len(traces) // 2]}
    check(sorted(weights) == layers and all(abs(weights[name] - expected[name]) < 1e-6 * expected[name] for name in layers),
          f"the norms in the report are {weights}, those of best.h5 {expected}")


def naive_front(points):
    return sorted(point for point in points if not any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in points))


def trained_runs(folder):
    folder.write("front.yaml", FRONT)
    folder.run(4, "evolve", "front.yaml", "--fresh")
    folder.run(4, "evolve", "front.yaml", "--fresh", "--set", "name=other", "--set", "seed=4", "--set", "search.pruning=halving", "--set",
               "search.objective=validation_error", "--set", "training.epochs=4",
               "--set", "training.watch=true")
    run = folder.path / "runs" / "front"
    made(folder, run, "-o", "front.html")
    check_drawn(folder.path / "front.html", 10)
    figures = figures_of(folder.path / "front.html")
    done = check_numbers(run, figures)
    front = trace(figures["The front"], "the front")
    expected = naive_front({(float(row["loss"]), float(row["parameters"])) for row in done})
    check(list(zip(front["y"], front["x"])) == expected, f"the front is {list(zip(front['y'], front['x']))}, expected {expected}")
    with h5py.File(run / "models" / "best.h5") as best, h5py.File(run / "population.h5") as archive:
        confusion = figures["The best network's mistakes"]["data"][0]["text"]
        check(np.array_equal(confusion, best["test/confusion"][:]), "the confusion matrix is not that of best.h5")
        shown = (folder.path / "front.html").read_text().count("<img ")
        mistakes, drawn = (len(best[f"test/{kind}/index"]) for kind in ("mistakes", "sample"))
        check(shown == mistakes + drawn and mistakes > 0 and drawn == 25, f"{shown} pictures of {mistakes} mistakes and {drawn} drawn images")
        moved = np.array(figures["Exchange between islands"]["data"][0]["z"])
        check(moved.sum() == len(archive["homes"]), f"{moved.sum()} moves, expected {len(archive['homes'])}")
    curve = best_curve(figures)
    check(min(one for one in curve["y"] if one is not None) == min(row["loss"] for row in done), "the best learning curve is another's")
    text = html.unescape((folder.path / "front.html").read_text())
    sentences = (run / "summary.txt").read_text().partition("\nnext\n")[0].split("\n  - ")[1:]
    missing = [sentence for sentence in sentences if f"<li>{' '.join(sentence.split())}</li>" not in text]
    check(len(sentences) >= 4 and not missing, f"the report lacks sentences of summary.txt: {missing or sentences}")
    passed("a run with two objectives: every figure is drawn, and shows what the archive holds")

    made(folder, folder.path / "runs" / "other", run, "-o", "both.html")
    check_drawn(folder.path / "both.html", 7)
    text = (folder.path / "both.html").read_text()
    check("<td>search.pruning</td><td>" in text and "<td>training.batch_size</td>" not in text, "the table of differences")
    check(len(figures_of(folder.path / "both.html")["Progress"]["data"]) == 2, "two runs are two lines")
    check("Norms of the layers" in figures_of(folder.path / "both.html"), "no figure of the norms")
    check("Norms of the layers" not in figures, "a figure of norms that were not recorded")
    check_norms(folder.path / "runs" / "other", figures_of(folder.path / "both.html")["Norms of the layers"]["data"])
    check(axis_titles(figures_of(folder.path / "both.html")["Progress"]) == {"evaluations", "error or loss"}, "two measures on one axis have no names")
    passed("two runs in one report, with what their configurations differ in")


def axis_titles(figure):
    return {axis["title"]["text"] for name, axis in figure["layout"].items() if name[1:5] == "axis" and "title" in axis}


def words_for_things(folder):
    """Checks that every axis and the text name the measure: a validation error is not called a loss."""
    run = folder.path / "runs" / "other"
    made(folder, run, "-o", "error.html")
    figures = figures_of(folder.path / "error.html")
    title = "validation error (%)"
    for section in ("Progress", "Learning curves", "Each gene"):
        titles = {text.replace("<br>", " ") for text in axis_titles(figures[section])}
        check(title in titles, f"{section}: {titles}")
    check(figures["Genes and error"]["data"][0]["dimensions"][-1]["label"] == title, "parallel coordinates have another axis")
    text = re.sub(r"<pre>.*?</pre>|<script.*?</script>|<style>.*?</style>", "", (folder.path / "error.html").read_text(), flags=re.DOTALL)
    check("loss" not in text, f"an error is called a loss: {re.findall('.{60}loss.{60}', text)}")
    check("share of images" not in text, "an error has two units")
    words = outcome_words(run)
    done = [float(row["loss"]) for row in individuals(run).values() if words[row["outcome"]] == "evaluated"]
    best = min(done)
    curve = best_curve(figures)
    check(math.isclose(min(one for one in curve["y"] if one is not None), 100 * best), "the best learning curve is of another measure")
    check(f"<td>{100 * best:.2f} %</td>" in text, "the table of the best is not in percent")
    for section, drawn in (("Each gene", figures["Each gene"]["data"][0]["y"]), ("Progress", trace(figures["Progress"], "best so far")["y"])):
        check(math.isclose(min(drawn), 100 * best), f"{section} is not in percent: {min(drawn)}, the best is {best}")
    passed("an error is called so on every axis and in the text, in percent")


def interval_of_star(figure):
    star = trace(figure, "best")
    return star["y"][0] - star["error_y"]["arrayminus"][0], star["y"][0] + star["error_y"]["array"][0]


def best_has_interval(folder):
    """Compares the interval of an error with Wilson's, and that of a loss with 1.96 standard errors of the mean."""
    run = folder.path / "runs" / "other"
    figure = figures_of(folder.path / "error.html")["Progress"]
    best = trace(figure, "best so far")["y"][-1] / 100
    with h5py.File(run / "models" / "best.h5") as file:
        expected = 100 * np.array(wilson(best, len(file["validation/index"])))
    check(np.allclose(interval_of_star(figure), expected, atol=1e-6), f"the interval of the best is {interval_of_star(figure)}, expected {expected}")
    check(trace(figure, "best")["text"] == [best_id(run)], f"the star is called {trace(figure, 'best')['text']}")

    figure = figures_of(folder.path / "front.html")["Progress"]
    with h5py.File(folder.path / "runs/front/models/best.h5") as file:
        truth = file["validation/truth"][:]
        losses = -np.log(file["validation/scores"][:][np.arange(len(truth)), truth].astype(float))
    best, error = trace(figure, "best so far")["y"][-1], 1.96 * losses.std() / math.sqrt(len(losses))
    check(np.allclose(interval_of_star(figure), (best - error, best + error), atol=0.2 * error), f"{interval_of_star(figure)}, expected {best} ± {error}")
    passed("the best is marked, with the 95 % interval of its error or loss")


def best_curve(figures):
    return next(trace for trace in figures["Learning curves"]["data"] if trace["name"].startswith("best: "))


def best_id(run):
    words = outcome_words(run)
    return id_text(min((row["loss"], row["reused_from"] != 0, key) for key, row in individuals(run).items() if words[row["outcome"]] == "evaluated")[2])


def wilson(rate, samples):
    """Returns the rates p for which |rate - p| is 1.96 standard errors of p: the definition of Wilson's interval, by
    bisection."""
    def end(outer):
        inner = rate
        for _ in range(80):
            middle = (inner + outer) / 2
            is_inside = abs(rate - middle) <= 1.959964 * math.sqrt(middle * (1 - middle) / samples)
            inner, outer = (middle, outer) if is_inside else (inner, middle)
        return inner
    return end(0.0), end(1.0)


def hypervolume(folder):
    """Compares the hypervolume with the area of a fine grid."""
    def scatter(rows, outcomes):
        random = np.random.default_rng(0)
        rows["outcome"], rows["loss"], rows["parameters"] = outcomes["evaluated"], random.uniform(0.2, 0.9, len(rows)), random.integers(100, 9000, len(rows))

    changed(folder, "front", "area", scatter)
    made(folder, "runs/area", "-o", "area.html")
    figure, text = figures_of(folder.path / "area.html")["The front 2"], (folder.path / "area.html").read_text()
    rows = sorted(individuals(folder.path / "runs/area").values(), key=lambda row: (row["finished"], row["id"]))
    points = np.array([(row["loss"], row["parameters"]) for row in rows], float)
    low, high = np.array([(min(axis), max(axis)) for axis in zip(*naive_front({tuple(point) for point in points}))]).T
    reference = high + 0.1 * (high - low)
    grid = (np.arange(400) + 0.5) / 400
    cells = np.stack([axis.ravel() for axis in np.meshgrid(*(low + (reference - low) * grid[:, None]).T)], axis=1)
    for count in (1, len(points) // 2, len(points)):
        area = (points[:count, None] <= cells[None]).all(axis=2).any(axis=0).mean()
        drawn = figure["data"][0]["y"][count - 1]
        check(abs(drawn - area) < 0.01, f"after {count} individuals the hypervolume is {drawn}, expected {area}")
    check(f"loss {reference[0]:.5g}, parameters {reference[1]:.4g}." in text, f"the page does not name the reference point {reference}")
    folder.write("nan.yaml", """
search:
  objective: {command: "[ {v} = 1 ] && f=nan || f=-{v}; echo finch loss={v} f=$f", shell: true, objectives: [loss, metric.f]}
  space: {v: {int: [1, 6]}}
  budget: {evaluations: 6}
""")
    folder.run(1, "evolve", "nan.yaml", "--run", "runs/nan")
    made(folder, "runs/nan", "-o", "nan.html")
    figures = figures_of(folder.path / "nan.html")
    check(sorted(trace(figures["The front"], "the front")["y"]) == [2, 3, 4, 5, 6] and figures["The front 2"]["data"][0]["y"][-1] > 0, f"{figures}")
    passed("the hypervolume is the area that the front dominates; a result with an objective that is NaN is on no front")


def folded_parts(folder):
    """Checks the order of the sections, and that a folded figure gets its width when a reader opens it."""
    page = folder.path / "front.html"
    results, course = page.read_text().split("<h2>How the run went</h2>")
    expected = ["Summary", "The best of all", "Progress", "Learning curves", "Genes and loss", "Each gene", "What mattered", "Pairs of genes",
                "The front", "The best network's mistakes"]
    check(sections_of(results) == expected, f"results: {sections_of(results)}")
    expected = ["Facts", "How evaluations ended", "Workers", "Exchange between islands", "Where the best comes from", "Configuration"]
    check(sections_of(course) == expected, f"how the run went: {sections_of(course)}")
    folded = len(figures_of(page)) - results.count('class="chart"')
    charts = open_page(page)[0]
    check(sum(not count for count in charts.values()) == folded > 2, f"drawn while folded: {charts}")
    text = dumped(folder.path / "opened.html")[0]
    widths = [float(width) for width in re.findall(r'<svg class="main-svg"[^>]* width="([\d.]+)"', text)]
    check(widths and min(widths) > 200 and sum(width > 600 for width in widths) > folded, f"widths {widths}")
    passed("results come first; the course of the run is folded, and its figures have their size when it is opened")


def ticks_of(figure):
    """Returns {title of the axis: (tick values, tick texts)}."""
    return {axis["title"]["text"]: (axis["tickvals"], axis["ticktext"]) for name, axis in figure["layout"].items()
            if name[1:5] == "axis" and "title" in axis and "tickvals" in axis}


def round_ticks(folder):
    """Checks the ticks of genes: powers of ten times 1, 2 or 5 for lr, whole numbers for layers, options for
    activation. Choices of one option do not run through one point."""
    figures = figures_of(folder.path / "front.html")
    parallel = {axis["label"]: axis for axis in figures["Genes and loss"]["data"][0]["dimensions"]}
    menu = figures["Pairs of genes"]["layout"]["updatemenus"][0]["buttons"]
    places = {"Each gene": ticks_of(figures["Each gene"]), "parallel": {name: (axis["tickvals"], axis["ticktext"]) for name, axis in parallel.items()},
              "pairs": {change[f"{axis}.title.text"]: (change[f"{axis}.tickvals"], change[f"{axis}.ticktext"]) for axis in ("xaxis", "yaxis")
                        for change in (button["args"][1] for button in menu)}}
    for place, ticks in places.items():
        values, texts = ticks["lr"]
        check(len(values) > 1 and all(f"{10 ** value:.1e}"[:3] in ("1.0", "2.0", "5.0") for value in values), f"{place}: lr has ticks {texts}")
        check(np.allclose([float(text) for text in texts], 10.0 ** np.array(values)), f"{place}: lr: {values} are called {texts}")
        values, texts = ticks["layers"]
        check(all(value == int(value) and text == str(int(value)) for value, text in zip(values, texts)), f"{place}: layers has ticks {texts}")
        check(ticks["activation"][1] == ["relu", "sigmoid", "tanh"], f"{place}: activation has ticks {ticks['activation']}")
    moved = np.array(parallel["activation"]["values"])
    check(0 < abs(moved - np.rint(moved)).max() < 0.25 and len(set(moved)) == len(moved), "lines of one option run through one point")
    passed("ticks are powers of ten, whole numbers and options; equal options are apart")


def importance_of_genes(folder):
    """Checks that the bars are those of `finch show`, and that the gene without an effect has none. The loss depends on
    x0 alone."""
    folder.write("sixty.yaml", "name: sixty\nsearch: {objective: {function: sphere}, propagator: random, budget: {evaluations: 60}}\nworkers: {ranks: 1}\n")
    folder.run(0, "evolve", "sixty.yaml")

    def forget_x1(rows, outcomes):
        rows["loss"] = rows["x0"] ** 2

    changed(folder, "sixty", "one", forget_x1)
    made(folder, "runs/one", "-o", "one.html")
    figure = figures_of(folder.path / "one.html")["What mattered"]
    shares = json.loads(folder.run(0, "show", "runs/one", "--json"))["statistics"]["gene_shares"]
    bars = dict(zip(figure["data"][0]["y"], figure["data"][0]["x"]))
    check(bars == {"x0": shares[0], "x1": 0} and shares[0] > 0.8, f"bars {bars}, shares {shares}")
    labels = dict(zip(figure["data"][0]["y"], (label["text"] for label in figure["layout"]["annotations"])))
    check(labels == {"x0": f"{shares[0]:.2f}", "x1": "within chance"}, f"the genes are called {labels}")
    check(re.search(r"not seen is -?\d\.\d\d", (folder.path / "one.html").read_text()), "the forest has no R²")
    passed("the bars are the shares of finch show; a gene without an effect has none")


def random_search(folder):
    """Compares the line of random search with the mean over all sets of random individuals."""
    folder.write("ten.yaml", "name: ten\nsearch: {objective: {function: sphere}, propagator: random, budget: {evaluations: 10}}\nworkers: {ranks: 1}\n")
    folder.run(0, "evolve", "ten.yaml")

    def fail(rows, outcomes):
        rows["outcome"][:3] = outcomes["failed"]
        rows["loss"][:3] = np.nan

    changed(folder, "ten", "some", fail)
    made(folder, "runs/some", "-o", "some.html")
    line = trace(figures_of(folder.path / "some.html")["Progress"], "random search (expected)")
    losses = [math.inf] * 3 + [float(row["loss"]) for row in individuals(folder.path / "runs/some").values() if math.isfinite(row["loss"])]
    check(line["x"] == [1, 2, 3, 4, 5], f"random search is drawn at {line['x']}")
    for draws, drawn in zip(line["x"], line["y"]):
        bests = [min(some) for some in itertools.combinations(losses, draws)]
        expected = np.mean([best for best in bests if math.isfinite(best)])
        check(math.isclose(drawn, expected), f"the expected best of {draws} random individuals is {drawn}, expected {expected}")
    passed("random search is the mean over all sets of random individuals, up to half of them")


def configuration_of_best(folder):
    """Checks that `finch train` accepts the copied configuration, and trains the genes of the best."""
    run = folder.path / "runs" / "front"
    copied = re.search(r"<pre>([^<]*)</pre><button type=\"button\">Copy the configuration of the best", (folder.path / "front.html").read_text())
    folder.write("best.yaml", html.unescape(copied[1]))
    folder.run(0, "train", "best.yaml", "--run", "again", "--set", "workers.islands=1")
    best = json.loads(folder.run(0, "show", run, best_id(run), "--json"))
    again = json.loads(folder.run(0, "show", "again", "0.0.1", "--json"))
    check(again["genes"] == best["genes"] and again["outcome"] == "evaluated", f"{again['genes']}, the best has {best['genes']}")
    passed("finch train accepts the copied configuration of the best")


def small_page(folder):
    made(folder, "runs/front", "-o", "small.html", "--plotly", "cdn")
    page = folder.path / "small.html"
    text = page.read_text()
    check(len(text) < 1e6 and re.search(r'<script src="https://cdn\.plot\.ly/plotly-\d+\.\d+\.\d+\.min\.js">', text), f"{len(text)} bytes")
    check("The plotting library is missing" in re.sub(r"<script>.*?</script>", "", dumped(page)[0], flags=re.DOTALL), "without a network the page says nothing")
    os.mkfifo(folder.path / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=folder.path, stdout=subprocess.PIPE) as reader:
        made(folder, "runs/front", "-o", "pipe", "--plotly", "cdn")
        check(reader.communicate()[0].startswith(b"<!DOCTYPE html>") and (folder.path / "pipe").is_fifo(), "a FIFO is replaced, or gets no page")
    passed("--plotly cdn makes a small page, also in a FIFO")


def dark_page(folder):
    """Checks the theme of the browser and the button, for the page and its figures."""
    page = folder.path / "opened.html"
    for press, flags, theme, paper in (("", [], "light", "255, 255, 255"), ("", ["--blink-settings=preferredColorScheme=0"], "dark", "20, 24, 31"),
                                       ("document.getElementById('theme').click()", [], "dark", "20, 24, 31")):
        text, console = dumped(with_script(page, "theme.html", press), *flags)
        check(f'data-theme="{theme}"' in text.split("<head>")[0], f"{press} {flags}: the theme is not {theme}")
        papers = set(re.findall(r'<svg class="main-svg"[^>]*style="[^"]*background: rgb\(([^)]*)\)', text))
        check(papers == {paper} and not console, f"{theme}: figures on {papers}; {console}")
    passed("the page and its figures are light or dark, as the browser or the button asks")


def start_report(folder, *arguments):
    return subprocess.Popen([sys.executable, str(REPORT), *map(str, arguments), "--follow", "--interval", "0.2"], cwd=folder.path, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment())


def follow(folder):
    """Checks that --follow waits for the archive, rewrites the page, and leaves a final page that does not reload."""
    page = folder.path / "follow.html"

    def has(text):
        return page.exists() and text in page.read_text()

    def end(report):
        output = report.communicate()[0]
        check(report.returncode == 0 and "figures" in output, f"report.py --follow: exit code {report.returncode}: {output}")
        check(has('data-reload="0"'), "the final page reloads itself")

    late = folder.path / "runs/late"
    (late / "state").mkdir(parents=True)
    with open(late / "lock", "w") as lock:  # of a run that has no archive yet
        fcntl.lockf(lock, fcntl.LOCK_EX)
        report = start_report(folder, "runs/late", "-o", "follow.html")
        wait_for(lambda: listens(report.pid, signal.SIGTERM) or report.poll() is not None, "a handler of SIGTERM")
        check(not page.exists(), "a page of a run without an archive")
        shutil.copy(folder.path / "runs/front/population.h5", folder.path / "copy.h5")
        (folder.path / "copy.h5").rename(late / "population.h5")
        wait_for(lambda: has('data-reload="0.2"') or report.poll() is not None, "a page that reloads itself")
    end(report)

    page.unlink()
    running = folder.start(0, "evolve", "slow.yaml", "--fresh")
    archive = folder.path / "runs/slow/population.h5"
    wait_for(lambda: archive.exists() or running.poll() is not None, "an archive")
    report = start_report(folder, "runs/slow", "-o", "follow.html")
    wait_for(lambda: has('data-reload="0.2"') or report.poll() is not None, "a page that reloads itself")
    first = page.stat().st_ino
    wait_for(lambda: page.stat().st_ino != first or report.poll() is not None, "a second page")
    report.send_signal(signal.SIGINT)
    end(report)
    check(has("<td>state</td><td>running</td>"), "the run is not running")

    check_reload(page)
    report = start_report(folder, "runs/slow", "-o", "follow.html")
    wait_for(lambda: has('data-reload="0.2"') or report.poll() is not None, "a page that reloads itself")
    running.send_signal(signal.SIGTERM)
    running.wait()
    end(report)
    check(has("<td>state</td><td>stopped early</td>"), "the last page is not of the end")
    check(not list(folder.path.glob(".follow.html*")), "a part of a page is left")
    passed("--follow rewrites the page until the run ends or SIGINT")


def check_reload(page):
    """Checks that a page that reloads itself keeps the scroll position and what is open."""
    script = """
        const visits = Number(sessionStorage.visits || 0) + 1;
        sessionStorage.visits = visits;
        const part = [...document.querySelectorAll("details")].pop();
        if (visits === 1) { scrollTo(0, 300); part.open = true; }
        setTimeout(() => { Object.assign(document.body.dataset, { visits, top: scrollY, open: part.open }); }, 50);"""
    copy = with_script(page, "reload.html", script)
    copy.write_text(copy.read_text().replace('data-reload="0"', 'data-reload="0.5"').replace(
        "<body>", "<body><script>history.scrollRestoration = 'manual'; if (sessionStorage.visits) document.documentElement.dataset.reload = 0;</script>"))
    body = re.search(r"<body[^>]*>", dumped(copy)[0])[0]
    check(all(text in body for text in ('data-visits="2"', 'data-top="300"', 'data-open="true"')), f"after a reload: {body}")


def states(folder):
    """Checks that report and `finch status` name the same state if a run is complete, running, stopped or killed."""
    sys.path.insert(0, str(SOURCE / "tools"))
    from reporting.run import read_run

    def check_state(name, expected):
        run = folder.path / "runs" / name
        told = subprocess.run([FINCH, "status", str(run)], capture_output=True, text=True, check=False).stdout.partition(":")[0]
        check(read_run(run).state == told == expected, f"the report says {read_run(run).state}, status {told}, expected {expected}")

    check_state("other", "complete")
    folder.write("slow.yaml", "name: slow\nsearch: {objective: {function: sphere, seconds: 0.1}, budget: {evaluations: 100000}}\n"
                              "workers: {ranks: 1}\ncheckpoint: {archive_seconds: 0.2}\n")
    archive = folder.path / "runs" / "slow" / "population.h5"
    for end, word in ((signal.SIGTERM, "stopped early"), (signal.SIGKILL, "interrupted")):
        archive.unlink(missing_ok=True)
        running = folder.start(0, "evolve", "slow.yaml", "--fresh")
        wait_for(lambda: archive.exists() or running.poll() is not None, "an archive")
        check_state("slow", "running")
        running.send_signal(end)
        running.wait()
        check_state("slow", word)
    made(folder, "runs/slow", "-o", "slow.html")
    check("<td>state</td><td>interrupted</td>" in (folder.path / "slow.html").read_text(), "the page has another state")
    passed("the state is the one that finch status prints")


def changed(folder, run, name, change):
    """Copies the archive of `run` to a new run `name`, and lets `change` modify the rows of /individuals."""
    (folder.path / "runs" / name).mkdir()
    shutil.copy(folder.path / "runs" / run / "population.h5", folder.path / "runs" / name)
    with h5py.File(folder.path / "runs" / name / "population.h5", "r+") as file:
        rows = file["individuals"][:]
        change(rows, {word: number for word, number in h5py.check_enum_dtype(rows.dtype["outcome"]).items()})
        file["individuals"][:] = rows


def inactive_genes(folder):
    """Checks that the report omits inactive genes, as `finch show` does. Conditions compare values as text (3.10, not
    3.1)."""
    folder.write("when.yaml", """
name: when
search:
  objective: {command: "echo finch loss=$FINCH_GENE_v", shell: true}
  space:
    v: {int: [1, 9]}
    a: {choice: [3.1, 3.10, yes]}
    d: {int: [1, 3], when: {v: [2, 3, 4]}}
    e: {real: [0, 1], when: {d: 2}}
    x: {real: [0, 1], when: {a: [3.10, yes]}}
  propagator: random
  duplicates: train
  budget: {evaluations: 40}
workers: {ranks: 1}
""")
    folder.run(2, "evolve", "when.yaml")
    made(folder, "runs/when", "-o", "when.html")
    figure = figures_of(folder.path / "when.html")["Progress"]
    texts = next(trace for trace in figure["data"] if trace["name"] == "individuals")["text"]
    lengths = set()
    for text in texts:
        head, *genes = text.split("<br>")
        told = json.loads(folder.run(0, "show", "runs/when", head.split(",")[0], "--json"))["genes"]
        check([gene.split(" = ")[0] for gene in genes] == list(told), f"{text}: finch show has {told}")
        lengths.add(len(genes))
    check(len(lengths) > 2, f"all have {lengths} genes")
    best = re.search(r"<td>its genes</td><td>([^<]*)", (folder.path / "when.html").read_text())[1]
    check(", d = " not in best and best.startswith("v = 1, a = "), f"the best has {best}")
    passed("genes that are not active are left out")


def curves_of_failures(folder):
    """Checks that the best learning curve is drawn even if failed individuals have lower losses. Failed individuals are
    drawn separately."""
    folder.write("crash.yaml", """
name: crash
search:
  objective: {command: "for epoch in 1 2 3; do printf 'finch loss=%s epoch=%s\\n' {x} $epoch; done", shell: true}
  space: {x: {real: [0.5, 1]}}
  propagator: random
  budget: {evaluations: 300}
workers: {ranks: 1}
""")
    folder.run(4, "evolve", "crash.yaml")

    def change(rows, outcomes):
        half = len(rows) // 2
        rows["outcome"][:half] = [outcomes[word] for word in ("failed", "diverged", "out_of_memory")] * (half // 3)
        rows["loss"][:half] /= 100
        rows["loss"][half - 60:half] = np.nan

    changed(folder, "crash", "low", change)
    made(folder, "runs/low", "-o", "low.html")
    figures = figures_of(folder.path / "low.html")
    traces = {trace["name"].partition(":")[0]: trace for trace in figures["Learning curves"]["data"]}
    words, rows = outcome_words(folder.path / "runs/low"), individuals(folder.path / "runs/low")
    trained = {id_text(key) for key, row in rows.items() if words[row["outcome"]] == "evaluated"}
    best = min((row["loss"], key) for key, row in rows.items() if words[row["outcome"]] == "evaluated")[1]
    check(set(traces["best"]["text"]) == {id_text(best)}, f"the best curve is {set(traces['best']['text'])}, the best {id_text(best)}")
    check(set(traces["trained"]["text"]) <= trained, f"drawn as trained: {set(traces['trained']['text']) - trained}")
    failed = set(traces["failed"]["text"])
    check(failed and not failed & trained and len(failed) <= 50, f"drawn as failed: {failed}")
    passed("learning curves: the best is always there, and failed ones are drawn apart")


def id_text(number):
    number = int(number)
    return f"{number >> 52}.{number >> 32 & 0xFFFFF}.{number & 0xFFFFFFFF}"


def same_best(folder):
    """Checks that report and `finch status` agree on the best individual. Repeats of a final choice do not count. Of
    equal losses, the smallest id that was trained (not reused) wins."""
    folder.write("noisy.yaml", f"name: noisy\nsearch: {{{NOISY}, budget: {{evaluations: 60}}, final: {{candidates: 4, repeats: 6}}}}\n"
                               "workers: {ranks: 1}\n")
    folder.run(2, "evolve", "noisy.yaml")

    def make_equal(rows, outcomes):
        rows["loss"] = 0.5
        rows["finished"] = rows["finished"][::-1].copy()
        rows["reused_from"][np.argsort(rows["id"])[:2]] = rows["id"].max()

    def make_repeats_best(rows, outcomes):
        rows["loss"] -= 100 * (rows["operator"] == 6)

    changed(folder, "words", "equal", make_equal)
    changed(folder, "noisy", "repeated", make_repeats_best)
    told = re.search(r"best \S+ (\S+) \((\S+)\)", folder.run(0, "status", "runs/noisy"))
    third = sorted(individuals(folder.path / "runs/equal"))[2]
    for name, best, loss in (("noisy", told[2], float(told[1])), ("repeated", told[2], float(told[1])), ("equal", id_text(third), 0.5)):
        made(folder, f"runs/{name}", "-o", "best.html")
        page = (folder.path / "best.html").read_text()
        first = re.search(r"<h2>The best of all.*?<td>([^<]*)", page, re.DOTALL)
        check(f"<td>best</td><td>{best}</td>" in page and first[1] == best, f"{name}: the best is {best}, the table begins with {first[1]}")
        figures = figures_of(folder.path / "best.html")
        end = trace(figures["Progress"], "best so far")["y"][-1]
        check(abs(end - loss) < 1e-5 * abs(loss), f"{name}: Progress ends at {end}, the best has {loss}")
        tree = figures.get("Where the best comes from")
        check(best in tree["data"][1]["text"] if tree else f"{best} has no parents" in page, f"{name}: the family tree is another's")
    passed("the best is that of finch status, without the repeats of a final choice and among equals")


def failures_first(folder):
    """Checks the report of a run without results: it begins with the reasons, and has no empty sections."""
    def fail(rows, outcomes):
        rows["outcome"] = outcomes["failed"]
        rows["loss"] = np.nan

    def prune_some(rows, outcomes):
        rows["outcome"] = outcomes["failed"]
        rows["outcome"][::3] = outcomes["pruned"]

    for name, change, absent in (("failed", fail, {"Progress", "Learning curves", "Each gene"}), ("cut", prune_some, {"Progress", "The best of all", "Each gene"})):
        changed(folder, "words", name, change)
        made(folder, f"runs/{name}", "-o", "failed.html")
        page = (folder.path / "failed.html").read_text()
        sections = sections_of(page)
        check(sections[0] == "How evaluations ended" and sections.count(sections[0]) == 1 and not absent & set(sections), f"{name}: sections {sections}")
        check(f"{name} has no result" in page and ("Learning curves" in sections) == (name == "cut"), f"{name}: sections {sections}")
        check(page.index("How evaluations ended</h2>") < page.index("<details>"), f"{name}: the failures are folded")
    made(folder, "runs/failed", "runs/words", "-o", "several.html")
    page = (folder.path / "several.html").read_text()
    sections = sections_of(page)
    check(sections[0] == "Summary" and "Each gene" in sections and "below Progress show words, the best of the runs" in page, f"failed, words: {sections}")
    passed("a run without results shows its failures first, also if some were pruned; of several runs the best is shown")


def hostile_words(folder):
    """Checks choices with text that could end a script or the page, and epochs without recorded seconds."""
    folder.write("words.yaml", """
name: words
search:
  objective: {command: "printf 'finch loss={x} epoch=1\\n'", shell: true}
  space: {x: {real: [0, 1]}, word: {choice: ["<!--<script>", "</script><b>", "it's \\"quoted\\""]}}
  propagator: random
  budget: {evaluations: 24}
workers: {ranks: 1}
""")
    folder.run(2, "evolve", "words.yaml")
    made(folder, folder.path / "runs" / "words", "-o", "words.html")
    check_drawn(folder.path / "words.html", 6)
    words = figures_of(folder.path / "words.html")["Each gene"]["layout"]
    check("<!--<script>" in json.dumps(words), "a word of a gene is lost")
    check("NaN" not in folder.run(0, "export", "runs/words", "--format", "json"), "NaN is no JSON")
    passed("words that would end a script are text")


def many_individuals(folder):
    folder.run(4, "evolve", SOURCE / "configs" / "sphere.yaml", "--fresh", *SPHERE)
    run = folder.path / "runs" / "sphere"
    made(folder, run, "-o", "sphere.html")
    check_drawn(folder.path / "sphere.html", 7)
    check_numbers(run, figures_of(folder.path / "sphere.html"))
    megabytes = (folder.path / "sphere.html").stat().st_size / 1e6
    check(megabytes < 25, f"{megabytes} MB")
    passed(f"20 000 individuals: {megabytes:.1f} MB")


def same_measures(folder):
    """Checks that report and finch use the same name for each measure: loss or error of networks, value of a program or
    function."""
    from reporting.run import read_run
    titles = set()
    for name in ("front", "other", "words", "sphere"):
        told = json.loads(folder.run(0, "show", f"runs/{name}", "--json"))["measure"]
        mine = read_run(folder.path / "runs" / name).measure
        check((mine.name, mine.title) == (told["name"], told["title"]), f"{name}: {mine} here, {told} there")
        titles.add(mine.title)
    check(len(titles) == 4, f"two kinds of objective have one name: {titles}")
    passed(f"the report names measures as finch does: {', '.join(sorted(titles))}")


def no_run(folder):
    check("is no folder" in made(folder, "nowhere", expect=1), "a missing folder")
    check("holds no population.h5" in made(folder, folder.path, expect=1), "a folder without a run")
    (folder.path / "torn").mkdir()
    whole = (folder.path / "runs" / "front" / "population.h5").read_bytes()
    (folder.path / "torn" / "population.h5").write_bytes(whole[:3000])
    check("cannot be read" in made(folder, "torn", expect=1), "a torn archive")
    check("cannot be written" in made(folder, "runs/front", "-o", "nowhere/report.html", expect=1), "no place to write to")
    passed("what is no run is named in one line")


def main():
    try:
        import pandas, plotly, sklearn, yaml  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"skipped: Python has no {error.name} (tools/install.sh --tests)")
        sys.exit(SKIPPED)
    if not chromium():
        print("skipped: there is no chromium (tools/install.sh --tests)")
        sys.exit(SKIPPED)
    with Folder() as folder:
        trained_runs(folder)
        folded_parts(folder)
        configuration_of_best(folder)
        words_for_things(folder)
        best_has_interval(folder)
        states(folder)
        follow(folder)
        no_run(folder)
        end_of_short_form()
        round_ticks(folder)
        importance_of_genes(folder)
        dark_page(folder)
        random_search(folder)
        hypervolume(folder)
        small_page(folder)
        hostile_words(folder)
        same_best(folder)
        curves_of_failures(folder)
        inactive_genes(folder)
        failures_first(folder)
        many_individuals(folder)
        same_measures(folder)


if __name__ == "__main__":
    main()
