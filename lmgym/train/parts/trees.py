"""Credit over forks: episodes that share turns are the paths of a tree, and a tree counts as much as an episode alone.

Where `n` forks leave an episode, it and they weigh 1 / (n + 1) from there on, so that the gradient stays that of an
episode played once. A shared turn is trained in one path only and is credited with all that lead through it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lmgym.errors import RecipeError
from lmgym.train.batch import Batch
from lmgym.train.interfaces import Credit
from lmgym.train.math import group_normal
from lmgym.train.parts.credit import compares_groups, within_groups


@dataclass
class Paths:
    """The episodes of a batch as paths; all lists are by the number of the episode."""

    batch: Batch
    parent: list[int] = field(init=False)  # whose turn it forked from; -1 for roots, and where that is not in the batch
    forked: list[int] = field(init=False)  # the turn
    forks: list[dict[int, list[int]]] = field(init=False)  # by turn: those that leave there

    def __post_init__(self) -> None:
        first = self.batch.first_rows()
        self.forked = self.batch.forked[first].tolist()
        given = self.batch.parent[first].tolist()
        self.parent = [self._owner(given, number) for number in range(len(given))]
        self.forks = [defaultdict(list) for _ in given]
        for number, parent in enumerate(self.parent):
            if parent >= 0:
                self.forks[parent][self.forked[number]].append(number)

    def _owner(self, given: list[int], number: int) -> int:
        """The episode of whose own turns the fork shares the last: a fork of a fork may share none of its parent's."""
        parent = given[number]
        while parent >= 0 and given[parent] >= 0 and self.forked[number] <= self.forked[parent]:
            parent = given[parent]
        return parent

    def __len__(self) -> int:
        """Paths."""
        return len(self.parent)

    def root(self, number: int) -> int:
        """The root of a path."""
        return number if self.parent[number] < 0 else self.root(self.parent[number])

    def share(self, number: int, turn: int) -> float:
        """What a turn of an episode weighs: less behind each fork."""
        own = [1.0 / (1 + len(forks)) for at, forks in self.forks[number].items() if at <= turn]
        parent = self.parent[number]
        before = 1.0 if parent < 0 else self.share(parent, self.forked[number])
        return before * float(torch.tensor(own, dtype=torch.float64).prod())

    def weight(self) -> Tensor:
        """What each path weighs; those of a tree sum to 1. (E,) float64."""
        last = [max(forks, default=0) for forks in self.forks]
        return torch.tensor([self.share(n, last[n]) for n in range(len(self))], dtype=torch.float64)

    def returns(self) -> Tensor:
        """Undiscounted return of each path from its root on; (E,) float64."""
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
        """What paths (E,) are credited with, on the tokens of all that they lead through; (B, T)."""
        weighed = (self.weight() * of_paths.double().cpu()).tolist()
        whole = list(weighed)  # of a path and all that leave it
        for number in sorted(range(len(self)), key=self._depth, reverse=True):
            if self.parent[number] >= 0:
                whole[self.parent[number]] += whole[number]
        found = torch.zeros(self.batch.mask.shape, dtype=torch.float64)
        turn = self.batch.turn.cpu()
        for row, number in enumerate(self.batch.episode.tolist()):
            found[row] = weighed[number]
            for at, forks in self.forks[number].items():
                found[row] += (turn[row] < at).double() * sum(whole[each] for each in forks)
        return (found * self._scale()).to(self.batch.reward) * self.batch.mask

    def shares(self) -> Tensor:
        """What tokens weigh in a credit that looks along one path alone, as GAE does; (B, T)."""
        return self.spread(torch.ones(len(self)))

    def _scale(self) -> float:
        """Paths for each tree: aggregations average over paths."""
        return len(self) / sum(parent < 0 for parent in self.parent)

    def _depth(self, number: int) -> int:
        return 0 if self.parent[number] < 0 else 1 + self._depth(self.parent[number])


def over_forks(credit: Credit) -> Credit:
    """A credit that looks along one path alone, weighed for episodes with forks; marked as what it weighs is."""

    def weighed(batch: Batch) -> Tensor:
        return credit(batch) * Paths(batch).shares()

    return within_groups(weighed) if compares_groups(credit) else weighed


@within_groups
def tree_credit(batch: Batch) -> Tensor:
    """Each path's return less the mean of the other trees of its group (RLOO over forks); (B, T)."""
    paths = Paths(batch)
    key = batch.groups().cpu()
    root = torch.tensor([paths.root(number) for number in range(len(paths))])
    returns, weight = paths.returns(), paths.weight()
    of_tree = torch.zeros_like(returns).index_add(0, root, weight * returns)
    roots = torch.unique(root)
    _, member, size = torch.unique(key[roots], return_inverse=True, return_counts=True)
    if int(size.min()) < 2:
        raise RecipeError("trees are compared with the other tries of their task: a group has a single one")
    centred = torch.zeros_like(returns)
    centred[roots] = group_normal(of_tree[roots], key[roots], std=False) * (size.double() / (size - 1))[member]
    return paths.spread(centred[root] + returns - of_tree[root])
