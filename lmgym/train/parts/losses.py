"""Loss terms of log-probabilities and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from lmgym.train.batch import Batch
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.math import Penalty, clipped, divergence, ratio
from lmgym.train.parts.credit import Level, valued_tokens
from lmgym.train.parts.turns import Turns
from lmgym.train.state import Checkpointed

# tokens that share a ratio; geometric: mean over the sequence (GSPO)
Unit = Literal["token", "turn", "sequence", "geometric"]


def nll(scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return the negative log-likelihood of each token in nats; (B, T)."""
    return -scored.logprobs, {}


def kl_to_start(
    scored: ScoredBatch, *, kind: Penalty, on: Callable[[Batch], Tensor] | None = None
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return the divergence from the start policy at each token, and 0 where `on` (B, T) is False; (B, T)."""
    distance = divergence(scored.logprobs, scored.batch.reference, kind)
    return (distance if on is None else distance * on(scored.batch)), {}


def entropy_bonus(scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return the negative entropy; (B, T)."""
    return -scored.entropy, {}


def reinforce(scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return -advantage x log-probability, whose gradient is the policy gradient for any old policy; (B, T)."""
    return -scored.batch.advantage * scored.logprobs, {}


def surrogate(
    scored: ScoredBatch, *, low: float, high: float, dual: float | None = None
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return PPO's clipped loss of each token against the sampling policy; (B, T)."""
    advantage = scored.batch.advantage
    rho = ratio(scored.logprobs, scored.batch.logprobs)
    term = clipped(rho, advantage, low=low, high=high, dual=dual)
    return -term, {"clipped": (term != rho * advantage).float()}


def open_surrogate(scored: ScoredBatch, *, low: float, high: float) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return PPO's clipped loss, with a gradient where it is clipped from above; (B, T).

    With A > 0 and a ratio r above 1 + high, the surrogate (1 + high) A r / sg(r) has the clipped value and the gradient
    (1 + high) A grad log pi (Dong et al. 2025, AEPO).
    """
    advantage, rho = scored.batch.advantage, ratio(scored.logprobs, scored.batch.logprobs)
    above = (advantage > 0) & (rho > 1.0 + high)
    term = clipped(rho, advantage, low=low, high=high)
    kept = (1.0 + high) * advantage * rho / rho.detach()
    return -torch.where(above, kept, term), {"clipped_above": above.float()}


def unit_surrogate(
    scored: ScoredBatch, *, unit: Unit, low: float, high: float, dual: float | None = None
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return PPO's clipped loss with one ratio for all tokens of a turn or a sequence; (B, T).

    The loss of a unit is spread evenly over its tokens, so that their sum counts it once. All tokens of a unit must
    have the same advantage. If episodes can have several rows, a sequence needs them `together`.
    """
    batch = scored.batch
    difference = (scored.logprobs - batch.logprobs) * batch.mask
    key = _units(batch, unit)
    tokens = torch.bincount(key[batch.mask], minlength=int(key.max()) + 1).clamp(min=1)
    total = difference.new_zeros(len(tokens)).index_add(0, key.flatten(), difference.flatten())
    rho = ratio(total / tokens if unit == "geometric" else total, torch.zeros_like(total))[key]
    term = clipped(rho, batch.advantage, low=low, high=high, dual=dual)
    return -term / tokens[key], {"clipped": (term != rho * batch.advantage).float()}


def _units(batch: Batch, unit: Unit) -> Tensor:
    """Return the number of the unit that each token belongs to; (B, T)."""
    if unit == "token":
        return torch.arange(batch.mask.numel(), device=batch.mask.device).view(batch.mask.shape)
    if unit == "turn":
        return batch.episode[:, None] * (int(batch.turn.max()) + 2) + batch.turn + 1
    return batch.episode[:, None].expand_as(batch.turn)


def value_loss(
    scored: ScoredBatch, *, clip: float | None, level: Level = "token"
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return half the squared error of the values against `batch.target`, on the tokens of `valued_tokens`; (B, T).

    `clip` is PPO's value clipping: moving further than `clip` from the old value does not reduce the loss.
    """
    batch, value = scored.batch, scored.value
    assert value is not None, "a value loss without values"
    error = (value - batch.target).square()
    near = batch.value + (value - batch.value).clamp(-clip, clip) if clip is not None else value
    bounded = (near - batch.target).square()
    loss = torch.maximum(error, bounded) / 2
    return loss * valued_tokens(batch, level), {"value_clipped": (bounded > error).float()}


@dataclass
class EntropyWindow(Checkpointed):
    """The distance of each turn's entropy to a window around the mean that turn had so far (EPO: Xu et al. 2025).

    H is the mean entropy of a turn's tokens in one episode, Hist(h) the mean over all updates of that of turn number h:
    max(0, H - high Hist(h)) + max(0, low Hist(h) - H) on every token of the turn. A turn without a history, or before
    number `first`, has 0.
    """

    STATE = ("history",)

    low: float
    high: float
    first: int = 0
    history: dict[int, tuple[float, int]] = field(default_factory=dict)  # by turn: sum of means, updates

    def __call__(self, scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the distance on every token; (B, T)."""
        turns = Turns(scored.batch)
        own = turns.mean(scored.entropy)
        pairs = [self.history.get(number, (torch.nan, 1)) for number in turns.number.tolist()]
        usual = own.new_tensor([total / count for total, count in pairs])
        distance = torch.relu(own - self.high * usual) + torch.relu(self.low * usual - own)
        return turns.spread(torch.where(usual.isnan() | (turns.number < self.first), 0.0, distance)), {}

    def update(self, batch: Batch) -> None:
        """Add the mean entropy of each turn, as it was sampled."""
        turns = Turns(batch)
        means = turns.mean(batch.entropy)
        for number in turns.number.unique().tolist():
            total, count = self.history.get(number, (0.0, 0))
            self.history[number] = (total + float(means[turns.number == number].mean()), count + 1)
