"""The sections of a report, in the order of the page."""
import numpy as np

from . import analysis, figures, run_figures, watch
from .best_config import config_of_best
from .page import Page


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
    rows = {"state": run.state, "minimises": " and ".join([run.measure.axis, *map(str, run.objectives[1:])]),
            "seed": run.attributes["seed"], "individuals": len(table),
            "outcomes": ", ".join(f"{count} {outcome}" for outcome, count in counts.items()),
            "islands": table.island.nunique(), "starts": len(run.starts)}
    if len(table):
        last = [table.finished[np.isfinite(table.finished)].max()]
        rows |= {"ran for": duration(float(run.running_hours(last)[0])), "node-hours": f"{run.node_hours(last)[0]:.3g}",
                 "spent training, all workers": duration(float(np.nansum(table.training_seconds) / 3600))}
        rows |= energy_of_all(table)
    if len(ranked):
        best = ranked.iloc[0]
        rows |= {"best": best.name, f"its {run.measure.name}": with_interval(run.measure.text, float(best.loss), run.best_interval)}
        if np.isfinite(best.accuracy):
            rows["its validation accuracy"] = f"{100 * best.accuracy:.2f} %"
        if np.isfinite(best.joules) and not best.reused_from:
            rows["its energy"] = energy(float(best.joules))
        rows["its genes"] = genes_text(run, best)
    if "test/accuracy" in run.best:
        of_error = run.shown["statistics"]["test_error_interval"]
        interval = of_error and [1 - end for end in reversed(of_error)]
        rows["accuracy on the test set"] = with_interval(lambda value: f"{100 * value:.2f} %", float(run.best["test/accuracy"]), interval)
    if "test/macro_f1" in run.best:
        rows["macro F1 on the test set"] = f"{float(run.best['test/macro_f1']):.4f}"
    return rows


def add_sentences(page, run, scope=""):
    """The summary that Finch keeps in summary.txt: the same sentences as at the end of `finch evolve` and in `finch show`."""
    page.section("Summary", scope)
    if not run.summary:
        page.text(f"summary.txt is missing; `finch show {run.path}` prints the summary.")
        return
    sentences, _, commands = run.summary.partition("\nnext\n")
    page.items(" ".join(item.split()) for item in sentences.split("\n  - ")[1:])
    if commands:
        page.heading("Next steps")
        page.code("\n".join(f"# {purpose}\n{command}" for purpose, _, command in (line.strip().partition(": ") for line in commands.splitlines())))


def with_interval(text, value, interval):
    return text(value) + (f" (95 %: {text(interval[0])} to {text(interval[1])})" if interval else "")


def add_facts(page, runs):
    page.section("Facts" if len(runs) == 1 else "The runs")
    summaries = [summary(run) for run in runs]
    names = list(dict.fromkeys(name for rows in summaries for name in rows))
    page.table(["", *[run.name for run in runs]], [[name, *[rows.get(name, "") for rows in summaries]] for name in names])


def genes_text(run, row):
    return ", ".join(f"{gene.name} = {shown(row[gene.name])}" for gene in run.active_genes(row))


def add_best(page, run, most=5, most_columns=9):
    """Adds the best individuals of all islands together, in the order of `finch show`, and the best configuration."""
    best = run.ranked.head(most)
    page.section("The best of all", f"{len(best)} of the {len(run.complete)} individuals that were trained to their end.")
    has_epochs = bool(best.epochs.max() > 0)
    in_columns = 0 < len(run.genes) <= most_columns
    rows = []
    for name, row in best.iterrows():
        active = {gene.name: shown(row[gene.name]) for gene in run.active_genes(row)}
        genes = [active.get(gene.name, "–") for gene in run.genes] if in_columns else [genes_text(run, row)]
        rows.append([name, run.measure.text(float(row.loss)), *[row.epochs] * has_epochs, *genes])
    page.table(["id", run.measure.axis, *["epochs"] * has_epochs, *([gene.name for gene in run.genes] if in_columns else ["genes"])], rows)
    config = config_of_best(run)
    if config:
        with page.folded_text(f"Configuration of the best, {run.ranked.index[0]}"):
            page.code(config, "Copy the configuration of the best")


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
    page.section(f"Genes and {measure}", f"Each line is one of the {len(run.complete)} individuals that were trained to their end; the best have the strongest colours. "
                                         "Drag along an axis to select. Equal values are moved apart at random.")
    page.figure(figures.parallel_coordinates(run))
    page.section("Each gene", f"Later individuals have stronger colours: where they gather is where the search went. The star is the best, {run.ranked.index[0]}.")
    page.figure(figures.slices(run))
    page.section("What mattered")
    shares = run.gene_shares
    if shares is None:
        page.figure("Too few individuals were trained to their end to tell.")
    else:
        page.text(f"A bar is the share of the variance of the {measure}'s ranks that the gene explains, alone. The summary names the same genes. A gene without a bar "
                  "does not matter beyond chance. The search sampled good regions most, so the bars describe those regions.")
        page.figure(figures.importance(shares))
    page.section("Pairs of genes")
    if not analysis.Forest.fits(run):
        page.figure(f"Fewer than {analysis.FEWEST} individuals were trained to their end, or all are alike: too few to tell.")
        return
    forest = analysis.Forest(run)
    page.text(f"The ranks that a random forest of 200 trees predicts over two genes, on average over the other genes of the run; 0 is the best. Dots are individuals, and "
              f"the star is the best. The forest learns from the genes of {forest.samples} individuals; its R² on the 30 % that it has not seen is {forest.score:.2f}.")
    page.figure(figures.contours(forest))


