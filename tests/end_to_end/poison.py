"""Checks an individual that kills its process: Finch identifies it, trains it once more alone, and then gives it up. No
other individual is charged with a death, and the run completes. A preemption charges no individual."""
import os
import signal
import time

import h5py

# The seconds between TERM and KILL of mpirun: on a loaded machine its default of 1 s is too short for a rank to write
# its note. Slurm's default is 30 s.
os.environ["OMPI_MCA_odls_base_sigkill_timeout"] = "2"

from harness import TINY, Folder, check, end, end_of_short_form, individuals, outcome_words, passed, ranks_of, wait_for

SEARCH = """
name: poison
search:
  objective: {function: sphere, dimensions: 3, seconds: SECONDS}
  budget: {evaluations: 8}
workers: {ranks: 1, islands: 2, slots: SLOTS}
checkpoint: {archive_seconds: 0.2}
"""


def start(folder, ranks, **variables):
    os.environ.update(variables)
    process = folder.start(ranks, "evolve", "poison.yaml", "--run", "run")
    for name in variables:
        del os.environ[name]
    return process


def rows(folder):
    return individuals(folder.path / "run").values()


def outcomes(folder):
    words = outcome_words(folder.path / "run")
    return sorted(words[row["outcome"]] for row in rows(folder))


def complete(folder, ranks, most, **variables):
    """Starts the run up to `most` times until it is complete. Returns the number of starts."""
    for number in range(1, most + 1):
        code = end(start(folder, ranks, **variables))
        if code == 0:
            return number
    check(False, f"not complete after {most} starts\n{folder.output()}")


def begun(folder, count, since):
    """True if `count` leaders have written to their journals (the start of an individual) after `since` (ns)."""
    found = [journal.stat() for journal in (folder.path / "run/state").glob("*.journal")]
    return sum(about.st_size > 0 and about.st_mtime_ns > since for about in found) >= count


def check_given_up(folder, poison, outcome_count):
    check(outcomes(folder) == ["evaluated"] * (outcome_count - 1) + ["failed"], f"outcomes {outcomes(folder)}")
    for row in rows(folder):
        name = f"{row['restart']}.{row['worker']}.{row['sequence']}"
        expected = 2 if name == poison else 0
        check(row["deaths"] == expected, f"{name} is charged with {row['deaths']} deaths, not {expected}")
    with h5py.File(folder.path / "run/population.h5") as file:
        problems = [row["text"].decode() for row in file["problems"][:]]
    check(len(problems) == 1 and "died 2 times" in problems[0], f"/problems says {problems}")


for number in (signal.SIGKILL, signal.SIGSEGV):
    with Folder() as folder:
        folder.write("poison.yaml", SEARCH.replace("SECONDS", "1.5").replace("SLOTS", "1"))
        starts = complete(folder, 8, 3, FINCH_TEST_POISON=f"0.5.1:{int(number)}")
        check(starts == 3, f"{starts} starts")
        check_given_up(folder, "0.5.1", 8)
        passed(f"8 workers, {number.name} by one individual: given up after two deaths, the others are evaluated")
        end_of_short_form()

with Folder() as folder:
    folder.write("poison.yaml", SEARCH.replace("SECONDS", "0.5").replace("SLOTS", "3"))
    complete(folder, 2, 3, FINCH_TEST_POISON=f"0.1.2:{int(signal.SIGKILL)}")
    charged = {f"{row['restart']}.{row['worker']}.{row['sequence']}": row["deaths"] for row in rows(folder) if row["deaths"]}
    check(outcomes(folder).count("failed") == 1 and charged["0.1.2"] == 2, f"{outcomes(folder)}, deaths {charged}")
    passed("with others in its worker's slots only the culprit is given up: they were charged once at most")

with Folder() as folder:
    folder.write("poison.yaml", SEARCH.replace("SECONDS", "1").replace("islands: 2", "islands: 1").replace("SLOTS", "1"))
    starts = complete(folder, 1, 7, FINCH_TEST_POISON=f"0.0.1:{int(signal.SIGKILL)}")
    check_given_up(folder, "0.0.1", 8)
    passed(f"a rank alone, whose death nobody can note, gets through in {starts} starts")

with Folder() as folder:
    folder.write("poison.yaml", SEARCH.replace("SECONDS", "1000").replace("SLOTS", "1"))
    for _ in range(2):
        since = time.time_ns()
        process = start(folder, 8)
        wait_for(lambda: begun(folder, 8, since) or process.poll() is not None, "eight trainings")
        for pid in ranks_of(process):
            os.kill(pid, signal.SIGTERM)
        end(process)
        check(all(row["deaths"] == 0 for row in rows(folder)), "a preemption was charged")
    check(len(rows(folder)) == 8, f"{len(rows(folder))} individuals")
    passed("two preemptions charge nobody")

with Folder() as folder:
    folder.write("poison.yaml", TINY.replace("evaluations: 12", "evaluations: 4"))
    starts = complete(folder, 4, 3, FINCH_TEST_POISON=f"0.1.1:{int(signal.SIGKILL)}")
    check(starts == 3, f"{starts} starts")
    check_given_up(folder, "0.1.1", 4)
    passed("a training that takes its process down, on workers of two ranks: given up, the others are evaluated")
