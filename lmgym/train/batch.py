"""The Batch: tensors of the episodes that one update trains on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lmgym.policy.models.vision import Media

OBSERVATION_STRIDE = 3  # one in this many observation tokens is trained


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Segments of episodes as right-padded rows; entries are at the position of their token, not of its logits."""

    ids: Tensor  # (B, T) int64, padded with 0
    attention: Tensor  # (B, T) bool: a real token
    mask: Tensor  # (B, T) bool: trained token of an answer; losses are averaged over these
    turn: Tensor  # (B, T) int64: number of the turn; -1 outside answers
    invalid: Tensor  # (B, T) bool: token of an invalid action
    logprobs: Tensor  # (B, T) of the sampling policy, or rescored by the trainer; 0 outside answers
    entropy: Tensor  # (B, T) nats; 0 outside answers
    reward: Tensor  # (B, T) reward of a turn, on its last trained token
    value: Tensor  # (B, T) of the state before the token, by the critic
    quality: Tensor  # (B, T) Q of the turn of the token, by critics that have one
    cut: Tensor  # (B,) bool: the row ends a truncated episode, with its final observation if available
    target: Tensor  # (B, T) target of `value`, by the critic
    boot: Tensor  # (B,) value of the state after the row's last token, for rows that are `cut`
    advantage: Tensor  # (B, T)
    weight: Tensor  # (B, T) factor of the token's loss; 0: not trained
    reference: Tensor  # (B, T) log-probs under the start policy, or the base below adapters, if needed
    episode: Tensor  # (B,) number of the episode within the batch
    segment: Tensor  # (B,) number of the segment within its episode
    group: Tensor  # (B,)
    seat: Tensor  # (B,)
    parent: Tensor  # (B,) number of the parent episode of a fork; -1 for none in the batch
    forked: Tensor  # (B,) number of turns shared with the parent
    version: Tensor  # (B,) oldest version of the weights that sampled the row
    stored: Tensor  # (B,) bool: drawn from a store to be trained beside the fresh episodes
    media: Media | None = None  # pictures of the rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.ids)

    def rows(self, index: Tensor) -> Batch:
        """Return the rows `index` (R,), without columns that are padding in all of them."""
        longest = int(self.attention[index].sum(1).max())
        parts = {n: x[index, :longest] if x.ndim == 2 else x[index] for n, x in self.tensors().items()}
        return Batch(**parts, media=None if self.media is None else self.media.select(index.tolist()))

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on `device`."""
        return Batch(**{name: part.to(device) for name, part in self.tensors().items()}, media=self.media)

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "media"}

    @property
    def lengths(self) -> Tensor:
        """Number of real tokens of each row; (B,)."""
        return self.attention.sum(1)

    def returns(self) -> Tensor:
        """Return the undiscounted return of each episode over all its rows; (E,) by episode number."""
        total = torch.zeros(int(self.episode.max()) + 1, dtype=torch.float64, device=self.reward.device)
        return total.index_add_(0, self.episode, self.reward.double().sum(1))

    def first_rows(self) -> Tensor:
        """Return the index of the first row of each episode; (E,) by episode number."""
        rows = torch.full((int(self.episode.max()) + 1,), -1, dtype=torch.long, device=self.episode.device)
        rows[self.episode.flip(0)] = torch.arange(len(self) - 1, -1, -1, device=self.episode.device)
        return rows

    def groups(self) -> Tensor:
        """Return the number of the (group, seat) of each episode, the unit of group statistics; (E,)."""
        first = self.first_rows()
        return self.group[first] * (int(self.seat.max()) + 1) + self.seat[first]


def joined(fresh: Batch | None, stored: Batch) -> Batch:
    """Return the rows of both batches, those of `stored` marked; episodes, groups and parents stay apart."""
    stored = replace(stored, stored=torch.ones_like(stored.stored))
    if fresh is None:
        return stored
    episodes = int(fresh.episode.max()) + 1
    stored = replace(
        stored,
        episode=stored.episode + episodes,
        group=stored.group + int(fresh.group.max()) + 1,
        parent=torch.where(stored.parent < 0, -1, stored.parent + episodes),
    )
    width = max(fresh.ids.shape[1], stored.ids.shape[1])
    parts: dict[str, Tensor] = {}
    for name, first in fresh.tensors().items():
        second = stored.tensors()[name]
        if first.ndim == 2:
            fill = -1 if name == "turn" else 0
            first, second = (F.pad(x, (0, width - x.shape[1]), value=fill) for x in (first, second))
        parts[name] = torch.cat([first, second])
    media = None if fresh.media is None or stored.media is None else fresh.media.joined(stored.media)
    return Batch(**parts, media=media)


def masked(batch: Batch, out: Tensor) -> Batch:
    """Return the batch with the tokens `out` (B, T) excluded from the loss; statistics and rewards stay."""
    return replace(batch, mask=batch.mask & ~out, weight=batch.weight.masked_fill(out, 0.0))


def some_rows(batch: Batch, tokens: int, *, seed: Sequence[int]) -> Tensor:
    """Draw rows (R,) at random with at most `tokens` tokens in total, but at least one row."""
    order = torch.from_numpy(np.random.default_rng(list(seed)).permutation(len(batch)))
    count = int((batch.lengths[order].cumsum(0) <= tokens).sum())
    return order[: max(1, count)]


def micro_batches(lengths: Tensor, budget: int, unit: Tensor | None = None) -> list[Tensor]:
    """Split rows of these lengths (B,) into runs of similar length with at most `budget` padded tokens each.

    Return row indices. Rows of one `unit` (B,) share a run; a unit longer than the budget has a run of its own.
    """
    units = torch.arange(len(lengths)) if unit is None else torch.unique(unit, return_inverse=True)[1]
    longest = torch.zeros(int(units.max()) + 1, dtype=lengths.dtype).scatter_reduce(0, units, lengths, "amax")
    rows = torch.bincount(units)
    runs: list[list[int]] = [[]]
    count = width = 0
    for number in torch.argsort(longest, descending=True, stable=True).tolist():
        wide = max(width, int(longest[number]))
        if count and (count + int(rows[number])) * wide > budget:
            runs.append([])
            count, wide = 0, int(longest[number])
        runs[-1].append(number)
        count, width = count + int(rows[number]), wide
    places = torch.split(torch.argsort(units, stable=True), rows.tolist())
    return [torch.cat([places[number] for number in run]) for run in runs]


def with_observations(batch: Batch, weight: float) -> Batch:
    """Return the batch with the tokens outside answers in the loss, at `weight` on average.

    Only every third token is trained, at three times the weight, because logits dominate the cost of a small model; the
    offset differs by row. The first token of a row has no context, and picture tokens are not text.
    """
    observed = batch.attention & (batch.turn < 0)
    if batch.media:
        observed &= ~batch.media.placeholders(batch.ids)
    observed[:, 0] = False
    rows, columns = (torch.arange(size) for size in observed.shape)
    stands: Tensor = (rows[:, None] + columns) % OBSERVATION_STRIDE == 0
    return replace(batch, weight=batch.weight.masked_fill(observed & stands, OBSERVATION_STRIDE * weight))
