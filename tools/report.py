#!/usr/bin/env python3
"""report.py RUN [RUN …] [-o report.html]: reports the results of runs, in one HTML file that needs no internet access.

The script only reads the files of the run, so it also works for a run in progress and for a copy of its folder. If
there are several runs, the progress figure shows all of them, and a table lists the differences of their
configurations. The figures of individuals then show only the first run. Needs h5py, numpy, pandas, plotly, Pillow,
PyYAML and scikit-learn (tools/install.sh --report installs them).
"""
import argparse
import pathlib
import sys

try:
    import numpy as np

    from reporting import analysis, figures, guesses, watch
    from reporting.page import Page
    from reporting.run import NoRun, read_run
except ModuleNotFoundError as error:
    sys.exit(f"report.py needs the Python package {error.name} (h5py, numpy, pandas, plotly, Pillow, PyYAML, scikit-learn are all that it needs; "
             "on Debian tools/install.sh --report installs them, for /usr/bin/python3)")


def shown(value):
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def duration(hours):
    seconds = round(3600 * hours, 1)
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def energy(joules):
    """Returns an energy as text, with the units of `finch show`."""
    value, unit = (joules, "J") if joules < 1e3 else (joules / 1e3, "kJ") if joules < 1e6 else (joules / 3.6e6, "kWh")
    return f"{value:.{3 if value < 0.9995 else 2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def energy_of_all(table):
    """Returns a row with the energy of all individuals, and the number of individuals with unknown energy.

    Returns no row if no energy is known.
    """
    all_joules = float(np.nansum(table.joules))
    if all_joules <= 0:
        return {}
    unknown = int((~np.isfinite(table.joules) & (table.outcome != "unfinished")).sum())
    return {"energy, all workers": f"{energy(all_joules)}" + (f"; not known of {unknown} individuals" if unknown else "")}


def summary(run):
    table, ranked = run.individuals, run.ranked
    counts = table.outcome.astype(str).value_counts()
    rows = {"state": run.state, "minimises": " and ".join([run.measure.title, *map(str, run.objectives[1:])]),
            "seed": run.attributes["seed"], "individuals": len(table),
            "outcomes": ", ".join(f"{count} {outcome}" for outcome, count in counts.items()),
            "islands": table.island.nunique(), "starts": len(run.starts)}
    if len(table):
        last = [table.finished[np.isfinite(table.finished)].max()]
        rows |= {"ran for": duration(float(run.running_hours(last)[0])), "node-hours": shown(float(run.node_hours(last)[0])),
                 "spent training, all workers": duration(float(np.nansum(table.training_seconds) / 3600))}
        rows |= energy_of_all(table)
    if len(ranked):
        best = ranked.iloc[0]
        rows |= {"best": best.name, f"its {run.measure.name}": shown(float(best.loss))}
        if np.isfinite(best.accuracy):
            rows["its validation accuracy"] = f"{100 * best.accuracy:.2f} %"
        if np.isfinite(best.joules) and not best.reused_from:
            rows["its energy"] = energy(float(best.joules))
        rows["its genes"] = genes_text(run, best)
    if "test/accuracy" in run.best:
        rows["accuracy on the test set"] = f"{100 * float(run.best['test/accuracy']):.2f} %"
    if "test/macro_f1" in run.best:
        rows["macro F1 on the test set"] = f"{float(run.best['test/macro_f1']):.4f}"
    return rows


def add_sentences(page, run):
    """The summary that Finch keeps in summary.txt: the same sentences as at the end of `finch evolve` and in `finch show`."""
    page.section("Summary")
    if not run.summary:
        page.text(f"summary.txt is missing; `finch show {run.path}` prints the summary.")
        return
    sentences, _, commands = run.summary.partition("\nnext\n")
    page.items(" ".join(item.split()) for item in sentences.split("\n  - ")[1:])
    if commands:
        page.heading("Next steps")
        page.code("\n".join(f"# {purpose}\n{command}" for purpose, _, command in (line.strip().partition(": ") for line in commands.splitlines())))


def add_summaries(page, runs):
    page.section("Facts")
    summaries = [summary(run) for run in runs]
    names = list(dict.fromkeys(name for rows in summaries for name in rows))
    page.table(["", *[run.name for run in runs]], [[name, *[rows.get(name, "") for rows in summaries]] for name in names])


def genes_text(run, row):
    return ", ".join(f"{gene.name} = {shown(row[gene.name])}" for gene in run.active_genes(row))


def add_best(page, run, most=5):
    """Adds the best individuals of all islands together, in the order of `finch show`."""
    best = run.ranked.head(most)
    page.section("The best of all", f"{len(best)} of the {len(run.complete)} individuals that were trained to their end.")
    page.table(["id", run.measure.title, "epochs", "genes"],
               [[name, shown(float(row.loss)), row.epochs, genes_text(run, row)] for name, row in best.iterrows()])


def flat(tree, path=""):
    if isinstance(tree, dict):
        return {name: value for key, part in tree.items() for name, value in flat(part, f"{path}.{key}" if path else str(key)).items()}
    return {path: tree}


