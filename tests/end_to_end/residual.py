"""Searches residual networks with batch normalisation, dropout and averaged weights on two ranks. The run is
interrupted and resumed, and a replay gives the same bits. If torch is installed, the equivalent PyTorch module must
load best.h5 (strict=True) and give the same predictions."""
import os
import signal

import h5py
import numpy as np

from harness import Folder, check, end, individuals, passed, ranks_of, wait_for

CONFIGURATION = """
name: residual
data: {kind: idx, path: data, validation_samples: 300, normalize: {mean: 0.13, deviation: 0.31}}
model:
  - conv: {channels: 4, kernel: 3}
  - batch_norm: {activation: relu}
  - block: {layers: [conv: {channels: $channels, kernel: 3}, batch_norm: {activation: relu}, conv: {channels: $channels, kernel: 3}, batch_norm], activation: relu, repeat: 2}
  - max_pool: {kernel: 2}
  - dropout: {rate: $rate}
  - flatten
  - linear: {units: classes}
training: {epochs: 4, batch_size: 10, optimizer: {sgd: {momentum: 0.9}}, learning_rate: 0.02, average: $ema}
search:
  space: {channels: {choice: [4, 6]}, rate: {real: [0.1, 0.5]}, ema: {real: [0.8, 0.95]}}
  budget: {evaluations: 3}
workers: {ranks: 2}
checkpoint: {archive_seconds: 0.2, training_seconds: 0.5}
"""


def network(channels):
    """Returns the same layers as an nn.Sequential."""
    import torch

    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, before):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(before, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))
            self.shortcut = nn.Identity() if before == channels else nn.Conv2d(before, channels, 1)

        def forward(self, x):
            return torch.relu(self.body(x) + self.shortcut(x))

    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), Block(4), Block(channels),
                         nn.MaxPool2d(2), nn.Dropout(), nn.Flatten(), nn.Linear(channels * 49, 10))


def check_in_pytorch(best, images):
    try:
        import torch
    except ImportError:
        print("not compared with PyTorch: torch is not installed")
        return
    channels = best["3.body.0.weight"].shape[0]
    model = network(channels)
    model.load_state_dict({name: torch.tensor(best[name][()]) for name in best if "." in name}, strict=True)
    model.eval()
    with torch.no_grad():
        pixels = torch.from_numpy(images[:, None].astype(np.float32))
        scores = model((pixels / 255 - 0.13) / 0.31).softmax(1).numpy()
    far = np.abs(scores - best["test/scores"][()]).max()
    check(far < 1e-4, f"PyTorch's scores are up to {far} from the recorded ones")
    predictions = scores.argmax(1)
    # Rounding may change the prediction of one image if two scores are nearly equal.
    apart = int((predictions != best["test/predictions"][()]).sum())
    check(apart <= 1, f"PyTorch predicts {apart} of {len(images)} test images differently")
    passed(f"PyTorch takes best.h5 (strict) and predicts {len(images) - apart} of {len(images)} test images alike")


with Folder() as folder:
    folder.write("residual.yaml", CONFIGURATION)
    folder.run(0, "data", "generate", "data", "--samples", 1200, "--size", 14)
    run = folder.path / "runs/residual"
    process = folder.start(2, "evolve", "residual.yaml")
    wait_for(lambda: list(run.glob("state/**/training-*.h5")) or process.poll() is not None, "a snapshot")
    for rank in ranks_of(process):
        os.kill(rank, signal.SIGUSR2)
    code = end(process)
    check(code in (0, 75), f"interrupted, finch ended with {code}\n{folder.output()}")
    folder.run(2, "evolve", "residual.yaml")
    rows = individuals(run)
    check(len(rows) == 3, f"3 evaluations were asked for, {len(rows)} are there")
    passed(f"three residual networks on two ranks, ended with {code} and resumed")

    for row in rows.values():
        name = ".".join(str(int(row[part])) for part in ("restart", "worker", "sequence"))
        text = folder.run(2, "replay", run, name)
        check("equal to the last bit" in text, f"the replay of {name} is not equal\n{text}")
    passed("every one is replayed to the same bits")

    with h5py.File(run / "models/best.h5", "r") as best:
        batches = best["4.body.4.num_batches_tracked"][()]
        check(batches > 0 and batches % 90 == 0, f"num_batches_tracked is {batches}; an epoch has 90 batches")
        check((best["1.running_var"][()] > 0).all(), "a running variance is not positive")
        raw = next((folder.path / "data").glob("t10k-images*"))
        import gzip
        opener = gzip.open if raw.suffix == ".gz" else open
        with opener(raw, "rb") as file:
            images = np.frombuffer(file.read()[16:], dtype=np.uint8).reshape(-1, 14, 14)
        check_in_pytorch(best, images)
