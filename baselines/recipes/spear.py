"""SPEAR: imitate the policy's own good episodes more and more, and reward actions less and less.

    lmgym train spear alfworld

Qin et al. 2025, SPEAR. At step k of T, with u = (1 - cos(pi k / T)) / 2, the loss is

    L(fresh) + u L(store),   both PPO's clipped surrogate,

and an episode's reward gets (1 - u) min(1, 0.1 x valid actions). The store keeps episodes with a positive advantage for
`age` steps; drawn, their advantage is the return, with the bonus of the step that played them, minus the median of
group means, unless that is below 0.
Of the tokens whose log-prob and advantage vary together by `covariance_low` to `covariance_high`, 2 % of all lose their
gradient. The rest is the paper's Dr. BoT: no deviation, a constant divisor, dual clip 10, the 75 % most varied groups.

Deviations: a tool call is a valid action; the void mask of the paper is there, its masks of long, repetitive and
unreadable answers are not; the medians see the groups that are kept; all turns stay in view, not two.
Parts reused: GRPO; `SelfImitation`; Clip-Cov.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.train.interfaces import Filter, Term
from lmgym.train.math import Aggregation
from lmgym.train.parts.credit import covariance_clipped, own_returns
from lmgym.train.parts.filters import keep_varied, mask_void
from lmgym.train.parts.rewards import action_bonus
from lmgym.train.parts.stores import SelfImitation
from lmgym.train.ranges import AboveOne, Count, Fraction, NonNegative, PositiveInt
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import cosine

SHORT = ("--no-void", "--ramp", "10")  # schedules that end within the experiment's steps
EXPERIMENT = Direction(
    name="spear",
    claim="imitating one's own better episodes, ever more, beats the same algorithm without it",
    task="alfworld",
    arms=(arm("spear", "spear", *SHORT), arm("no imitation", "spear", *SHORT, "--imitated", "0")),
    warmup=150,
    tokens=60_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Grouped):
    """Options of SPEAR, and those of the surrogate."""

    ramp: PositiveInt = 40  # steps T of both schedules
    imitated: Count = 32  # stored episodes per step
    age: PositiveInt = 10  # steps that an episode stays in the store
    bonus: NonNegative = 0.1  # of a valid action, 1 at most in an episode
    varied: Fraction = 0.75  # share of groups that are kept
    void: bool = True  # exclude episodes with an invalid action from training
    covariance_share: Fraction = 0.02  # of tokens that lose their gradient
    covariance_low: float = 1.0
    covariance_high: float = 40.0
    dual: AboveOne | None = 10.0
    aggregation: Aggregation = "const_norm"
    drop_flat: bool = False  # the most varied groups are kept


def recipe(args: Args) -> Recipe:
    """Return the surrogate of fresh and of stored episodes, with the same evaluation before and after."""
    clip = partial(covariance_clipped, share=args.covariance_share, low=args.covariance_low, high=args.covariance_high)
    plain = grpo.grouped(args, clip(partial(grpo.credit, std=False)))
    own = replace(plain.loss[0], name="imitation", source="store", coef=cosine(0.0, 1.0, steps=args.ramp))
    varied = partial(keep_varied, share=args.varied)
    filters: list[Filter] = [varied, *plain.filter, *([mask_void] if args.void else [])]
    bonus = partial(action_bonus, amount=args.bonus, weight=cosine(1.0, 0.0, steps=args.ramp))
    plain = replace(plain, reward=[bonus, *plain.reward], filter=filters)
    loss: list[Term] = [*plain.loss, own]
    store = partial(SelfImitation, age=args.age, count=args.imitated, void=not args.void)
    return replace(plain, loss=loss, store=store, store_credit=clip(own_returns)) if args.imitated else plain
