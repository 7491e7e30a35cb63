"""Loss terms of log-probabilities and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from lmgym.train.batch import Batch
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.math import Penalty, clipped, divergence, ratio
from lmgym.train.parts.credit import Level, judged

Unit = Literal["token", "turn", "sequence", "geometric"]  # of a ratio; geometric: the mean over the sequence (GSPO)


def nll(scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Negative log-likelihood of each token, in nats; (B, T)."""
    return -scored.logprobs, {}


def kl_to_start(scored: ScoredBatch, *, kind: Penalty) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Divergence from the start policy, token by token; (B, T)."""
    return divergence(scored.logprobs, scored.batch.reference, kind), {}


def entropy_bonus(scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Minus the entropy, to be minimised; (B, T)."""
    return -scored.entropy, {}


def reinforce(scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Log-likelihood times advantage: its gradient is the policy gradient, whoever the old policy was; (B, T)."""
    return -scored.batch.advantage * scored.logprobs, {}


def surrogate(
    scored: ScoredBatch, *, low: float, high: float, dual: float | None = None
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """PPO's clipped loss of each token against the policy that spoke; (B, T)."""
    advantage = scored.batch.advantage
    rho = ratio(scored.logprobs, scored.batch.logprobs)
    term = clipped(rho, advantage, low=low, high=high, dual=dual)
    return -term, {"clipped": (term != rho * advantage).float()}


def unit_surrogate(
    scored: ScoredBatch, *, unit: Unit, low: float, high: float, dual: float | None = None
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """PPO's clipped loss with one ratio for all tokens of a turn or a sequence, which share its loss evenly; (B, T).

    A turn's or a sequence's tokens must have one advantage. Summed over tokens the loss of a unit counts once. Where
    episodes may have several rows, a sequence needs them `together`.
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
    """Number of the unit that each token is part of; (B, T)."""
    if unit == "token":
        return torch.arange(batch.mask.numel(), device=batch.mask.device).view(batch.mask.shape)
    if unit == "turn":
        return batch.episode[:, None] * (int(batch.turn.max()) + 2) + batch.turn + 1
    return batch.episode[:, None].expand_as(batch.turn)


def value_loss(
    scored: ScoredBatch, *, clip: float | None, level: Level = "token"
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Half the squared error of values against `batch.target`, where a state is judged; (B, T).

    With `clip` a value is no better for being further than that from what it was.
    """
    batch, value = scored.batch, scored.value
    assert value is not None, "a value loss without values"
    error = (value - batch.target).square()
    near = batch.value + (value - batch.value).clamp(-clip, clip) if clip is not None else value
    bounded = (near - batch.target).square()
    loss = torch.maximum(error, bounded) / 2
    return loss * judged(batch, level), {"value_clipped": (bounded > error).float()}
