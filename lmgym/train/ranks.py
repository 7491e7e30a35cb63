"""Processes that train one policy together, as `torchrun` or `accelerate launch` start them; a single one by default.

Every process plays its share of the jobs and gets all episodes, so that rewards, filters, stores and credit are the
same everywhere. What a network is needed for is shared out: log-probs scored again, values, answers sampled anew, and
the micro-batches of every optimiser step, the policy's and critics', whose gradients are added up. Denominators are
those of the whole step to begin with, whatever the number of tokens on each process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from lmgym.errors import MissingExtra

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """One process among `size`."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")  # where tensors are when they travel

    @property
    def main(self) -> bool:
        """Whether this process writes the run's folder."""
        return self.rank == 0

    def share(self, whole: Sequence[T]) -> list[T]:
        """What of `whole` is this process's to do."""
        return list(whole[self.rank :: self.size])

    def gathered(self, mine: Iterable[T]) -> list[T]:
        """What all processes have, one after another."""
        if self.size == 1:
            return list(mine)
        from accelerate.utils import gather_object

        return list(gather_object(list(mine)))

    def agreed(self, mine: T) -> T:
        """What the main process has."""
        if self.size == 1:
            return mine
        from accelerate.utils import broadcast_object_list

        box: list[Any] = [mine]
        broadcast_object_list(box)
        agreed: T = box[0]
        return agreed

    def summed(self, mine: Tensor) -> Tensor:
        """The sum of a tensor that every process has of the same shape; where each filled in its part, the whole."""
        if self.size == 1:
            return mine
        whole = mine.to(self.device, copy=True)
        torch.distributed.all_reduce(whole)
        return whole.to(mine.device)

    def add_gradients(self, model: nn.Module) -> None:
        """Let every process have the sum of the gradients of all."""
        if self.size == 1:
            return
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        whole = torch.cat([(w.new_zeros(w.shape) if w.grad is None else w.grad).flatten() for w in weights])
        torch.distributed.all_reduce(whole)
        for weight, part in zip(weights, torch.split(whole, [w.numel() for w in weights]), strict=True):
            weight.grad = part.view_as(weight)


ALONE = Ranks()


def added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Figures of several processes, added up by name."""
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


def ranks() -> Ranks:
    """Where this process stands among those that were started together; alone without a launcher."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return Ranks()
    try:
        from accelerate import PartialState
    except ModuleNotFoundError as error:
        raise MissingExtra(f"several processes need: pip install 'lmgym[train]' ({error})") from error
    state = PartialState(cpu=not torch.cuda.is_available())
    return Ranks(state.process_index, state.num_processes, state.device)
