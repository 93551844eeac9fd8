"""Checks tools/report.py on real runs. A real browser draws every figure without a console message, and the figures
agree with population.h5. Also checks reports of several runs, and the errors for folders without a run."""
import html
import json
import re
import shutil
import signal
import subprocess
import sys

import h5py
import numpy as np

from browser import chromium, open_page
from harness import FINCH, SKIPPED, SOURCE, TINY, Folder, check, end_of_short_form, individuals, outcome_words, passed, wait_for

REPORT = SOURCE / "tools" / "report.py"
FRONT = TINY.replace("objective: validation_loss", "objective: [validation_loss, parameters]\n  exchange: {kind: migration, probability: 1}").replace(
    "evaluations: 12", "evaluations: 40").replace("name: tiny", "name: front").replace("ranks: 2", "ranks: 1").replace("epochs: 3", "epochs: 2")
SPHERE = ["--set", "search.budget.evaluations=20000"]


def made(folder, *arguments, expect=0):
    ended = subprocess.run([sys.executable, str(REPORT), *map(str, arguments)], cwd=folder.path, capture_output=True, text=True, check=False)
    check(ended.returncode == expect, f"report.py {arguments}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    check(expect == 0 or ("Traceback" not in ended.stderr and ended.stderr.count("\n") == 1), f"no one line: {ended.stderr}")
    return ended.stdout + ended.stderr


def figures_of(page):
    """Returns {title of the section: figure} of a page."""
    text = page.read_text()
    found = {}
    for part in re.split(r'<h2 id="[^"]*">', text)[1:]:
        for figure in re.findall(r"const made = (\{.*?\}); Plotly", part, re.DOTALL):
            found[html.unescape(part.split("<")[0])] = json.loads(figure)
    return found


def check_drawn(page, least):
    charts, console = open_page(page)
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
    progress = figures["Progress"]["data"][0]
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
    front = figures["The front"]["data"][1]
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
    curve = next(trace for trace in figures["Learning curves"]["data"] if trace["name"] == "best")
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
    title = "validation error (share of images)"
    for section in ("Progress", "Learning curves", "Each gene"):
        check(title in axis_titles(figures[section]), f"{section}: {axis_titles(figures[section])}")
    check(figures["Genes and error"]["data"][0]["dimensions"][-1]["label"] == title, "parallel coordinates have another axis")
    text = re.sub(r"<pre>.*</pre>|<script>.*?</script>", "", (folder.path / "error.html").read_text(), flags=re.DOTALL)
    check("loss" not in text, f"an error is called a loss: {re.findall('.{60}loss.{60}', text)}")
    words = outcome_words(run)
    curve = next(trace for trace in figures["Learning curves"]["data"] if trace["name"] == "best")
    best = min(row["loss"] for row in individuals(run).values() if words[row["outcome"]] == "evaluated")
    check(min(one for one in curve["y"] if one is not None) == best, "the best learning curve is of another measure")
    passed("an error is called so on every axis and in the text")


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
    traces = {trace["name"]: trace for trace in figures["Learning curves"]["data"]}
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
    folder.write("noisy.yaml", "name: noisy\nsearch: {objective: {function: quartic}, budget: {evaluations: 60}, "
                               "final: {candidates: 4, repeats: 6}}\nworkers: {ranks: 1}\n")
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
        first = re.search(r"<h2[^>]*>The best of all.*?<td>([^<]*)", page, re.DOTALL)
        check(f"<td>best</td><td>{best}</td>" in page and first[1] == best, f"{name}: the best is {best}, the table begins with {first[1]}")
        figures = figures_of(folder.path / "best.html")
        end = figures["Progress"]["data"][0]["y"][-1]
        check(abs(end - loss) < 1e-5 * abs(loss), f"{name}: Progress ends at {end}, the best has {loss}")
        tree = figures.get("Where the best comes from")
        check(tree["data"][1]["text"][0] == best if tree else f"{best} has no parents" in page, f"{name}: the family tree is another's")
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
        sections = re.findall(r'<h2 id="[^"]*">([^<]*)', page)
        check(sections[0] == "How evaluations ended" and sections.count(sections[0]) == 1 and not absent & set(sections), f"{name}: sections {sections}")
        check(f"{name} has no result" in page and ("Learning curves" in sections) == (name == "cut"), f"{name}: sections {sections}")
    passed("a run without results shows its failures first, also if some were pruned")


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
        words_for_things(folder)
        states(folder)
        no_run(folder)
        end_of_short_form()
        hostile_words(folder)
        same_best(folder)
        curves_of_failures(folder)
        inactive_genes(folder)
        failures_first(folder)
        many_individuals(folder)
        same_measures(folder)


if __name__ == "__main__":
    main()
