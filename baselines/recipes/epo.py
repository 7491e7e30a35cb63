"""EPO: an entropy bonus, and a window around the entropy that each turn had so far.

    lmgym train epo alfworld

Xu et al. 2025, Entropy-regularized policy optimization for LLM agents. With H the entropy of a turn's tokens and
Hist(h) the mean over all updates so far of that of turn h, the loss of GRPO gets

    - c (H - beta(p) P),   P = max(0, H - k_r Hist(h)) + max(0, k_l Hist(h) - H),

P on the turns from the half of the limit on. beta falls from 1 to 5/6 in the first half of the progress p and is
0.8 exp(-3 p) in the second; p is the share of the stage's steps, or of `ramp`.

Deviations: in the authors' code P is a constant outside the window and has no gradient; here it is the distance to the
window, as the text has it. H is the mean over the tokens of one turn of one episode; all turns stay in view.
Parts reused: GRPO; the entropy bonus; a loss with state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.train.batch import Batch
from lmgym.train.interfaces import Term
from lmgym.train.parts.losses import EntropyWindow, entropy_bonus
from lmgym.train.ranges import Count, NonNegative, PositiveInt
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import StageProgress, constant

SHORT = ("--ramp", "12")  # a schedule that ends within the experiment's steps
EXPERIMENT = Direction(
    name="epo",
    claim="a window around the entropy of each turn beats a plain bonus",
    task="alfworld",
    arms=(arm("epo", "epo", *SHORT), arm("bonus", "epo", *SHORT, "--high", "1e6")),
    warmup=150,
    tokens=60_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of EPO, and those of GRPO."""

    entropy: NonNegative = 0.001  # weight c of the bonus and the window
    low: NonNegative = 0.0  # k_l
    high: NonNegative = 2.0  # k_r
    first_turn: Count = 8  # of the window: half of the default `budget`
    ramp: PositiveInt | None = None  # steps over which beta falls; None: those of the stage
    kl: NonNegative = 0.01  # weight of the divergence from the start policy of RL (--lora: from the base)
    invalid_cost: NonNegative = 0.1  # penalty in the reward of an invalid action


def weight(progress: StageProgress, *, ramp: int | None = None) -> float:
    """Return beta of the progress, or of the step as a share of `ramp`."""
    share = min(1.0, progress.step / ramp) if ramp else progress.share
    return 1 - share / 3 if share < 0.5 else 0.8 * math.exp(-3 * share)


def late(batch: Batch, *, first: int) -> Tensor:
    """Mark the trained tokens of turns from number `first` on; (B, T) bool."""
    return batch.mask & (batch.turn >= first)


def recipe(args: Args) -> Recipe:
    """Return GRPO with the bonus and the window."""
    plain = grpo.recipe(args)
    bonus = Term(loss=entropy_bonus, name="entropy_bonus", coef=constant(args.entropy))
    window = Term(
        loss=EntropyWindow(args.low, args.high, first=args.first_turn),
        name="entropy_window",
        coef=lambda progress: args.entropy * weight(progress, ramp=args.ramp),
        counted=partial(late, first=args.first_turn),
    )
    return replace(plain, loss=[*plain.loss, bonus, window])
