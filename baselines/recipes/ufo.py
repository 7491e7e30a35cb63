"""UFO: turn problems of one answer into problems of several tries, with nothing but "try again" in between.

    lmgym train ufo try_again --option penalty=0.5

Liu et al. 2025, A Simple "Try Again" Can Elicit Multi-Turn LLM Reasoning. A problem that is solved at try k (from 0)
among T earns 0.5^k, and an episode with E distinct answers in T' tries pays 0.5 (1 - E / T') for repetition. PPO with
gamma = lambda = 1, so that each token's advantage is the return less the critic's value; each problem has 16 episodes,
and only the quarter of problems whose returns vary most is trained on.

Deviations: imitation before RL, as the small policy knows no arithmetic; rewards and feedback are the task's. The
ablation is training on a single try (`--budget 1`); both arms are evaluated with five.
Parts reused: PPO; the filter of varied groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from lmgym.baselines import ppo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.train.parts.filters import keep_varied
from lmgym.train.ranges import Fraction, NonNegative, PositiveInt
from lmgym.train.recipe import Recipe

SOON = ("--critic-steps", "1")
EXPERIMENT = Direction(
    name="ufo",
    claim="training on several tries solves more problems within five than training on one",
    task="try_again",
    options=("level=1", "family=remainder", "penalty=0.5"),
    arms=(arm("five tries", "ufo", *SOON), arm("one try", "ufo", *SOON, "--budget", "1")),
    start=("--interject", "0.5"),  # so that second tries are imitated as well
    warmup=40,
    tokens=200_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(ppo.Shared):
    """Options of UFO, and those of PPO."""

    instances: int = 8  # per step
    tries: PositiveInt = 16  # episodes per instance
    budget: int | None = 5  # tries in training; evaluations have the task's five
    varied: Fraction = 0.25  # share of groups that are trained on
    gamma: Fraction = 1.0
    lam: Fraction = 1.0
    limit_ends: bool = True  # without discount, values bootstrapped at a cut have no fixed point
    clip_high: NonNegative = 0.28  # upper clip range of the ratio


def recipe(args: Args) -> Recipe:
    """Return PPO on the groups that vary most."""
    return replace(ppo.recipe(args), filter=[partial(keep_varied, share=args.varied)])
