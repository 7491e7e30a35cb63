"""Credit of whole turns: rewards of turns, summed from there on, normalised, and spread over the tokens of the turn.

The order matters and differs between papers, so each step is a method:

    turns = Turns(batch)
    turns.spread(turns.to_go(turns.normal(turns.reward), gamma=1.0))  # normalise, then sum (IGPO)
    turns.spread(turns.normal(turns.to_go(turns.reward, gamma=0.5), by="turn"))  # sum, then normalise (UI-S1)
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from lmgym.train.batch import Batch
from lmgym.train.interfaces import Credit
from lmgym.train.math import group_normal
from lmgym.train.parts.credit import within_groups

By = Literal["group", "turn"]  # turns that are compared: all of the (group, seat), or those with the same number


class Turns:
    """The turns of a batch that have trained tokens, episode by episode in their order; all columns are (N,)."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        width = int(batch.turn.max()) + 2
        key = (batch.episode[:, None] * width + batch.turn + 1).masked_fill(~batch.mask, -1)
        keys, place = torch.unique(key, return_inverse=True)  # sorted: by episode, then by turn
        untrained = int(keys[0] < 0) if len(keys) else 0
        self.place = place - untrained  # (B, T): number of the token's turn among the N; -1: not trained
        keys = keys[untrained:]
        self.episode, self.number = keys // width, keys % width - 1
        self.reward = batch.reward.new_zeros(len(keys), dtype=torch.float64)
        self.reward.index_add_(0, self.place[batch.mask], batch.reward[batch.mask].double())

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean of `values` (B, T) over the tokens of each turn, with gradient; (N,)."""
        place = self.place[self.batch.mask]
        total = values.new_zeros(len(self.number)).index_add(0, place, values[self.batch.mask])
        return total / torch.bincount(place, minlength=len(self.number))

    def to_go(self, values: Tensor, *, gamma: float = 1.0) -> Tensor:
        """Return the sum of `values` (N,) from each turn to the end of its episode, discounted by `gamma` a turn."""
        total = values.clone()
        for turn in range(len(values) - 2, -1, -1):
            if self.episode[turn] == self.episode[turn + 1]:
                total[turn] += gamma * total[turn + 1]
        return total

    def normal(self, values: Tensor, *, by: By = "group", std: bool = True) -> Tensor:
        """Return `values` (N,) minus the mean of the turns compared `by`, divided by their sample deviation if `std`.

        Turns with nothing to compare with, or all alike, get 0.
        """
        key = self.batch.groups()[self.episode]
        if by == "turn":
            key = key * (int(self.number.max()) + 1) + self.number
        return group_normal(values, key, std=std)

    def spread(self, values: Tensor) -> Tensor:
        """Return `values` (N,) on all trained tokens of their turn; (B, T)."""
        padded = torch.cat([values, values.new_zeros(1)])  # place -1 reads the last
        return padded[self.place].to(self.batch.reward)


@within_groups
def by_number(batch: Batch) -> Tensor:
    """Return each turn's own reward less the mean of the group's turns with the same number; (B, T)."""
    turns = Turns(batch)
    return turns.spread(turns.normal(turns.reward, by="turn", std=False))


@within_groups
def by_turn(batch: Batch, *, credit: Credit) -> Tensor:
    """Return advantages whose mean over the tokens of an episode is the mean over its turns of token means; (B, T)."""
    turns = int(batch.turn.max()) + 2
    key = batch.episode[:, None] * turns + batch.turn + 1  # of (episode, turn); (B, T)
    size = torch.bincount(key[batch.mask], minlength=int(key.max()) + 1).double()
    episode = torch.arange(len(size)) // turns
    count = int(episode.max()) + 1
    tokens = size.new_zeros(count).index_add(0, episode, size)
    spoken = size.new_zeros(count).index_add(0, episode, (size > 0).double())
    factor = (tokens / spoken.clamp(min=1))[episode] / size.clamp(min=1)
    return credit(batch) * factor[key].to(batch.reward)
