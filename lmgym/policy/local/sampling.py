"""Sampling of tokens from logits: temperature, top-k, top-p, and a draw by inverse CDF with its exact log-prob."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lmgym.errors import PolicyError

Adjust = Callable[[Tensor, Tensor], Tensor]  # (hidden (R, H), logits (R, V)) -> logits (R, V)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Settings of sampling."""

    temperature: float = 1.0  # 0 is greedy
    top_p: float = 1.0  # 1 is off
    top_k: int = 0  # 0 is off
    max_tokens: int = 32  # of one answer, unless the conversation sets it
    stop: tuple[str, ...] = ()  # an answer ends with the first of these, which is part of it
    seed: int = 0  # of the run

    def __post_init__(self) -> None:
        if self.temperature < 0 or not 0 < self.top_p <= 1 or self.top_k < 0 or self.max_tokens < 1:
            raise PolicyError(
                f"sampling needs temperature >= 0, 0 < top_p <= 1, top_k >= 0 and max_tokens >= 1; got {self}"
            )
        if "" in self.stop:
            raise PolicyError(f"an empty stop string ends every answer at once; leave it out of stop={self.stop}")


def draw(logits: Tensor, noise: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor, Tensor]:
    """Draw a token a row from `logits` (R, V) by `noise` (R,) in [0, 1): ids, log-probs and entropies (nats), (R,).

    Log-probs and entropies are those of the sampled distribution: after temperature, top-k and top-p.
    """
    logits = logits.float()
    if sampling.temperature == 0:
        zero = torch.zeros_like(noise)
        return logits.argmax(-1), zero, zero.clone()
    logp = torch.log_softmax(truncate(logits / sampling.temperature, sampling), dim=-1)
    probs = logp.exp()
    total = probs.cumsum(-1)
    last = total[:, -1]
    target = torch.minimum(noise * last, torch.nextafter(last, torch.zeros_like(last)))  # below the last sum
    ids = torch.searchsorted(total, target[:, None], right=True)[:, 0]  # never a token of probability 0
    entropy = -(probs * logp.nan_to_num(neginf=0.0)).sum(-1)
    return ids, logp.gather(-1, ids[:, None])[:, 0], entropy


def truncate(logits: Tensor, sampling: Sampling) -> Tensor:
    """Set the logits (R, V) that top-k and top-p exclude to minus infinity."""
    if 0 < sampling.top_k < logits.shape[-1]:
        least = logits.topk(sampling.top_k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < least, float("-inf"))
    if sampling.top_p < 1:
        ordered, order = logits.sort(dim=-1, descending=True, stable=True)
        probs = ordered.softmax(-1)
        out = probs.cumsum(-1) - probs >= sampling.top_p  # the mass before a token already suffices
        logits = logits.masked_fill(torch.zeros_like(out).scatter(-1, order, out), float("-inf"))
    return logits
