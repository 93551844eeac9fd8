"""Searches on real MNIST: 12 evaluations of 2 epochs on 10 000 images must reach an accuracy of 96 %; in the short form,
4 evaluations of 1 epoch, 90 %. Needs FINCH_MNIST, the folder of the IDX files."""
import os
import sys

from harness import IS_NIGHT, SKIPPED, SOURCE, Folder, check, individuals, passed

if not os.environ.get("FINCH_MNIST"):
    print("skipped: FINCH_MNIST is not set (the folder that holds MNIST's IDX files)")
    sys.exit(SKIPPED)

EPOCHS, EVALUATIONS, ACCURACY = (2, 12, 0.96) if IS_NIGHT else (1, 4, 0.90)

with Folder() as folder:
    (folder.path / "mnist.yaml").write_text((SOURCE / "configs/mnist.yaml").read_text())
    folder.run(4, "evolve", "mnist.yaml", "--set", f"data.path={os.environ['FINCH_MNIST']}", "--set",
               "data.training_samples=10000", "--set", f"training.epochs={EPOCHS}", "--set", f"search.budget.evaluations={EVALUATIONS}",
               "--set", "search.space.lr={real: [0.1, 1.0], scale: log}", "--set", "search.space.conv_layers={int: [2, 4]}")
    rows = individuals(folder.path / "runs/mnist")
    check(len(rows) == EVALUATIONS, f"{EVALUATIONS} evaluations were asked for, {len(rows)} are there")
    best = max(row["accuracy"] for row in rows.values())
    check(best >= ACCURACY, f"the best validation accuracy is {best:.4f}, expected at least {ACCURACY}")
    passed(f"the best validation accuracy on MNIST is {best:.4f}")
