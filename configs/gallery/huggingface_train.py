"""Trains a small vision transformer on MNIST with Hugging Face's Trainer.

    FINCH_MNIST=~/mnist python configs/gallery/huggingface_train.py --hidden 64 --layers 2 --lr 0.001

The batch is 64 images per rank. After SIGUSR2, the training ends after the epoch, so grace_seconds must cover an epoch.
Needs transformers 4.30 or later, and accelerate. Only the callback Report and the checkpoints are specific to Finch.
"""
import json
import pathlib
import signal
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments, ViTConfig, ViTForImageClassification

from mnist import parse_options, read_training_set

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import finch_objective as finch  # noqa: E402


class Images(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"pixel_values": self.images[index], "labels": self.labels[index]}


class Report(TrainerCallback):
    def on_train_begin(self, args, state, control, **_):
        self.asked_to_stop = []
        signal.signal(signal.SIGUSR2, lambda *_: self.asked_to_stop.append(True))

    def on_epoch_end(self, args, state, control, **_):
        stop = torch.tensor(len(self.asked_to_stop), device=args.device)
        if dist.is_initialized():
            dist.all_reduce(stop, op=dist.ReduceOp.MAX)  # all ranks stop after the same epoch
        control.should_training_stop |= stop.item() > 0

    def on_evaluate(self, args, state, control, metrics=None, **_):
        if state.is_world_process_zero:
            finch.report(loss=metrics["eval_loss"], epoch=round(state.epoch), accuracy=metrics["eval_accuracy"])


def newest_whole():
    """Returns the newest complete checkpoint of an earlier start, or None. Trainer writes trainer_state.json last."""
    for saved in sorted(finch.checkpoint_dir().glob("checkpoint-*"), key=lambda path: -int(path.name.split("-")[1])) if finch.resumes() else ():
        try:
            json.loads((saved / "trainer_state.json").read_text())
            return str(saved)
        except (OSError, ValueError):
            print(f"{saved} is not complete", file=sys.stderr)
    return None


def main():
    options = parse_options(__doc__, hidden=int, layers=int, lr=float)
    images, labels = read_training_set(options.data, options.samples + 2000)
    shape = ViTConfig(image_size=28, patch_size=7, num_channels=1, num_labels=10, hidden_size=options.hidden, num_hidden_layers=options.layers,
                      num_attention_heads=4, intermediate_size=2 * options.hidden)
    known = TrainingArguments.__dataclass_fields__  # two options have other names in old versions
    renamed = {"eval_strategy" if "eval_strategy" in known else "evaluation_strategy": "epoch",
               "use_cpu" if "use_cpu" in known else "no_cuda": not torch.cuda.is_available()}
    arguments = TrainingArguments(str(finch.checkpoint_dir()), num_train_epochs=options.epochs, learning_rate=options.lr, per_device_train_batch_size=64,
                                  per_device_eval_batch_size=500, save_strategy="epoch", save_total_limit=1, seed=finch.seed(), report_to="none", logging_nan_inf_filter=False,  # else a loss of NaN is logged as 0
                                  disable_tqdm=True, ddp_backend=None if torch.cuda.is_available() else "gloo", **renamed)
    trainer = Trainer(ViTForImageClassification(shape), arguments, train_dataset=Images(images[:options.samples], labels[:options.samples]),
                      eval_dataset=Images(images[options.samples:], labels[options.samples:]), callbacks=[Report()],
                      compute_metrics=lambda guess: {"accuracy": np.mean(guess.predictions.argmax(1) == guess.label_ids)})
    trainer.train(resume_from_checkpoint=newest_whole())


main()
