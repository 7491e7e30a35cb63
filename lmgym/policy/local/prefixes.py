"""Rows of tokens that begin alike: what they share is computed once.

Fresh answers at stored observations, pairs of episodes that part in one turn, and observations of one episode are such
rows. The longest row of a family is its stem; the others, its branches, go on from a prefix of the stem.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from lmgym.policy.local.forward import Rows
from lmgym.policy.local.fused import causal

BRANCHES = 32  # maximum number of branches of a stem
SAVED = 0.25  # least share of tokens that sharing must save


class Place(NamedTuple):
    """The stem of a row, by number, and how many tokens the row shares with it; a stem is its own."""

    stem: int
    shared: int


def places(rows: Sequence[NDArray[np.int64]]) -> list[Place]:
    """Return the place of each row; a branch shares half of its tokens or more.

    A stem has at most `BRANCHES` branches, whose own tokens together are no more than the stem's.
    """
    layout: list[Place] = [Place(number, len(row)) for number, row in enumerate(rows)]
    stems: list[tuple[bytes, int]] = []  # in lexicographic order: the row most like another is beside it
    members, own = [0] * len(rows), [0] * len(rows)
    for number in sorted(range(len(rows)), key=lambda n: -len(rows[n])):
        row = rows[number]
        key = (row.astype(">i8").tobytes(), number)
        at = bisect(stems, key)
        near = [Place(stem, alike(rows[stem], row)) for _, stem in stems[max(0, at - 1) : at + 1]]
        fitting = [
            place
            for place in near
            if 2 * place.shared >= len(row)
            and members[place.stem] < BRANCHES
            and own[place.stem] + len(row) - place.shared <= len(rows[place.stem])
        ]
        if fitting:
            best = layout[number] = max(fitting, key=lambda place: place.shared)
            members[best.stem] += 1
            own[best.stem] += len(row) - best.shared
        else:
            stems.insert(at, key)
    return layout


def alike(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    """Return the number of tokens with which both rows begin."""
    size = min(len(first), len(second))
    differ = first[:size] != second[:size]
    return int(differ.argmax()) if differ.any() else size


def families(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return a number (R,) for each row, the same where one pass saves a share of `SAVED` of their tokens.

    A family has at most twice as many tokens to compute as its longest row.
    """
    layout = places([np.asarray(row, np.int64) for row in rows])
    total, saved = [0] * len(rows), [0] * len(rows)  # tokens of a family, by stem
    for number, place in enumerate(layout):
        total[place.stem] += len(rows[number])
        saved[place.stem] += place.shared if place.stem != number else 0
    pays = [part >= SAVED * whole for part, whole in zip(saved, total, strict=True)]
    numbers = [place.stem if pays[place.stem] else number for number, place in enumerate(layout)]
    return torch.tensor(numbers, dtype=torch.long)


class SharedRows:
    """The packed form of rows whose shared tokens are there once: the stems, then what branches add to them."""

    def __init__(self, lengths: Sequence[int], layout: Sequence[Place], device: torch.device) -> None:
        """`lengths` are those of the rows, which are packed one after another without sharing."""
        ends = np.cumsum(lengths)
        spans = [np.arange(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        stems = [number for number, place in enumerate(layout) if place.stem == number]
        grown = [
            [n for n, place in enumerate(layout) if place.stem == stem != n and place.shared < lengths[n]]
            for stem in stems
        ]
        bearing = [number for number, branches in enumerate(grown) if branches]  # stems with branches, among stems
        own = [[spans[n][layout[n].shared :] for n in grown[number]] for number in bearing]  # tokens of branches
        order = np.concatenate([spans[n] for n in stems] + [part for parts in own for part in parts])
        packed_at = np.zeros(sum(lengths), np.int64)
        packed_at[order] = np.arange(len(order))
        source = packed_at.copy()
        for number, place in enumerate(layout):
            source[spans[number][: place.shared]] = packed_at[spans[place.stem][: place.shared]]
        self.order = torch.from_numpy(order).to(device)  # (M,), of the packed tokens among the N of all rows
        self.source = torch.from_numpy(source).to(device)  # (N,), of every token among the packed
        self.stems = Rows([lengths[n] for n in stems], device)
        self.branches: Rows | None = None
        if bearing:
            self.branches = Rows([sum(map(len, parts)) for parts in own], device)
            self.bearing = torch.tensor(bearing, device=device)
            self.width = max(lengths[stems[number]] for number in bearing)
            self.visible = self._visible([[layout[n].shared for n in grown[number]] for number in bearing], own)
            self.visible = self.visible.to(device)

    def _visible(self, shared: Sequence[Sequence[int]], own: Sequence[Sequence[NDArray[np.int64]]]) -> Tensor:
        """Return which tokens of the stem and of its branches each token of a branch sees, (F, 1, Q, width + Q)."""
        assert self.branches is not None
        count = self.branches.width
        visible = torch.zeros(len(own), 1, count, self.width + count, dtype=torch.bool)
        visible[..., 0] = True  # of padding as well: attention to nothing is NaN
        for family, parts in enumerate(own):
            begin = 0
            for prefix, part in zip(shared[family], parts, strict=True):
                end = begin + len(part)
                visible[family, 0, begin:end, :prefix] = True
                square = torch.ones(len(part), len(part), dtype=torch.bool).tril()
                visible[family, 0, begin:end, self.width + begin : self.width + end] = square
                begin = end
        return visible

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return causal attention of packed q (M, Hq, D), k and v (M, Hk, D); (M, Hq D)."""
        count = self.stems.tokens
        keys, values = self.stems.pad(k[:count]), self.stems.pad(v[:count])
        stems = self.stems.pack(causal(self.stems.pad(q[:count]), keys, values))
        if self.branches is None:
            return stems
        keys, values = (
            torch.cat([stem[self.bearing, :, : self.width], self.branches.pad(own[count:])], 2)
            for stem, own in ((keys, k), (values, v))
        )
        queries = self.branches.pad(q[count:])
        if q.device.type == "cpu":
            out = F.scaled_dot_product_attention(queries, keys, values, attn_mask=self.visible, enable_gqa=True)
        else:  # no fused kernel there takes both a mask and fewer heads of keys than of queries
            keys, values = (x.repeat_interleave(queries.shape[1] // x.shape[1], 1) for x in (keys, values))
            out = F.scaled_dot_product_attention(queries, keys, values, attn_mask=self.visible)
        return torch.cat([stems, self.branches.pack(out)])


def shared_rows(tokens: Tensor, lengths: Sequence[int]) -> SharedRows | None:
    """Return how rows of these lengths, packed as `tokens` (N,), share; None if that saves little."""
    if len(lengths) < 2:
        return None
    rows = np.split(tokens.cpu().numpy(), np.cumsum(lengths)[:-1])
    layout = places(rows)
    saved = sum(place.shared for number, place in enumerate(layout) if place.stem != number)
    return SharedRows(lengths, layout, tokens.device) if saved >= SAVED * len(tokens) else None
