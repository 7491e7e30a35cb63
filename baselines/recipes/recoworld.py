"""RecoWorld: a recommender learns to keep a user whose tastes drift, who tires, asks for other things and may leave.

    lmgym train recoworld recommender
    lmgym train recoworld recommender --user http://localhost:8000/v1#qwen3

Liu et al. 2025, RecoWorld: Building Simulated Environments for Agentic Recommender Systems. A session is an episode of
rounds: the agent shows a slate, the user clicks, leaves with a chance that grows as the mood falls, or says what would
be better. The return is the retention of the session,

    R = sum over rounds h of 1[the user is still there after round h],

and the instruction is part of the next observation. Sessions with one user are compared by GRPO.

Deviations: the paper is a blueprint without algorithm, data or results, so GRPO and all numbers are ours; the user is
the task's script unless `user` names a model. `paid="clicks"` is the ablation: in training a round pays the share of
the slate that was clicked, as a recommender without sessions would learn it; evaluations keep the task's own reward.
Parts reused: GRPO; seats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import SMALL_START, SMALL_STEPS, Direction, arm
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.seats import Seat

EXPERIMENT = Direction(
    name="recoworld",
    claim="RL on the length of the session keeps more users to the end than RL on immediate clicks",
    task="recommender",
    options=("shuffled=false",),
    arms=(
        arm("session", "recoworld", *SMALL_STEPS),
        arm("clicks", "recoworld", "--paid", "clicks", *SMALL_STEPS),
    ),
    start=SMALL_START,
    warmup=120,
    tokens=50_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of RecoWorld, and those of GRPO."""

    user: str = "scripted"  # the task's own, start (the policy as RL begins) or a policy, such as http://HOST/v1#MODEL
    paid: Literal["session", "clicks"] = "session"  # what a round pays in training: that the user stays, or clicks


def recipe(args: Args) -> Recipe:
    """Return GRPO on sessions with a user who is not trained."""
    options = {"rewards": "clicks"} if args.paid == "clicks" else {}
    return replace(
        grpo.recipe(args),
        tasks=Uniform(args.instances, tries=args.group, budget=args.budget, options=options),
        seats={"user": Seat(player=args.user, trained=False)},
    )