def add_differences(page, runs):
    page.section("Differences", "Keys of the configurations that are not the same in all runs.")
    settings = [flat(run.settings) for run in runs]
    names = sorted({name for one in settings for name in one})
    different = [name for name in names if len({str(one.get(name, "")) for one in settings}) > 1]
    page.table(["key", *[run.name for run in runs]], [[name, *[one.get(name, "") for one in settings]] for name in different])


def add_genes(page, run):
    measure = run.measure.name
    page.section(f"Genes and {measure}", f"Each line is one of the {len(run.complete)} individuals that were trained to their end; dark ones are the best. Drag along an "
                                   "axis to choose.")
    page.figure(figures.parallel_coordinates(run))
    page.section("Each gene", "Later individuals are darker: where they gather is where the search went.")
    page.figure(figures.slices(run))
    page.section("What mattered")
    if not analysis.Forest.fits(run):
        page.figure(f"Fewer than {analysis.FEWEST} individuals were trained to their end, or all are alike: too few to tell.")
        return
    forest = analysis.Forest(run)
    verdict = "so what follows can be believed" if forest.score > 0.5 else "so what follows is weak evidence" if forest.score > 0.1 else "so it has learnt next to nothing"
    page.text(f"A random forest of 200 trees learns the rank of the {measure} from the genes of {forest.samples} individuals. On the 30 % that it has not seen, its R² is "
              f"{forest.score:.2f}, {verdict}. Bars: by how much that falls when one gene's values are shuffled; mean and standard deviation of 20 times. The search "
              f"looked where the {measure} is small, so this holds there.")
    page.figure(figures.importance(forest))
    page.section("Pairs of genes", "What that forest predicts over two genes, the others as the run had them; 0 is the best. Dots are individuals.")
    page.figure(figures.contours(forest))


def add_outcomes(page, run):
    page.section("How evaluations ended", "By the operator that bred them.")
    page.figure(figures.outcomes(run))
    if len(run.problems):
        outcomes = run.individuals.set_index("id_number").outcome.astype(str)
        told = run.problems.assign(outcome=run.problems.individual.map(outcomes))
        rows = [[outcome, text, len(same), figures.id_text(same.individual.iloc[0])]
                for (outcome, text), same in sorted(told.groupby(["outcome", "text"]), key=lambda group: -len(group[1]))]
        page.table(["outcome", "problem", "individuals", "one of them"], rows[:50])


def add_best_model(page, run):
    page.section("The best network's mistakes", "On the test set, which no search has seen: rows are what images are, columns what they were taken for.")
    page.figure(figures.confusion(run))
    images = run.best.get("test/mistakes/images")
    if images is not None and len(images):
        page.heading("The surest mistakes")
        captions = [f"#{index}: {run.class_text(truth)}, taken for {run.class_text(guess)} ({100 * score:.0f} %)" for index, truth, guess, score in
                    zip(*(run.best[f"test/mistakes/{name}"] for name in ("index", "truth", "guess", "score")))]
        page.pictures(images, captions)
    guesses.add_sample(page, run)


def add_curves(page, run):
    page.section("Learning curves")
    page.figure(figures.learning_curves(run))


def add_results(page, run):
    add_best(page, run)
    add_curves(page, run)
    watch.add_norms(page, run)
    add_genes(page, run)
    if len(run.objectives) > 1:
        page.section("The front", "Individuals that no other one beats in all objectives.")
        page.figure(figures.pareto(run))
    add_outcomes(page, run)
    page.section("Where the best comes from", f"Its ancestors, dark ones with a small {run.measure.name}.")
    page.figure(figures.family_tree(run))


def build(runs):
    run = runs[0]
    page = Page(" and ".join(run.name for run in runs) if len(runs) < 4 else f"{len(runs)} runs")
    if run.complete.empty:
        page.text(f"{run.name} has no result.")
        add_outcomes(page, run)
    add_sentences(page, run)
    add_summaries(page, runs)
    if len(runs) > 1:
        add_differences(page, runs)
    if any(len(one.complete) for one in runs):
        page.section("Progress", f"The smallest {' or '.join(dict.fromkeys(one.measure.name for one in runs))} so far.")
        page.figure(figures.progress(runs))
    if len(runs) > 1:
        page.text(f"What follows is of {run.name}.")
    if len(run.complete):
        add_results(page, run)
    elif len(run.measured):  # all of them were pruned
        add_curves(page, run)
    page.section("Workers", "Each bar is a training; below, the share of workers that trained.")
    page.figure(figures.timeline(run))
    if run.individuals.island.nunique() > 1:
        page.section("Exchange between islands")
        page.figure(figures.exchange(run))
    if run.trains and len(run.complete):
        add_best_model(page, run)
    page.section("Configuration")
    page.code(run.config)
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=pathlib.Path, metavar="RUN", help="a run's directory")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("report.html"))
    given = parser.parse_args()
    try:
        page = build([read_run(path) for path in given.runs])
        given.output.write_text(page.text_of_page(), encoding="utf-8")
    except NoRun as problem:
        sys.exit(str(problem))
    except OSError as problem:
        sys.exit(f"{given.output}: cannot be written ({problem.strerror})")
    print(f"{given.output}: {page.figures} figures, {given.output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
