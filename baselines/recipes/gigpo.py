"""GiGPO: GRPO, and a second advantage among the answers that a group gave in the same state.

    lmgym train gigpo alfworld
    lmgym train gigpo webshop

Feng et al. 2025, Group-in-group policy optimization. With A_E an episode's advantage over its group, and A_S an
answer's reward to go over the mean of those answers of the group that met the same observation,

    A = A_E + w A_S, with w = 1.

Deviations: the reward to go is not discounted (the paper: 0.95 a turn); a state is the tokens since the last answer.
A_S has the scale of A_E: the group's deviation of returns, not that of each state; 1 where returns are equal.
Parts reused: GRPO with all its options, of which this recipe sets w, beta and the cost of invalid actions as the paper
does on ALFWorld.
"""

from __future__ import annotations

from dataclasses import dataclass

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.train.ranges import NonNegative
from lmgym.train.recipe import Recipe

EXPERIMENT = Direction(
    name="gigpo",
    claim="comparing answers in the same state as well beats GRPO",
    task="alfworld",
    arms=(arm("gigpo", "gigpo"), arm("grpo", "gigpo", "--state-advantage-weight", "0")),
    warmup=150,
    tokens=60_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of GRPO, with the defaults of GiGPO."""

    state_advantage_weight: NonNegative = 1.0  # weight of the advantage within the same state
    invalid_cost: NonNegative = 0.1  # penalty in the reward of an invalid action
    kl: NonNegative = 0.01  # weight of the divergence from the start policy of RL (--lora: from the base)
    drop_flat: bool = False  # groups with equal returns can still differ within a state


def recipe(args: Args) -> Recipe:
    """Return GRPO with these defaults."""
    return grpo.recipe(args)