def add_outcomes(page, run):
    page.section("How evaluations ended", "By the operator that bred them.")
    page.figure(run_figures.outcomes(run))
    if len(run.problems):
        outcomes = run.individuals.set_index("id_number").outcome.astype(str)
        told = run.problems.assign(outcome=run.problems.individual.map(outcomes))
        rows = [[outcome, text, len(same), figures.id_text(same.individual.iloc[0])]
                for (outcome, text), same in sorted(told.groupby(["outcome", "text"]), key=lambda group: -len(group[1]))]
        page.table(["outcome", "problem", "individuals", "one of them"], rows[:50])
    own = run.individuals[(run.individuals.outcome != "unfinished") & (run.individuals.reused_from == 0)]
    failed = own.outcome.isin(("failed", "out_of_memory")).groupby(own.node.astype(str)).agg(["sum", "size"]).sort_values("sum", ascending=False)
    if len(failed) > 1 and failed["sum"].any():
        page.table(["node", "failed evaluations", "evaluations"], [[node, int(row["sum"]), int(row["size"])] for node, row in failed.iterrows()])


def add_guesses(page, run, group, title):
    """Adds images of the test set with their guesses, if best.h5 has them."""
    images = run.best.get(f"test/{group}/images")
    if images is None or not len(images):
        return
    page.heading(title)
    columns = (run.best[f"test/{group}/{name}"] for name in ("index", "truth", "guess", "score"))
    page.pictures(images, [f"#{index}: {run.class_text(truth)}, " + ("recognised" if truth == guess else f"taken for {run.class_text(guess)}") +
                           f" ({100 * score:.0f} %)" for index, truth, guess, score in zip(*columns)])


def add_best_model(page, run):
    page.section("The best network's mistakes", "On the test set, which no search has seen: rows are what images are, columns what they were taken for.")
    page.figure(figures.confusion(run))
    add_guesses(page, run, "mistakes", "The surest mistakes")
    add_guesses(page, run, "sample", "A random sample of the test set")


def add_curves(page, run):
    if run.trains or len(run.curves):
        page.section("Learning curves")
        page.figure(figures.learning_curves(run))


def add_progress(page, runs):
    runs = [run for run in runs if len(run.measured)]
    page.section("Progress", f"The smallest {' or '.join(dict.fromkeys(run.measure.name for run in runs))} so far.")
    if len(runs) == 1:
        interval = " Its bar is the 95 % interval, given the validation samples." if runs[0].best_interval else ""
        page.text(f"The star is the best, {runs[0].ranked.index[0]}.{interval}" if len(runs[0].complete) else "")
        count = len(analysis.random_losses(runs[0]))
        if count >= figures.FEWEST_RANDOM:
            page.text(f"The dashed line is random search: the expected best of as many of the {count} random individuals of this run. It is the exact mean over all sets of them "
                      f"in which one was trained to its end. It ends at {count // 2}, half of them: beyond, one individual has more than half of the weight.")
    page.figure(figures.progress(runs))


def add_front(page, run):
    page.section("The front", "Individuals that no other one beats in all objectives.")
    page.figure(figures.pareto(run))
    made, sentence = figures.hypervolume(run)
    if made:
        page.text(sentence)
        page.figure(made)


def add_results(page, run):
    add_curves(page, run)
    watch.add_norms(page, run)
    add_genes(page, run)
    if len(run.objectives) > 1:
        add_front(page, run)
    if run.trains:
        add_best_model(page, run)


def add_course(page, runs, run):
    """Adds how the run went: what helps to understand its speed and its failures."""
    with page.folded("How the run went"):
        if len(runs) == 1:
            add_facts(page, runs)
        if len(run.complete):
            add_outcomes(page, run)
        page.section("Workers", "Each bar is a training; below, the share of workers that trained.")
        page.figure(run_figures.timeline(run))
        if run.individuals.island.nunique() > 1:
            page.section("Exchange between islands")
            page.figure(run_figures.exchange(run))
        if len(run.complete):
            page.section("Where the best comes from", "The ancestors of the best, from left to right.")
            page.figure(run_figures.family_tree(run))
        page.section("Configuration")
        page.code(run.config)


def best_of(runs):
    """Returns the run with the best individual. Runs that minimise another quantity than the first one with a result
    cannot be compared with it."""
    first = next((run for run in runs if len(run.complete)), runs[0])
    alike = [run for run in runs if len(run.complete) and run.measure == first.measure]
    return alike[int(np.nanargmin([run.complete.loss.min() for run in alike]))] if alike else first


def build(runs):
    run = best_of(runs)
    page = Page(" and ".join(run.name for run in runs) if len(runs) < 4 else f"{len(runs)} runs")
    if run.complete.empty:
        unread = " The archive is written at times: results of a run that was killed are in its journals, and the next start adds them." if run.has_journals else ""
        page.text(f"{run.name} has no result in its archive.{unread}")
        add_outcomes(page, run)
    scope = f"This summary and the figures below Progress show {run.name}{', the best of the runs' if len(run.complete) else ''}."
    add_sentences(page, run, scope if len(runs) > 1 else "")
    if len(runs) > 1:
        add_facts(page, runs)
        add_differences(page, runs)
    if len(run.complete):
        add_best(page, run)
        add_progress(page, runs)
        add_results(page, run)
    elif len(run.measured):  # all of them were pruned
        add_curves(page, run)
    add_course(page, runs, run)
    return page
