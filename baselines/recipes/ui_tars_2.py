"""UI-TARS-2: PPO for long episodes of GUI agents, in rounds between which the policy imitates its own successes.

    lmgym train ui_tars_2 miniwob

Wang et al. 2025, UI-TARS-2 Technical Report; advantages of Yue et al. 2025, VAPO. The critic learns Monte-Carlo returns
before the policy moves, and after. The lambda of the policy's advantages grows with the tokens l of an episode,

    lambda_policy(l) = max(0, 1 - 1 / (alpha l)),    lambda_critic = 1,    ratios within 1 - 0.2 and 1 + 0.28.

An invalid action costs `invalid_cost`, a turn `cost`. Between rounds it plays and imitates its successes so far.
Deviations: alpha is VAPO's, as the report prints none; below 20 tokens its lambda is 0, so tasks with short episodes
need a larger alpha. The critic is pre-trained for some steps, not until its explained variance levels off. Failures,
which the report gives to continual pre-training, are imitated only before the first success. No agents are merged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lmgym.baselines import bc, ppo
from lmgym.baselines.curves.directions import RATES, arm
from lmgym.baselines.recipes import dart
from lmgym.train.parts.credit import length_adaptive
from lmgym.train.parts.filters import drop_failures
from lmgym.train.parts.rewards import each, turn_cost
from lmgym.train.ranges import Count, Fraction, NonNegative, Positive, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.stage import Repeat
from lmgym.train.stages import Generate, Rl

SHAPED = (*RATES, "--invalid-cost", "0.1", "--kl-reward", "0", "--limit-ends")
OWN = ("--rounds", "1", "--critic-steps", "3", "--alpha", "0.5", *SHAPED)
EXPERIMENT = replace(
    dart.EXPERIMENT,  # task, start and tokens
    name="ui_tars_2",
    claim="value pre-training with decoupled and length-adaptive GAE beats PPO with lambda 0.95",
    arms=(arm("ui_tars_2", "ui_tars_2", *OWN), arm("ppo", "ppo", "--critic-steps", "1", *SHAPED)),
)


@dataclass(frozen=True, kw_only=True)
class Args(ppo.Shared):
    """Options of PPO, with the values of UI-TARS-2."""

    rounds: PositiveInt = 2  # of RL, which share its steps, rounded up
    alpha: Positive = 0.05  # of lambda_policy
    cost: NonNegative = 0.01  # of a turn
    imitated: PositiveInt = 10  # steps of imitation between two rounds
    imitation_lr: Rate = 3e-4
    gamma: Fraction = 1.0
    critic_lam: Fraction | None = 1.0
    critic_steps: Count = 10  # of value pre-training
    clip_high: NonNegative = 0.28
    kl_reward: NonNegative = 0.0
    budget: int | None = None
    limit_ends: bool = True  # without discount, values bootstrapped at a cut have no fixed point
    invalid_cost: NonNegative = 0.1


def recipe(args: Args) -> Recipe:
    """Return imitation, value pre-training and rounds of RL, with the same evaluation before and after."""
    plain = ppo.recipe(args)
    *begun, rl, after = plain.stages
    assert isinstance(rl, Rl)
    seconds = args.seconds and args.seconds / args.rounds
    rl = replace(rl, until=Until(steps=args.steps and -(-args.steps // args.rounds), seconds=seconds))
    play = Generate(until=Until(steps=1), into="successes", tasks=plain.tasks, filter=[drop_failures])
    learn = bc.Args(steps=args.imitated, interject=0, observation_weight=0, lr=args.imitation_lr, optimiser="adamw")
    learn = replace(learn, autocast=args.autocast, checkpointing=args.checkpointing)
    imitate = replace(bc.sft(learn), name="imitate", recorded=Path(play.into), select=drop_failures)
    last = replace(rl.in_round(args.rounds), name=rl.name)
    return replace(
        plain,
        reward=[*plain.reward, each(partial(turn_cost, cost=args.cost))],
        credit=ppo.credit(args, partial(length_adaptive, alpha=args.alpha)),
        stages=[*begun, Repeat(stages=[rl, play, imitate], times=args.rounds - 1), last, after],
    )
