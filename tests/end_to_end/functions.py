"""Searches benchmark functions on 3 to 5 ranks, without networks. Checks exact budgets and every way in which a run can
end."""
from harness import Folder, check, end_of_short_form, individuals, outcome_words, passed, words_of

CONFIG = """
name: sphere
search:
  objective: {function: %s}
  propagator: {genetic: {population: 8}}
  exchange: {kind: %s}
  budget: %s
workers: {islands: 2}
"""

with Folder() as folder:
    folder.write("sphere.yaml", CONFIG % ("sphere", "pollination", "{evaluations: 20000}"))
    folder.run(4, "evolve", "sphere.yaml")
    rows = individuals(folder.path / "runs/sphere")
    check(len(rows) == 20000, f"20000 evaluations were asked for, {len(rows)} are there")
    check(min(row["loss"] for row in rows.values()) < 1e-3, "the sphere was not found")
    passed("20000 free evaluations on 4 ranks, counted exactly")

    folder.run(5, "evolve", "sphere.yaml", "--set", "search.budget.evaluations=20007", "--set", "workers.islands=[3, 2]")
    check(len(individuals(folder.path / "runs/sphere")) == 20007, "the run did not go on to 20007")
    passed("the run goes on with 5 workers on unequal islands")

    folder.write("many.yaml", CONFIG.replace("{function: %s}", "{function: rastrigin, dimensions: 30}") %
                 ("{kind}".format(kind="migration"), "{evaluations: 3000}"))
    folder.run(4, "evolve", "many.yaml", "--run", "runs/many", "--set", "search.exchange.migrants=10")
    check(len(individuals(folder.path / "runs/many")) == 3000, "30 genes, 10 migrants, 4 ranks")
    passed("30 genes, 10 migrants and 4 ranks do not deadlock")

    # The speed of the ranks decides which parents each child has, so the best loss differs from run to run.
    for propagator, budget, good in (("evolution", 20000, 1e-3), ("auto", 300, 5), ("screened", 300, 5), ("cmaes", 2000, 1e-3), ("swarm", 8000, 1e-3), ("nelder_mead", 4000, 1e-3)):
        run = f"runs/{propagator}"
        folder.write("fold.yaml", CONFIG.replace("{genetic: {population: 8}}", propagator).replace("%s}", "%s, dimensions: 6}", 1) %
                     ("sphere", "pollination", "{evaluations: %d}" % (budget // 2)))
        folder.run(4, "evolve", "fold.yaml", "--run", run)
        first = individuals(folder.path / run)
        folder.run(3, "evolve", "fold.yaml", "--run", run, "--set", f"search.budget.evaluations={budget}")
        rows = individuals(folder.path / run)
        check(len(rows) == budget and set(first) <= set(rows), f"{propagator}: {len(rows)} of {budget}")
        best = min(row["loss"] for row in rows.values())
        check(best < good, f"{propagator} found {best} only")
    passed("propagators whose state is a fold over the results: on 4 ranks, resumed with 3, and they find what they should")
    end_of_short_form()

    folder.write("apart.yaml", CONFIG.replace("{genetic: {population: 8}}", "auto\n  islands: [{propagator: cmaes}, {propagator: {swarm: {particles: 6}}}]") %
                 ("sphere, seconds: 0.01", "pollination", "{evaluations: 200}"))
    folder.run(4, "evolve", "apart.yaml", "--run", "runs/apart")
    folder.run(4, "evolve", "apart.yaml", "--run", "runs/apart", "--set", "search.islands=[{propagator: nelder_mead}]",
               "--set", "search.budget.evaluations=400")
    operators = words_of(folder.path / "runs/apart", "operator")
    bred = {}
    for row in individuals(folder.path / "runs/apart").values():
        bred.setdefault((int(row["id"]) >> 52, int(row["island"])), set()).add(operators[row["operator"]])
    # A swarm begins with random individuals. A slow island may have bred only these.
    check(bred.pop((0, 1)) in ({"random"}, {"random", "swarm"}), "the island of the swarm was bred by another")
    check(bred == {(0, 0): {"cma_es"}, (1, 0): {"simplex"}, (1, 1): {"simplex"}}, f"islands bred by {bred}")
    passed("islands breed with their own propagators, and with others after a resume")

    folder.write("target.yaml", CONFIG % ("sphere", "migration", "{target_loss: 0.01, evaluations: 100000}"))
    folder.run(4, "evolve", "target.yaml", "--run", "runs/target")
    rows = individuals(folder.path / "runs/target")
    check(min(row["loss"] for row in rows.values()) <= 0.01 and len(rows) < 100000, "the target loss did not end the run")
    passed("a target loss ends the run")

    folder.write("generations.yaml", CONFIG % ("rosenbrock", "none", "{generations: 25}"))
    folder.run(3, "evolve", "generations.yaml", "--run", "runs/generations")
    rows = individuals(folder.path / "runs/generations")
    bred = sorted(sum(row["worker"] == worker for row in rows.values()) for worker in range(3))
    check(bred == [25, 25, 25], f"25 generations of 3 workers gave {bred}")
    passed("generations are counted per worker")

    folder.write("hours.yaml", CONFIG % ("sphere, seconds: 0.2", "none", "{hours: 0.0006}"))
    folder.run(4, "evolve", "hours.yaml", "--run", "runs/hours")
    words = outcome_words(folder.path / "runs/hours")
    before = individuals(folder.path / "runs/hours")
    outcomes = {words[row["outcome"]] for row in before.values()}
    check("unfinished" in outcomes and "stopped" not in outcomes, f"after its hours the run holds {outcomes}")
    folder.run(0, "status", "runs/hours", expect=0)
    folder.run(4, "evolve", "hours.yaml", "--run", "runs/hours")
    check(set(individuals(folder.path / "runs/hours")) == set(before), "a second start had the first one's hours again")
    folder.run(4, "evolve", "hours.yaml", "--run", "runs/hours", "--set", "search.budget.hours=0.002")
    after = individuals(folder.path / "runs/hours")
    for number, row in before.items():
        ended = words[after[number]["outcome"]] == "evaluated"
        check(ended, f"{number}, {words[row['outcome']]} before, is {words[after[number]['outcome']]} after more hours")
    passed("hours end the run as complete, and are of all starts together; what ran stays unfinished, and goes on where there are more")
