"""Trains the tutorial's network in PyTorch, with DistributedDataParallel over the ranks of a worker.

Only the calls of finch_objective and the stop on SIGUSR2 are specific to Finch.

    FINCH_MNIST=~/mnist python configs/gallery/pytorch_ddp.py --layers 2 --activation relu --lr 0.3 --gamma 0.7

Needs torch. FINCH_MNIST is the folder with MNIST's IDX files, which may be gzipped.
"""
import os
import pathlib
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn

from mnist import parse_options, read_training_set

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import finch_objective as finch  # noqa: E402

BATCH = 64  # of all ranks


def network(layers, activation):
    parts, channels = [], 1
    for _ in range(layers):
        parts += [nn.Conv2d(channels, 10, 3, padding="same"), {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}[activation]()]
        channels = 10
    return nn.Sequential(*parts, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(14 * 14 * channels, 10))


def main():
    options = parse_options(__doc__, layers=int, activation=str, lr=float, gamma=float)
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "LOCAL_RANK": 0, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}.items():
        os.environ.setdefault(name, str(value))  # defaults for a start without Finch and torchrun
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    print(f"rank {rank} of world size {ranks}", flush=True)
    torch.manual_seed(finch.seed())
    images, labels = (part.to(device) for part in read_training_set(options.data, options.samples + 2000))
    model = nn.parallel.DistributedDataParallel(network(options.layers, options.activation).to(device))
    optimizer = torch.optim.Adadelta(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=options.gamma)
    loss_of = nn.CrossEntropyLoss()

    saved, first = finch.checkpoint_dir() / "last.pt", 1
    if finch.resumes() and saved.exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"]), optimizer.load_state_dict(state["optimizer"]), schedule.load_state_dict(state["schedule"])
        first = state["epoch"] + 1
        print(f"goes on at epoch {first}", flush=True)
    asked_to_stop = []
    signal.signal(signal.SIGUSR2, lambda *_: asked_to_stop.append(True))

    for epoch in range(first, options.epochs + 1):
        order = torch.randperm(options.samples, generator=torch.Generator().manual_seed(epoch))[rank::ranks]
        for batch in order.split(max(1, BATCH // ranks)):
            optimizer.zero_grad()
            loss_of(model(images[batch]), labels[batch]).backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            scores = model.module(images[options.samples:])
            loss = loss_of(scores, labels[options.samples:]).item()
            accuracy = (scores.argmax(1) == labels[options.samples:]).float().mean().item()
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "epoch": epoch}, str(saved) + ".new")
            os.replace(str(saved) + ".new", saved)
            finch.report(loss=loss, epoch=epoch, accuracy=accuracy)
        stop = torch.tensor(len(asked_to_stop))
        dist.all_reduce(stop, op=dist.ReduceOp.MAX)  # all ranks leave the loop in the same epoch
        if stop > 0:
            break
    dist.destroy_process_group()


main()
