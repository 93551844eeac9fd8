"""Trains a small network on MNIST with Lightning, on all ranks of a worker.

    FINCH_MNIST=~/mnist python configs/gallery/lightning_train.py --width 16 --dropout 0.2 --lr 0.001

The batch is 64 images per rank. After SIGUSR2, the training ends after the epoch, so grace_seconds must cover an epoch.
Needs lightning 2.2 or later. Only the callback Report and the checkpoints are specific to Finch.
"""
import os
import pathlib
import signal
import sys

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mnist import parse_options, read_training_set

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import finch_objective as finch  # noqa: E402


class Network(lightning.LightningModule):
    def __init__(self, width, dropout, lr):
        super().__init__()
        self.lr = lr
        self.layers = nn.Sequential(nn.Conv2d(1, width, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.Flatten(), nn.Dropout(dropout), nn.Linear(2 * width * 25, 10))

    def training_step(self, batch, _):
        return nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def validation_step(self, batch, _):
        scores = self.layers(batch[0])
        self.log("loss", nn.functional.cross_entropy(scores, batch[1]), sync_dist=True)
        self.log("accuracy", (scores.argmax(1) == batch[1]).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class Report(lightning.Callback):
    def on_fit_start(self, trainer, module):
        self.asked_to_stop = []
        signal.signal(signal.SIGUSR2, lambda *_: self.asked_to_stop.append(True))

    def on_train_epoch_end(self, trainer, module):  # all ranks stop after the same epoch
        trainer.should_stop |= trainer.strategy.reduce_boolean_decision(bool(self.asked_to_stop), all=False)

    def on_validation_epoch_end(self, trainer, module):
        if trainer.is_global_zero:
            values = trainer.callback_metrics
            finch.report(loss=values["loss"].item(), epoch=trainer.current_epoch + 1, accuracy=values["accuracy"].item())


def main():
    options = parse_options(__doc__, width=int, dropout=float, lr=float)
    lightning.seed_everything(finch.seed())
    images, labels = read_training_set(options.data, options.samples + 2000)
    training = TensorDataset(images[:options.samples], labels[:options.samples])
    validation = TensorDataset(images[options.samples:], labels[options.samples:])
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    folder = finch.checkpoint_dir()
    trainer = lightning.Trainer(max_epochs=options.epochs, strategy="ddp" if ranks > 1 else "auto", devices=int(os.environ.get("LOCAL_WORLD_SIZE", 1)),
                                num_nodes=int(os.environ.get("GROUP_WORLD_SIZE", 1)), logger=False, enable_progress_bar=False, num_sanity_val_steps=0,
                                callbacks=[Report(), ModelCheckpoint(folder, save_last=True, enable_version_counter=False)])
    last = folder / "last.ckpt"
    trainer.fit(Network(options.width, options.dropout, options.lr), DataLoader(training, 64, shuffle=True), DataLoader(validation, 500),
                ckpt_path=str(last) if finch.resumes() and last.exists() else None)


main()
