"""What a Python program needs to be an objective of Finch: its genes in, its losses out. No dependencies; copy it beside the program.

    import finch_objective as finch

    genes = finch.genes()
    for epoch in range(1, 11):
        ...
        finch.report(loss=loss, epoch=epoch, accuracy=accuracy)

With `persistent: true` the program is started once and evaluates one individual after the other:

    for individual in finch.individuals():
        finch.report(loss=f(individual.genes))

Started by hand, outside of Finch, genes come as NAME=VALUE arguments of genes(), and reports are plain lines.
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
    """What one evaluation is given. Genes that are not active are absent."""
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
    """The individual that this program evaluates; a program that is not persistent has one."""
    global _current
    if _current is None:
        _current = (_read() if "FINCH_ID" in os.environ else None) or Individual()
    return _current


def genes(**by_hand: Gene) -> Dict[str, Gene]:
    """The genes by name: whole numbers, numbers and words as they stand in the configuration. Outside of Finch `by_hand`."""
    return individual().genes or dict(by_hand)


def seed() -> int:
    """A seed of the individual's own, in [0, 2^31)."""
    return individual().seed


def report(loss: float, epoch: Optional[int] = None, **metrics: float) -> None:
    """Says the loss after an epoch: the last one counts. Of several ranks Finch listens to rank 0 alone."""
    values = {"loss": float(loss), **({} if epoch is None else {"epoch": int(epoch)}), **{name: float(value) for name, value in metrics.items()}}
    print("finch", " ".join(f"{name}={value!r}" for name, value in values.items()), flush=True)


def should_stop() -> bool:
    """Whether Finch has seen enough of this training (search.pruning; search.objective.interactive). All ranks of a worker ask equally often and get the same answers."""
    if "FINCH_ID" not in os.environ:
        return False
    individual()  # its line comes first
    print("finch stop?", flush=True)
    return sys.stdin.readline().strip() == "stop"  # without `interactive: true` there is no answer


def checkpoint_dir() -> pathlib.Path:
    """A folder that is still there when this individual goes on in a later start of the run (see resumes())."""
    folder = pathlib.Path(individual().checkpoint_dir)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def resumes() -> bool:
    """Whether an earlier start of the run began this individual: its checkpoints may be there."""
    return individual().resume


def individuals() -> Iterator[Individual]:
    """For persistent programs: one individual after the other. What is reported last before the next one counts."""
    global _current
    while (_current := _read()) is not None:
        yield _current
        print("finch done", _current.id, flush=True)
