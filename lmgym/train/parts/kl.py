"""KL penalty in the reward: credit assignment propagates its cost to earlier tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from lmgym.errors import RecipeError
from lmgym.train.batch import Batch
from lmgym.train.state import Checkpointed

STEP = 0.2  # bound on the relative error when the coefficient is adapted


@dataclass
class RewardKl(Checkpointed):
    """Subtracts `coef` times the log-ratio of policy to reference (k1, no gradient) from the reward of every token.

    With a `target` the coefficient adapts to the measured divergence: each step multiplies it by 1 + error x episodes /
    horizon, with the relative error clipped to [-0.2, 0.2] (Ziegler et al. 2019: 1 + K error, with K = 0.1). The number
    of episodes is capped at the horizon, so the coefficient stays positive.
    """

    STATE = ("coef",)

    coef: float
    target: float | None = None  # nats per episode; None: fixed coefficient
    horizon: int = 10_000  # episodes

    def __post_init__(self) -> None:
        if self.coef <= 0 or (self.target is not None and self.target <= 0) or self.horizon < 1:
            raise RecipeError(f"coefficient, target and horizon of a KL in the reward must be above zero; got {self}")

    def apply(self, batch: Batch) -> tuple[Batch, Mapping[str, float]]:
        """Return the batch with the penalty in its rewards, and figures; then adapt the coefficient."""
        ratio = ((batch.logprobs - batch.reference) * batch.mask).detach()
        episodes = int(batch.episode.max()) + 1
        kl = float(ratio.double().sum()) / episodes
        figures = {"kl_episode": kl, "kl_coef": self.coef}
        penalized = replace(batch, reward=batch.reward - self.coef * ratio)
        if self.target is not None:
            error = min(max(kl / self.target - 1.0, -STEP), STEP)
            self.coef *= 1.0 + error * min(episodes, self.horizon) / self.horizon
        return penalized, figures


def reward_kl(coef: float, *, target: float | None, horizon: int) -> Callable[[], RewardKl] | None:
    """Return a factory of the penalty, None for a coefficient of 0; raise RecipeError for a target without one."""
    if not coef and target is not None:
        raise RecipeError(f"kl_target={target} adapts kl_reward, which is 0: set kl_reward above 0")
    return partial(RewardKl, coef, target=target, horizon=horizon) if coef else None


def kl_estimate(logprobs: Tensor, reference: Tensor) -> float:
    """Return the mean KL(policy || reference) in nats per token from samples (N,), by the low-variance estimator k3."""
    d = (logprobs - reference).double().clamp(-20.0, 20.0)
    return float(((-d).exp() - 1 + d).mean()) if len(d) else 0.0
