"""MUA-RL: an agent with tools learns while a simulated user, who tells what it is asked for, sits in the loop.

    lmgym train mua_rl retail_desk
    lmgym train mua_rl retail_desk --user http://localhost:8000/v1#qwen3

Zhao et al. 2025, MUA-RL: Multi-turn User-interacting Agent Reinforcement Learning for agentic tool use. A group of n
dialogues is compared by the outcome alone, 1 if the database ends as it should and the user was told what it asked for:

    A_i = (r_i - mean r) / std r,        loss: the clipped surrogate + beta KL(pi || pi_start), k3,

on the agent's words and calls; the user's words and results of tools are never trained.

Deviations: imitation of the task's demonstrator stands for the synthesised dialogues of the cold start; the user is the
task's script unless `user` names a model. `request="upfront"` is the ablation: in training the first message of the
user tells everything, in evaluations the agent has to ask. Parts reused: GRPO; seats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import SMALL_START, SMALL_STEPS, Direction, arm
from lmgym.train.math import Penalty
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import NonNegative
from lmgym.train.recipe import Recipe
from lmgym.train.seats import Seat

EXPERIMENT = Direction(
    name="mua_rl",
    claim="a user in the loop teaches to ask, which requests told in full do not",
    task="retail_desk",
    options=("level=1", "small=true"),
    arms=(
        arm("user in the loop", "mua_rl", *SMALL_STEPS),
        arm("request in full", "mua_rl", "--request", "upfront", *SMALL_STEPS),
    ),
    start=(*SMALL_START, "--minibatches", "8"),
    warmup=160,
    tokens=100_000,
    episodes=100,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of MUA-RL, and those of GRPO."""

    user: str = "scripted"  # the task's own, start (the policy as RL begins) or a policy, such as http://HOST/v1#MODEL
    request: Literal["asked", "upfront"] = "asked"  # details in training: when asked for, or with the first message
    budget: int | None = 30  # maximum number of turns in training; evaluations keep the task's own limit
    kl: NonNegative = 0.001  # weight of the divergence from the start policy of RL (--lora: from the base)
    kl_kind: Penalty = "k3"


def recipe(args: Args) -> Recipe:
    """Return GRPO with a user who is not trained."""
    options = {"upfront": True} if args.request == "upfront" else {}
    return replace(
        grpo.recipe(args),
        tasks=Uniform(args.instances, tries=args.group, budget=args.budget, options=options),
        seats={"user": Seat(player=args.user, trained=False)},
    )
