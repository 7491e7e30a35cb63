"""Data-parallel processes that train one policy, started by `torchrun` or `accelerate launch`; one by default.

Every process plays its share of the jobs and receives all episodes, so that rewards, filters, stores and credit are the
same everywhere. Network computations are distributed: rescored log-probs, values, fresh answers, and the micro-batches
of every optimiser step of policy and critics, whose gradients are summed. Losses are divided by the token counts of the
whole step, so the number of tokens on each process does not matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from lmgym.errors import MissingExtra
from lmgym.rollout.planner import Group
from lmgym.types import Job

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """One process among `size`."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")  # of tensors in collectives

    @property
    def main(self) -> bool:
        """True for the process that writes the run's folder."""
        return self.rank == 0

    def share(self, whole: Sequence[T]) -> list[T]:
        """Return this process's share of `whole`."""
        return list(whole[self.rank :: self.size])

    def share_groups(self, jobs: Sequence[Job]) -> list[Job]:
        """Return this process's share of the jobs; all jobs of a group go to one process, for its planner."""
        number = {name: n for n, name in enumerate(dict.fromkeys(map(Group.name_of, jobs)))}
        return [job for job in jobs if number[Group.name_of(job)] % self.size == self.rank]

    def gathered(self, mine: Iterable[T]) -> list[T]:
        """Return the items of all processes, concatenated by rank."""
        if self.size == 1:
            return list(mine)
        from accelerate.utils import gather_object

        return list(gather_object(list(mine)))

    def agreed(self, mine: T) -> T:
        """Return the value of the main process."""
        if self.size == 1:
            return mine
        from accelerate.utils import broadcast_object_list

        box: list[Any] = [mine]
        broadcast_object_list(box)
        agreed: T = box[0]
        return agreed

    def summed(self, mine: Tensor) -> Tensor:
        """Return the sum over processes of tensors of one shape."""
        if self.size == 1:
            return mine
        whole = mine.to(self.device, copy=True)
        torch.distributed.all_reduce(whole)
        return whole.to(mine.device)

    def add_gradients(self, model: nn.Module) -> None:
        """Replace the gradients by their sum over all processes."""
        if self.size == 1:
            return
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        whole = torch.cat([(w.new_zeros(w.shape) if w.grad is None else w.grad).flatten() for w in weights])
        torch.distributed.all_reduce(whole)
        for weight, part in zip(weights, torch.split(whole, [w.numel() for w in weights]), strict=True):
            weight.grad = part.view_as(weight)


ALONE = Ranks()


def added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sums of figures by name."""
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


def ranks() -> Ranks:
    """Return rank and size of this process; rank 0 of 1 without a launcher."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return Ranks()
    try:
        from accelerate import PartialState
    except ModuleNotFoundError as error:
        raise MissingExtra(f"several processes need: pip install 'lmgym[train]' ({error})") from error
    state = PartialState(cpu=not torch.cuda.is_available())
    return Ranks(state.process_index, state.num_processes, state.device)
