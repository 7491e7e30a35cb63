"""Loss terms that need nothing but log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from lmgym.train.math import Divergence, divergence
from lmgym.train.recipe import Scored


def nll(scored: Scored) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Negative log-likelihood of each token, in nats; (B, T)."""
    return -scored.logprobs, {}


def kl_to_start(scored: Scored, *, kind: Divergence) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Divergence from the start policy, token by token; (B, T)."""
    return divergence(scored.logprobs, scored.batch.reference, kind), {}


def entropy_bonus(scored: Scored) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Minus the entropy, to be minimised; (B, T)."""
    return -scored.entropy, {}
