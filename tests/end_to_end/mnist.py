"""Searches on real MNIST: 12 evaluations of 2 epochs on 10 000 images must reach an accuracy of 96 %. Needs
FINCH_MNIST, the folder of the IDX files."""
import os
import sys

from harness import SKIPPED, SOURCE, Folder, check, individuals, passed

if not os.environ.get("FINCH_MNIST"):
    print("skipped: FINCH_MNIST is not set (the folder that holds MNIST's IDX files)")
    sys.exit(SKIPPED)

with Folder() as folder:
    (folder.path / "mnist.yaml").write_text((SOURCE / "configs/mnist.yaml").read_text())
    folder.run(4, "evolve", "mnist.yaml", "--set", f"data.path={os.environ['FINCH_MNIST']}", "--set",
               "data.training_samples=10000", "--set", "training.epochs=2", "--set", "search.budget.evaluations=12", "--set",
               "search.space.lr={real: [0.1, 1.0], scale: log}", "--set", "search.space.conv_layers={int: [2, 4]}")
    rows = individuals(folder.path / "runs/mnist")
    check(len(rows) == 12, f"12 evaluations were asked for, {len(rows)} are there")
    best = max(row["accuracy"] for row in rows.values())
    check(best >= 0.96, f"the best validation accuracy is {best:.4f}, expected at least 0.96")
    passed(f"the best validation accuracy on MNIST is {best:.4f}")
