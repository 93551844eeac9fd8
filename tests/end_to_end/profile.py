"""Checks `finch train --profile`: the table, profile.json, and unchanged results. Also checks tools/bench/scaling.py,
which uses this option.

    profile.py FINCH [cuda]      cuda: on two devices, also simulated ones; one rank runs its steps as CUDA graphs
"""
import json
import os
import re
import subprocess
import sys

from harness import FINCH, SOURCE, TINY, Folder, check, curves, environment, passed

DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
GENES = [word for gene in ("layers=2", "activation=relu", "lr=0.5") for word in ("--gene", gene)] + ["--set", f"workers.device={DEVICE}"]
ACTIVITIES = ["data", "forward", "backward", "all-reduce", "wait", "optimizer", "validation", "snapshot", "other"]
ROW = re.compile(r"  ([a-z-]+) +(-?[0-9.]+) % +(-?[0-9.]+) +(-?[0-9.]+) +(-?[0-9.]+) +([0-9]+)$", re.MULTILINE)


def losses(run):
    return [tuple(row[:6]) for rows in curves(run).values() for row in rows]


def check_table(output, ranks):
    rows = {name: (float(share), float(mean), float(least), float(most), int(rank)) for name, share, mean, least, most, rank in ROW.findall(output)}
    check(list(rows) == ACTIVITIES, f"the table's rows are {list(rows)}\n{output}")
    shares = sum(row[0] for row in rows.values())
    check(abs(shares - 100) < 0.05 * len(rows) + 0.001, f"shares add up to {shares} %\n{output}")
    whole = float(re.search(r"where the time went: ([0-9.]+) s on %d rank" % ranks, output)[1])
    check(abs(sum(row[1] for row in rows.values()) - whole) < 0.001 * len(rows), f"seconds do not add up to {whole}\n{output}")
    check(all(least <= mean + 0.001 and mean <= most + 0.001 and rank < ranks for _, mean, least, most, rank in rows.values()), output)
    check(all(rows[name][1] > 0 for name in ("forward", "backward", "validation")), f"no time in the network\n{output}")
    check(re.search(r"conv 0 +[0-9.]+", output) and re.search(r"linear \S+ +[0-9.]+", output), f"no bytes of layers\n{output}")
    check(("forward s" in output) == (DEVICE == "cpu"), f"times of layers\n{output}")
    check(len(re.findall(r"epoch \d took .*: training [0-9.]+ samples/s, validation [0-9.]+ samples/s; data", output)) == 3, output)


def check_json(path, ranks):
    profile = json.loads(path.read_text())
    check(profile["ranks"] == ranks and [epoch["epoch"] for epoch in profile["epochs"]] == [1, 2, 3], f"{profile}")
    for part in [profile["all"], *profile["epochs"]]:
        check(list(part["seconds"]) == ACTIVITIES and all(len(seconds) == ranks for seconds in part["seconds"].values()), f"{part}")
    check(profile["all"]["training_samples"] == 3 * 397 and profile["all"]["validation_samples"] == 3 * 203, f"{profile['all']}")
    if ranks == 1:
        check(profile["all"]["seconds"]["wait"][0] < profile["all"]["seconds"]["forward"][0], "one rank waits for others")


os.environ["FINCH_REHEARSAL_DEVICES"] = "2"
with Folder() as folder:
    folder.write("tiny.yaml", TINY)
    for ranks in (1, 2):
        plain, measured = folder.path / f"plain{ranks}", folder.path / f"measured{ranks}"
        folder.run(ranks, "train", "tiny.yaml", "--run", plain, *GENES)
        output = folder.run(ranks, "train", "tiny.yaml", "--run", measured, *GENES, "--profile")
        check(losses(plain) == losses(measured) and len(losses(plain)) == 3, f"{losses(plain)} without and {losses(measured)} with --profile")
        check(not (plain / "profile.json").exists(), "a profile that nobody asked for")
        check_table(output, ranks)
        check_json(measured / "profile.json", ranks)
    before = (folder.path / "measured2/profile.json").read_text()
    again = folder.run(2, "train", "tiny.yaml", "--run", folder.path / "measured2", *GENES, "--profile")
    check("nothing was trained" in again and (folder.path / "measured2/profile.json").read_text() == before, again)
    refused = folder.run(1, "train", SOURCE / "configs/sphere.yaml", "--gene", "x0=1", "--gene", "x1=1", "--profile", expect=2)
    check("--profile" in refused, refused)
    passed("1 and 2 ranks: the table adds up, and no loss has another bit")

    if DEVICE != "cpu":
        sys.exit()
    scaled = subprocess.run([sys.executable, SOURCE / "tools/bench/scaling.py", FINCH, "--ranks", "1,2", "--net", "tutorial", "--samples", "300",
                             "--batch", "20", "--repetitions", "2"], env=environment(), cwd=folder.path, capture_output=True, text=True)
    check(scaled.returncode == 0, scaled.stdout + scaled.stderr)
    lines = scaled.stdout.splitlines()
    for title in ("tutorial, strong scaling: batch 20 of all ranks", "tutorial, weak scaling: batch 20 on each rank"):
        at = lines.index(title)
        check(lines[at + 1].split() == ["ranks", "batch/rank", "samples/s", "speed-up", "efficiency", "all-reduce", "wait"], scaled.stdout)
        one, two = ([float(number) for number in re.findall(r"-?\d+\.?\d*", line)] for line in lines[at + 2:at + 4])
        # Columns: ranks, batch per rank; median, minimum and maximum of samples/s, speed-up and efficiency; time shares
        check(one[:2] == [1, 20] and one[5:11] == [1] * 6, scaled.stdout)
        check(two[:2] == [2, 10 if "strong" in title else 20] and all(number > 0 for number in two[2:11]), scaled.stdout)
        check(all(0 <= share <= 100 for share in one[11:13] + two[11:13]), scaled.stdout)
        check(abs(two[5] / 2 - two[8]) < 0.011, f"efficiency is not speed-up by ranks\n{scaled.stdout}")
    passed("scaling.py has a table for each kind of scaling")
