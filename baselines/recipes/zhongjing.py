"""Zhongjing: imitation, a reward model of ranked answers, and PPO on its score, answer by answer.

    lmgym train zhongjing doctor

Yang et al. 2023, Zhongjing: Enhancing the Chinese Medical Capabilities of Large Language Model through Expert Feedback
and Real-world Multi-turn Dialogue. After imitation of dialogues, a copy of the policy with a linear head learns from
answers to the same history that were ranked,

    -log sigmoid(r(x, y_w) - r(x, y_l)),

and PPO maximises r(x, y) - b KL for each answer y on its own, given the history x: the score stands on the last token,
the penalty on every token, and no credit passes from one answer to the next (gamma between turns is 0).

Deviations: answers are ranked by what the task pays for them at once instead of by doctors, two to a history instead of
four; there is no further pre-training, and all weights are trained instead of adapters (`--lora` trains those).
`reward="task"` is PPO on those payments themselves. Parts reused: PPO; REFUEL's rewinding to a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from lmgym.baselines import ppo, refuel
from lmgym.baselines.curves.directions import PLAIN, SMALL_START, Arm, Direction, arm
from lmgym.train.interfaces import Optimiser
from lmgym.train.parts.credit import Level
from lmgym.train.parts.preference import FitReward, RewardModel
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import Count, Fraction, NonNegative, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until

DATA = ("--instances", "128")  # that are imitated, in both arms
FEW = ("--reward-steps", "16", "--pairs", "32", "--critic-steps", "1", "--instances", "32")  # PPO gets most tokens
EXPERIMENT = Direction(
    name="zhongjing",
    claim="a reward model and PPO after imitation beat imitating the same dialogues for longer",
    task="doctor",
    options=("table=false",),
    arms=(
        arm("zhongjing", "zhongjing", *FEW),
        Arm(name="imitation alone", algorithm="bc", words=(*PLAIN, *DATA, "--steps", "1000000")),
    ),
    start=(*DATA, *SMALL_START),
    warmup=100,
    tokens=200_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(ppo.Shared):
    """Options of Zhongjing, and those of PPO."""

    reward: Literal["model", "task"] = "model"  # of PPO; task: no reward model is made
    reward_steps: Count = 20  # of the reward model
    pairs: PositiveInt = 64  # histories per step of the reward model, two answers each; equally paid ones are left out
    reward_lr: Rate = 3e-4
    level: Level = "both"  # advantages within an answer,
    turn_gamma: Fraction = 0.0  # and none beyond it
    gamma: Fraction = 1.0
    kl_reward: NonNegative = 0.02  # b


def recipe(args: Args) -> Recipe:
    """Return imitation, the reward model, critic warm-up and PPO, with the same evaluation before and after."""
    plain = ppo.recipe(args)
    if args.reward == "task":
        return plain
    *begun, critic, rl, after = plain.stages
    pairs = Uniform(args.pairs, budget=args.budget)
    fit = FitReward(tasks=pairs, planner=refuel.Rewind(args.budget), until=Until(steps=args.reward_steps))
    optimiser = Optimiser(lr=args.reward_lr, minibatches=args.minibatches, autocast=args.autocast)
    return replace(
        plain,
        reward_model=partial(RewardModel, optimiser=replace(optimiser, checkpointing=args.checkpointing)),
        stages=[*begun, fit, critic, rl, after],
        requires=frozenset({"replay"}),
    )
