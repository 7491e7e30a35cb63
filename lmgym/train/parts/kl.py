"""Divergence from the start policy in the reward: what it costs flows through credit to earlier tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from lmgym.errors import RecipeError
from lmgym.train.batch import Batch

STEP = 0.2  # most by which the relative error counts when the coefficient is adapted


@dataclass
class RewardKl:
    """Takes `coef` times the log-ratio of policy to reference (k1, without gradient) from every token's reward.

    With a `target` the coefficient follows the divergence that is seen: a step multiplies it by 1 + error x episodes /
    horizon, where the relative error is kept within 0.2 either way (Ziegler et al. 2019: 1 + K error, with K = 0.1). A
    step of more episodes than the horizon counts as one of so many, and the coefficient stays above zero.
    """

    coef: float
    target: float | None = None  # nats an episode; None: the coefficient is fixed
    horizon: int = 10_000  # episodes

    def __post_init__(self) -> None:
        if self.coef <= 0 or (self.target is not None and self.target <= 0) or self.horizon < 1:
            raise RecipeError(f"coefficient, target and horizon of a KL in the reward are above zero; got {self}")

    def apply(self, batch: Batch) -> tuple[Batch, Mapping[str, float]]:
        """The batch with lower rewards, and figures; then adapt the coefficient."""
        ratio = ((batch.logprobs - batch.reference) * batch.mask).detach()
        episodes = int(batch.episode.max()) + 1
        kl = float(ratio.double().sum()) / episodes
        figures = {"kl_episode": kl, "kl_coef": self.coef}
        penalized = replace(batch, reward=batch.reward - self.coef * ratio)
        if self.target is not None:
            error = min(max(kl / self.target - 1.0, -STEP), STEP)
            self.coef *= 1.0 + error * min(episodes, self.horizon) / self.horizon
        return penalized, figures

    def state_dict(self) -> dict[str, Any]:
        """The coefficient, for a checkpoint."""
        return {"coef": self.coef}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.coef = state["coef"]


def reward_kl(coef: float, *, target: float | None, horizon: int) -> Callable[[], RewardKl] | None:
    """What makes the charge; None for a coefficient of 0. Raises RecipeError for a target that nothing would follow."""
    if not coef and target is not None:
        raise RecipeError(f"kl_target={target} is what kl_reward follows, and that is 0: set kl_reward above 0")
    return partial(RewardKl, coef, target=target, horizon=horizon) if coef else None


def kl_estimate(logprobs: Tensor, reference: Tensor) -> float:
    """Mean KL(policy || reference) of a token in nats, from samples (N,), by the estimator of least variance (k3)."""
    d = (logprobs - reference).double().clamp(-20.0, 20.0)
    return float(((-d).exp() - 1 + d).mean()) if len(d) else 0.0
