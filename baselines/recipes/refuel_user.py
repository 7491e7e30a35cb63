"""REFUEL with a simulated user: both answers of a pair are followed by dialogues with the user, to their ends.

    lmgym train refuel_user negotiate
    lmgym train refuel_user retail_desk --seat user --user http://localhost:8000/v1#qwen3

Gao et al. 2024, Regressing the Relative Future: Efficient Policy Optimization for Multi-turn RLHF. A dialogue is
rewound to one of the policy's turns h, drawn uniformly, and continued with another answer and a user who answers anew;

    log [pi(y|s_h) / pi_t(y|s_h)] - log [pi(y'|s_h) / pi_t(y'|s_h)]   is fitted to   eta (R - R'),

the difference of the rewards at the ends of both. The policy is trained on prefixes that it has played itself.

Deviations: the reward is the task's, not a reward model's; R - R' is divided by its standard deviation over the step
(`--scale none`: the paper); the user is the task's script unless `user` names a model.
Parts reused: REFUEL; seats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lmgym.baselines import refuel
from lmgym.baselines.curves.directions import SMALL_START, Direction, arm
from lmgym.train.recipe import Recipe
from lmgym.train.seats import Seat

EXPERIMENT = Direction(
    name="refuel_user",
    claim="rewinding a dialogue to any of its turns beats rewinding it to the last",
    task="negotiate",
    arms=(
        arm("any turn", "refuel_user", "--pairs", "64"),
        arm("last turn", "refuel_user", "--pairs", "64", "--rewind", "last"),
    ),
    start=SMALL_START,
    warmup=24,
    tokens=600_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(refuel.Paired):
    """Options of REFUEL with a user, and those of REFUEL."""

    seat: str = "partner"  # name of the user's seat
    user: str = "scripted"  # the task's own, start (the policy as RL begins) or a policy, such as http://HOST/v1#MODEL


def recipe(args: Args) -> Recipe:
    """Return REFUEL with a user who is not trained."""
    return replace(refuel.recipe(args), seats={args.seat: Seat(player=args.user, trained=False)})
