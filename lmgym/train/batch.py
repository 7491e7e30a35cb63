"""A Batch: what one update trains on, as tensors; and the invariants that every batch is held to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from lmgym.policy.models.vision import Media

OBSERVATION_STRIDE = 3  # one of so many observation tokens is trained


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows are segments, right-padded. A token's entries stand at its own position, never at that of its logits."""

    ids: Tensor  # (B, T) int64, padded with 0
    attention: Tensor  # (B, T) bool: a real token
    mask: Tensor  # (B, T) bool: an answer's token that is trained; what losses are averaged over
    turn: Tensor  # (B, T) int64: of the episode; -1 where the token is no answer's
    invalid: Tensor  # (B, T) bool: of an answer that the environment did not understand
    logprobs: Tensor  # (B, T) of the policy that spoke, or as scored again by the trainer; 0 off answers
    entropy: Tensor  # (B, T) nats; 0 off answers
    reward: Tensor  # (B, T) of a turn, on its last trained token
    value: Tensor  # (B, T) of the state before the token, where there is a critic
    quality: Tensor  # (B, T) of the turn that the token is part of (Q), where the critic knows it
    cut: Tensor  # (B,) bool: the row ends where its episode was cut, after the last observation if that is there
    target: Tensor  # (B, T) what `value` is trained towards, where there is a critic
    boot: Tensor  # (B,) value of the state after the row's last token, where the episode was cut there
    advantage: Tensor  # (B, T)
    weight: Tensor  # (B, T) factor of the token's loss; 0 is not trained
    reference: Tensor  # (B, T) log-probs under the start policy, or the base below adapters, where a loss wants them
    episode: Tensor  # (B,) number of the episode within the batch
    segment: Tensor  # (B,) number of the segment within its episode
    group: Tensor  # (B,)
    seat: Tensor  # (B,)
    parent: Tensor  # (B,) number of the episode that this one was forked from; -1 where that is not in the batch
    forked: Tensor  # (B,) turns that are the parent's
    version: Tensor  # (B,) of the weights that spoke, the oldest of the row
    media: Media | None = None  # the pictures of the rows, where there are any

    def __len__(self) -> int:
        """Rows."""
        return len(self.ids)

    def rows(self, index: Tensor) -> Batch:
        """The rows `index` (R,), without the columns that are padding in all of them."""
        longest = int(self.attention[index].sum(1).max())
        parts = {n: x[index, :longest] if x.ndim == 2 else x[index] for n, x in self.tensors().items()}
        return Batch(**parts, media=None if self.media is None else self.media.select(index.tolist()))

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on `device`."""
        return Batch(**{name: part.to(device) for name, part in self.tensors().items()}, media=self.media)

    def tensors(self) -> dict[str, Tensor]:
        """All of it but the pictures, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "media"}

    @property
    def lengths(self) -> Tensor:
        """Real tokens of each row; (B,)."""
        return self.attention.sum(1)

    def returns(self) -> Tensor:
        """Undiscounted return of each episode, over all its rows; (E,) in the order of episode numbers."""
        total = torch.zeros(int(self.episode.max()) + 1, dtype=torch.float64, device=self.reward.device)
        return total.index_add_(0, self.episode, self.reward.double().sum(1))

    def first_rows(self) -> Tensor:
        """Index of a row of each episode, in the order of episode numbers; (E,)."""
        rows = torch.full((int(self.episode.max()) + 1,), -1, dtype=torch.long, device=self.episode.device)
        rows[self.episode.flip(0)] = torch.arange(len(self) - 1, -1, -1, device=self.episode.device)
        return rows

    def groups(self) -> Tensor:
        """Number of the (group, seat) of each episode, within which statistics are kept; (E,)."""
        first = self.first_rows()
        return self.group[first] * (int(self.seat.max()) + 1) + self.seat[first]


def masked(batch: Batch, out: Tensor) -> Batch:
    """The batch with the tokens `out` (B, T) taken from the loss; statistics and rewards stay."""
    return replace(batch, mask=batch.mask & ~out, weight=batch.weight.masked_fill(out, 0.0))


def some_rows(batch: Batch, tokens: int, *, seed: Sequence[int]) -> Tensor:
    """Rows (R,) drawn at random, one or more, of `tokens` in all at most."""
    order = torch.from_numpy(np.random.default_rng(list(seed)).permutation(len(batch)))
    count = int((batch.lengths[order].cumsum(0) <= tokens).sum())
    return order[: max(1, count)]


def micro_batches(lengths: Tensor, budget: int, unit: Tensor | None = None) -> list[Tensor]:
    """Cut rows of these lengths (B,) into runs of similar length whose padded size is at most `budget` tokens.

    Returns row indices. Rows of one `unit` (B,) come in the same run, a unit longer than the budget in one of its own.
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

    Every third of them stands for its neighbours, another one in every row, since logits dominate the cost of a small
    model. The first token of a row has no context, and tokens of pictures are not text.
    """
    observed = batch.attention & (batch.turn < 0)
    if batch.media:
        observed &= ~batch.media.placeholders(batch.ids)
    observed[:, 0] = False
    rows, columns = (torch.arange(size) for size in observed.shape)
    stands: Tensor = (rows[:, None] + columns) % OBSERVATION_STRIDE == 0
    return replace(batch, weight=batch.weight.masked_fill(observed & stands, OBSERVATION_STRIDE * weight))
