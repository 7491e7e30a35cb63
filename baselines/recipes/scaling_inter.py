"""ScalingInter-RL: the number of turns that training allows grows in steps.

    lmgym train scaling_inter alfworld
    lmgym train scaling_inter textworld --limits 4,8,12

Xi et al. 2025, AgentGym-RL. Update k plays episodes of at most h(k) turns, where h takes the next of the `limits` after
every `every` updates. The surrogate, with a small divergence from the start policy, is that of GRPO.

Deviations: the paper changes the limit every 100 updates, of hundreds; here a third of the default 60 steps. Its score
of an episode is the last reward; here it is the sum, as in GRPO.
Parts reused: GRPO; tasks with a growing turn limit (`Ramp`). An evaluation keeps the task's own limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.errors import RecipeError
from lmgym.train.parts.tasks import Ramp
from lmgym.train.ranges import NonNegative, PositiveInt, numbers
from lmgym.train.recipe import Recipe

EXPERIMENT = Direction(
    name="scaling_inter",
    claim="a turn limit that grows beats a long one from the start",
    task="alfworld",
    arms=(arm("scaling_inter", "scaling_inter", "--every", "4"), arm("long", "scaling_inter", "--limits", "20")),
    warmup=150,
    tokens=60_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of ScalingInter-RL, and those of GRPO."""

    limits: str = "6,13,20"  # maximum number of turns in training, one after another
    every: PositiveInt = 20  # steps with the same limit
    budget: int | None = None  # set by `limits`
    kl: NonNegative = 0.001  # weight of the divergence from the start policy of RL (--lora: from the base)


def recipe(args: Args) -> Recipe:
    """Return GRPO on episodes that may grow longer."""
    if args.budget is not None:
        raise RecipeError(f"the turn limits of this recipe are --limits; got budget={args.budget} as well")
    limits = numbers("limits", args.limits, int)
    plain = grpo.recipe(args)
    return replace(
        plain, tasks=Ramp(plain.tasks, [(number * args.every, turns) for number, turns in enumerate(limits)])
    )
