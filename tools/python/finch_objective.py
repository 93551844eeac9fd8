"""The interface for Python programs that are objectives of Finch: a program reads its genes and reports its losses.

This module has no dependencies. Copy it into the folder of the program:

    import finch_objective as finch

    genes = finch.genes()
    for epoch in range(1, 11):
        ...
        finch.report(loss=loss, epoch=epoch, accuracy=accuracy)

With `persistent: true`, Finch starts the program once, and the program evaluates one individual after another:

    for individual in finch.individuals():
        finch.report(loss=f(individual.genes))

If the program is not started by Finch, genes() returns its keyword arguments. report() then only prints lines.
"""
import json
import os
import pathlib
import sys
from dataclasses import dataclass, field
from typing import Dict, Iterator, Optional, Union

Gene = Union[int, float, str]


@dataclass
class Individual:
    """The input of one evaluation. `genes` contains only the active genes."""
    id: str = "by hand"
    seed: int = 0
    genes: Dict[str, Gene] = field(default_factory=dict)
    folder: str = "."
    checkpoint_dir: str = "checkpoints"
    resume: bool = False


_current: Optional[Individual] = None


def _read() -> Optional[Individual]:
    line = sys.stdin.readline()
    return Individual(**json.loads(line)) if line.strip() else None


def individual() -> Individual:
    """Returns the individual that this program evaluates. A program that is not persistent has only one."""
    global _current
    if _current is None:
        _current = (_read() if "FINCH_ID" in os.environ else None) or Individual()
    return _current


def genes(**by_hand: Gene) -> Dict[str, Gene]:
    """Returns the genes by name: int, float, or str for choices. If Finch did not start the program, returns
    `by_hand`."""
    return individual().genes or dict(by_hand)


def seed() -> int:
    """Returns the seed of the individual, in [0, 2^31)."""
    return individual().seed


def report(loss: float, epoch: Optional[int] = None, checkpoint: Union[str, "os.PathLike[str]", None] = None, **metrics: float) -> None:
    """Reports the loss after an epoch. The last reported loss is the result. Finch reads only the reports of rank 0.

    `checkpoint`: the folder in checkpoint_dir() with the complete checkpoint of this epoch, or its name (search.inherit).
    Raises ValueError if the name is empty or contains white space.
    """
    name = None if checkpoint is None else pathlib.Path(checkpoint).name
    if name is not None and (not name or name.split() != [name]):
        raise ValueError(f"checkpoint={str(checkpoint)!r}: the name of a folder without white space is needed")
    values = {"loss": float(loss), **({} if epoch is None else {"epoch": int(epoch)}), **{name: float(value) for name, value in metrics.items()}}
    words = [f"{name}={value!r}" for name, value in values.items()] + ([] if name is None else [f"checkpoint={name}"])
    print("finch", *words, flush=True)


def should_stop() -> bool:
    """True if Finch wants to stop this training (search.pruning; search.objective.interactive).

    All ranks of a worker must call this function equally often; they get the same answers.
    """
    if "FINCH_ID" not in os.environ:
        return False
    individual()  # reads the first line, which is the individual
    print("finch stop?", flush=True)
    return sys.stdin.readline().strip() == "stop"  # empty without `interactive: true`


def checkpoint_dir() -> pathlib.Path:
    """Returns a folder for checkpoints. It still exists if this individual resumes in a later start of the run."""
    folder = pathlib.Path(individual().checkpoint_dir)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def parent_checkpoint() -> Optional[pathlib.Path]:
    """Returns the folder with the checkpoint of the parent, for a program that has no checkpoint of its own; None if there is
    no parent (search.inherit)."""
    folder = os.environ.get("FINCH_PARENT_CHECKPOINT_DIR")
    return pathlib.Path(folder) if folder else None


def parent_epoch() -> int:
    """Returns the epoch of parent_checkpoint(); 0 if there is none. The first report is for the next epoch."""
    return int(os.environ.get("FINCH_PARENT_EPOCH", "0"))


def resumes() -> bool:
    """True if an earlier start of the run began this individual, so checkpoints may exist."""
    return individual().resume


def individuals() -> Iterator[Individual]:
    """Yields one individual after another, for persistent programs. The last report before the next one is the
    result."""
    global _current
    while (_current := _read()) is not None:
        yield _current
        print("finch done", _current.id, flush=True)
