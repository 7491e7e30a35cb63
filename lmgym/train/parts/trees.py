"""Credit over forks: episodes that share turns are the paths of a tree; a tree weighs as much as a single episode.

Where `n` forks leave an episode, each of the n + 1 paths weighs 1 / (n + 1) from there on, which keeps the gradient
that of one episode. A shared turn is trained in one path only and credited with all paths through it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lmgym.errors import RecipeError
from lmgym.train.batch import Batch
from lmgym.train.math import group_normal
from lmgym.train.parts.credit import within_groups


@dataclass
class Paths:
    """The episodes of a batch as paths; all lists are indexed by episode."""

    batch: Batch
    parent: list[int] = field(init=False)  # episode it forked from; -1 for roots and for parents outside the batch
    forked: list[int] = field(init=False)  # turn of the fork
    forks: list[dict[int, list[int]]] = field(init=False)  # by turn: the episodes that fork there

    def __post_init__(self) -> None:
        first = self.batch.first_rows()
        self.forked = self.batch.forked[first].tolist()
        parents = self.batch.parent[first].tolist()
        self.parent = [self._owner(parents, number) for number in range(len(parents))]
        self.forks = [defaultdict(list) for _ in parents]
        for number, parent in enumerate(self.parent):
            if parent >= 0:
                self.forks[parent][self.forked[number]].append(number)

    def _owner(self, parents: list[int], number: int) -> int:
        """Return the episode that owns the last shared turn: the parent, or one of the parent's ancestors."""
        parent = parents[number]
        while parent >= 0 and parents[parent] >= 0 and self.forked[number] <= self.forked[parent]:
            parent = parents[parent]
        return parent

    def __len__(self) -> int:
        """Return the number of paths."""
        return len(self.parent)

    def root(self, number: int) -> int:
        """Return the root of a path."""
        return number if self.parent[number] < 0 else self.root(self.parent[number])

    def share(self, number: int, turn: int) -> float:
        """Return the weight of a turn of an episode; it shrinks at every fork."""
        own = [1.0 / (1 + len(forks)) for at, forks in self.forks[number].items() if at <= turn]
        parent = self.parent[number]
        before = 1.0 if parent < 0 else self.share(parent, self.forked[number])
        return before * float(torch.tensor(own, dtype=torch.float64).prod())

    def weight(self) -> Tensor:
        """Return the weight of each path; the weights of a tree sum to 1. (E,) float64."""
        last = [max(forks, default=0) for forks in self.forks]
        return torch.tensor([self.share(n, last[n]) for n in range(len(self))], dtype=torch.float64)

    def returns(self) -> Tensor:
        """Return the undiscounted return of each path from its root; (E,) float64."""
        own, batch = self.batch.returns().cpu(), self.batch
        for number in range(len(self)):
            parent, limit = self.parent[number], self.forked[number]
            while parent >= 0:
                rows = batch.episode == parent
                before = batch.reward[rows].double() * (batch.turn[rows] < limit)
                own[number] += before.sum().cpu()
                parent, limit = self.parent[parent], min(limit, self.forked[parent])
        return own

    def spread(self, of_paths: Tensor) -> Tensor:
        """Spread values of paths (E,) over the tokens of all turns on each path, by their weights; (B, T)."""
        credit = self._through(self.weight() * of_paths.double().cpu())
        scale = len(self) / sum(parent < 0 for parent in self.parent)  # paths per tree: aggregations average over paths
        return (credit * scale).to(self.batch.reward) * self.batch.mask

    def mean(self, of_paths: Tensor) -> Tensor:
        """Return the mean of the values (E,) of the paths through each token; (B, T)."""
        values = of_paths.double().cpu()
        return (self._through(values) / self._through(torch.ones_like(values))).to(self.batch.reward) * self.batch.mask

    def _through(self, of_paths: Tensor) -> Tensor:
        """Return the sum of the values (E,) of the paths through each token; (B, T) float64."""
        own = of_paths.tolist()
        subtree = list(own)  # of a path and all its forks
        for number in sorted(range(len(self)), key=self._depth, reverse=True):
            if self.parent[number] >= 0:
                subtree[self.parent[number]] += subtree[number]
        total = torch.zeros(self.batch.mask.shape, dtype=torch.float64)
        turn = self.batch.turn.cpu()
        for row, number in enumerate(self.batch.episode.tolist()):
            total[row] = own[number]
            for at, forks in self.forks[number].items():
                total[row] += (turn[row] < at).double() * sum(subtree[each] for each in forks)
        return total

    def _depth(self, number: int) -> int:
        return 0 if self.parent[number] < 0 else 1 + self._depth(self.parent[number])


@within_groups
def tree_credit(batch: Batch) -> Tensor:
    """Return each path's return minus the mean of the other trees of its group (RLOO over forks); (B, T)."""
    paths = Paths(batch)
    key = batch.groups().cpu()
    root = torch.tensor([paths.root(number) for number in range(len(paths))])
    returns, weight = paths.returns(), paths.weight()
    of_tree = torch.zeros_like(returns).index_add(0, root, weight * returns)
    roots = torch.unique(root)
    _, member, size = torch.unique(key[roots], return_inverse=True, return_counts=True)
    if int(size.min()) < 2:
        raise RecipeError(
            "tree_credit compares the attempts of a group, and a group has a single tree; use two or more attempts"
        )
    centred = torch.zeros_like(returns)
    centred[roots] = group_normal(of_tree[roots], key[roots], std=False) * (size.double() / (size - 1))[member]
    return paths.spread(centred[root] + returns - of_tree[root])
