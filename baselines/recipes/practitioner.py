"""Practitioner's guide: PPO, RLOO or GRPO under one set of options, for sweeps over tasks, rewards and imitation.

    lmgym train practitioner textworld --estimator rloo --option rewards=dense --option rooms=4 --option quest=8

Wang and Ammanabrolu 2025, A Practitioner's Guide to Multi-turn Agentic Reinforcement Learning. Nothing is new in the
update: token-level GAE with gamma = lambda = 1 and a KL to the start policy in the reward for PPO, leave-one-out and
group-normalised returns for RLOO and GRPO. What is varied is the size of the world (`rooms`, `objects`), the length of
the quest (`quest`), dense against sparse rewards (`rewards`), and how much of a budget goes to imitation (`warmup`).

Deviations: all three see the same number of episodes per step; GRPO has its KL in the loss, as in its paper.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from lmgym.baselines import bc, grpo, ppo, rloo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.train.ranges import Count, NonNegative, Positive, PositiveInt, Rate
from lmgym.train.recipe import Recipe

DENSE, SPARSE, LARGE = ("rewards=dense",), ("rewards=sparse",), ("rooms=4", "objects=6", "quest=8", "rewards=dense")
FEW = ("--instances", "4")  # a step, so that the budget holds twenty, five of which fit PPO's critic alone
EXPERIMENT = Direction(
    name="practitioner",
    claim="PPO learns more from dense than from sparse rewards (also RLOO, GRPO, more imitation and a larger world)",
    task="textworld",
    arms=(
        arm("ppo, dense", "practitioner", *FEW, options=DENSE),
        arm("ppo, sparse", "practitioner", *FEW, options=SPARSE),
        *(arm(f"{name}, dense", "practitioner", *FEW, "--estimator", name, options=DENSE) for name in ("rloo", "grpo")),
        arm("ppo, dense, half imitation", "practitioner", *FEW, "--warmup", "6", options=DENSE),
        arm("ppo, dense, larger world", "practitioner", *FEW, options=LARGE),
    ),
    common=("--train-instances", "1500"),  # games are slow to make, and 200 are soon known by heart
    warmup=60,
    tokens=40_000,
    episodes=100,
)


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """Options of the guide, the same for the three algorithms."""

    estimator: Literal["ppo", "rloo", "grpo"] = "ppo"  # the algorithm that updates the policy
    steps: Count | None = 60
    instances: PositiveInt = 16  # per step
    group: PositiveInt = 8  # attempts per instance; PPO plays `instances` x `group` instances, once each
    budget: int | None = None  # maximum number of turns in training; None: the task's own
    temperature: Positive = 0.7  # of training and evaluation
    kl: NonNegative = 0.01  # weight of the divergence from the start policy
    lr: Rate = 3e-4


def recipe(args: Args) -> Recipe:
    """Return imitation and the chosen algorithm, with the same evaluation before and after."""
    kl_in_reward = {"kl_reward": args.kl, "kl": 0.0}
    critic = {"critic": "head", "critic_steps": 5, "critic_lr": 1e-3, "value_clip": 0.0, "whiten_floor": 0.1}
    ppo_own = {"instances": args.instances * args.group, "gamma": 1.0, "lam": 1.0, "limit_ends": True}
    own: dict[str, dict[str, Any]] = {
        "ppo": {**ppo_own, **critic, **kl_in_reward},
        "rloo": {"minibatches": 1, **kl_in_reward},
        "grpo": {},
    }
    module: Any = {"ppo": ppo, "rloo": rloo, "grpo": grpo}[args.estimator]
    common = {one.name: getattr(args, one.name) for one in fields(module.Args) if hasattr(args, one.name)}
    plain: Recipe = module.recipe(module.Args(**{**common, **own[args.estimator]}))
    return replace(plain, temperature=args.temperature)
