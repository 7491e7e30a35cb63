"""Importance weights: correct for a sampler whose precision or kernels differ from the trainer's.

The ratio of a surrogate loss corrects for the updates within a step; these weights correct for the sampler. They carry
no gradient and multiply the advantage of each token, and thereby its loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from lmgym.errors import RecipeError
from lmgym.train.batch import Batch

Mode = Literal["token_cap", "sequence_cap", "token_mask", "sequence_mask", "geometric_mask", "outlier_mask"]
Choice = Literal["none", Mode]
BOUNDS: Mapping[Mode, tuple[float, float]] = {  # published defaults: lower and upper bound
    "token_cap": (0.0, 2.0),
    "sequence_cap": (0.0, 5.0),
    "token_mask": (0.5, 2.0),
    "sequence_mask": (0.0, 3.0),
    "geometric_mask": (0.99, 1.01),
    "outlier_mask": (1e-4, 100.0),
}


@dataclass(frozen=True)
class Importance:
    """Weights of tokens, from w = p_trainer / p_sampler.

    token_cap: min(w, most). sequence_cap: the product of w over the episode, capped at most. token_mask: w within the
    bounds, else 0. sequence_mask: the product within the bounds, else 0. geometric_mask: 1 if the geometric mean over
    the episode is within the bounds, else 0. outlier_mask: 0 for episodes with any w outside the bounds, else 1. A cap
    of 1 only reduces variance: tokens that are sampled too rarely gain no weight.
    """

    mode: Mode
    least: float | None = None  # None: the published default
    most: float | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound."""
        least, most = BOUNDS[self.mode]
        return (least if self.least is None else self.least, most if self.most is None else self.most)

    def __post_init__(self) -> None:
        least, most = self.bounds
        if not 0 <= least < most:
            raise RecipeError(f"bounds of importance weights need 0 <= least < most; got {least} and {most}")

    def __call__(self, batch: Batch, difference: Tensor) -> Tensor:
        """Return weights (B, T) for `difference`, the log-probs of the trainer minus those of the sampler (B, T)."""
        least, most = self.bounds
        logs = (difference * batch.mask).detach()
        w = logs.clamp(-20.0, 20.0).exp()
        episodes = int(batch.episode.max()) + 1
        total = logs.new_zeros(episodes).index_add(0, batch.episode, logs.sum(1))
        match self.mode:
            case "token_cap":
                return w.clamp(max=most)
            case "token_mask":
                return w * ((w > least) & (w < most))
            case "outlier_mask":
                beyond = ((w <= least) | (w >= most)) & batch.mask
                count = logs.new_zeros(episodes).index_add(0, batch.episode, beyond.sum(1).to(logs))
                factor = (count == 0).to(logs)
            case "geometric_mask":
                tokens = logs.new_zeros(episodes).index_add(0, batch.episode, batch.mask.sum(1).to(logs))
                mean = (total / tokens.clamp(min=1)).exp()
                factor = ((mean > least) & (mean < most)).to(logs)
            case _:
                product = total.clamp(-20.0, 20.0).exp()
                within = (product > least) & (product < most)
                factor = product * within if self.mode == "sequence_mask" else product.clamp(max=most)
        return factor[batch.episode][:, None].expand_as(logs)


def importance(mode: Choice, least: float | None = None, most: float | None = None) -> Importance | None:
    """Return the weights of a mode; None for mode none."""
    if mode == "none" and (least, most) != (None, None):
        raise RecipeError("bounds of importance weights need a mode: set importance, such as token_cap")
    return None if mode == "none" else Importance(mode, least, most)


def figures(factor: Tensor, mask: Tensor) -> dict[str, float]:
    """Return statistics of the weights (B, T) on the tokens of `mask`, for the log."""
    weights = factor[mask].double()
    if not len(weights):
        return {}
    effective = weights.sum().square() / weights.square().sum().clamp(min=1e-30)
    return {
        "importance_mean": float(weights.mean()),
        "importance_min": float(weights.min()),
        "importance_max": float(weights.max()),
        "importance_zero": float((weights == 0).double().mean()),
        "importance_effective": float(effective) / len(weights),  # effective sample size, as a share of the tokens
    }
