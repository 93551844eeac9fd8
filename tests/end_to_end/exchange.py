"""Repeats an exchange that deadlocks other programs: 30 genes, 10 migrants, 4 ranks. FINCH_TEST_REPEATS: number of
repetitions."""
import csv
import io
import os

from harness import Folder, check, passed

REPEATS = int(os.environ.get("FINCH_TEST_REPEATS", "3"))
SPHERE = """
name: sphere
search:
  objective: {function: sphere, dimensions: 30}
  propagator: {genetic: {population: 8}}
  exchange: {probability: 1, migrants: 10}
  budget: {generations: 60}
workers: {islands: 2}
"""
TOPOLOGIES = ["all", "ring", "torus", "star", "random", "nodes"]

with Folder() as folder:
    folder.write("sphere.yaml", SPHERE)
    for repeat in range(REPEATS):
        for kind in ("migration", "pollination"):
            islands = 4 if repeat % 2 == 0 else 2
            run = f"runs/{kind}-{repeat}"
            folder.run(4, "evolve", "sphere.yaml", "--run", run, "--set", f"seed={repeat + 1}", "--set",
                       f"workers.islands={islands}", "--set", f"search.exchange.kind={kind}", "--set",
                       f"search.exchange.topology={TOPOLOGIES[repeat % len(TOPOLOGIES)]}")
            rows = list(csv.DictReader(io.StringIO(folder.run(0, "show", run, "--csv"))))
            check(len(rows) == 240, f"{kind}: 240 individuals were asked for, {len(rows)} are there")
            places = [len(row["islands"].split()) for row in rows]
            if kind == "migration":
                check(places == [1] * 240, "a migrant is on no island or on several")
                check(any(row["islands"] != row["island"] for row in rows), "nobody migrated")
            else:
                check(max(places) > 1 and sum(places) == 240, f"{sum(places)} places for 240 births")
    passed(f"{2 * REPEATS} runs of 4 ranks with 30 genes and 10 migrants ended, and lost nobody")
