"""Arithmetic shared by algorithms: aggregation, clipped surrogate, divergences, group statistics.

Plain functions of tensors, independent of models and episodes; tested against hand-worked numbers and enumeration.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Aggregation = Literal["token_mean", "seq_mean", "seq_sum", "const_norm"]
Penalty = Literal["k2", "k3"]  # estimators for losses; k1 is for rewards only
Divergence = Literal["k1"] | Penalty


def aggregation(mask: Tensor, sequence: Tensor, kind: Aggregation, *, longest: int = 1) -> Tensor:
    """Return the factor of each row's token losses whose weighted sum is the loss of the step; (B, 1) float64.

    `mask` (B, T) selects tokens; rows with the same `sequence` (B,) are one sequence. token_mean: mean over tokens.
    seq_mean: mean over sequences of token means. seq_sum: mean over sequences of token sums (the policy gradient).
    const_norm: the same divided by `longest` tokens (Dr. GRPO).
    """
    _, row = torch.unique(sequence, return_inverse=True)
    tokens = torch.zeros(int(row.max()) + 1, dtype=torch.float64, device=mask.device)
    tokens.index_add_(0, row, mask.sum(1).double())
    sequences = (tokens > 0).sum().clamp(min=1)
    match kind:
        case "token_mean":
            factor = 1 / tokens.sum().clamp(min=1).expand(len(mask))
        case "seq_mean":
            factor = 1 / (tokens.clamp(min=1) * sequences)[row]
        case "seq_sum":
            factor = 1 / sequences.double().expand(len(mask))
        case "const_norm":
            factor = 1 / (sequences.double() * longest).expand(len(mask))
    return factor[:, None]


def ratio(logprobs: Tensor, old: Tensor) -> Tensor:
    """Return the probability ratio of new to old, clamped to [exp(-20), exp(20)]; any shape."""
    return (logprobs - old).clamp(-20.0, 20.0).exp()


def clipped(rho: Tensor, advantage: Tensor, *, low: float, high: float, dual: float | None = None) -> Tensor:
    """Return PPO's clipped surrogate (to be maximised), with floor `dual * advantage` for negative advantages."""
    term = torch.minimum(rho * advantage, rho.clamp(1.0 - low, 1.0 + high) * advantage)
    if dual is None:
        return term
    return torch.where(advantage < 0, torch.maximum(term, dual * advantage), term)


def divergence(logprobs: Tensor, reference: Tensor, kind: Divergence) -> Tensor:
    """Return per-token estimates of KL(policy || reference) from samples of the policy; any shape.

    As a loss k1 has no gradient in expectation, k2 the gradient of KL(policy || reference), k3 that of
    KL(reference || policy).
    """
    d = logprobs - reference
    match kind:
        case "k1":
            return d
        case "k2":
            return d.square() / 2
        case "k3":
            return (-d).exp() - 1 + d


def less_the_other(values: Tensor, pair: Tensor) -> Tensor:
    """Return each row's value minus that of the other row of its pair; all (B,)."""
    _, number = torch.unique(pair, return_inverse=True)
    total = values.new_zeros(int(number.max()) + 1).index_add(0, number, values)
    return 2 * values - total[number]


def group_normal(returns: Tensor, group: Tensor, *, std: bool, epsilon: float = 1e-6) -> Tensor:
    """Return each return minus its group's mean, divided by the group's sample deviation if `std`; all (E,).

    Groups without variance get zeros.
    """
    _, member = torch.unique(group, return_inverse=True)
    groups = int(member.max()) + 1
    least = returns.new_full((groups,), torch.inf).scatter_reduce(0, member, returns, "amin")
    above = returns - least[member]  # so that equal returns give exactly zero
    size = returns.new_zeros(groups).index_add(0, member, torch.ones_like(returns))
    mean = returns.new_zeros(groups).index_add(0, member, above) / size
    centred = above - mean[member]
    if not std:
        return centred
    variance = returns.new_zeros(groups).index_add(0, member, centred.square()) / (size - 1).clamp(min=1)
    return centred / (variance.sqrt()[member] + epsilon)
