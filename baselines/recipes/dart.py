"""DART: GRPO for GUI agents that chooses rollouts, turns and tokens by what each task has shown.

    lmgym train dart miniwob

Li et al. 2025, DART: decoupled training with adaptive data curation; here its parts that need no asynchrony. With s the
success rate of an instance so far, it is played n = clip(round(n_max (1 - s)), n_min, n_max) times, for at most
`margin` turns more than its longest success; a group without success gets a stored one, or is dropped; only the 80 % of
turns with the highest entropy are trained; and each token weighs

    min(pi_old / mu, 1) clipped surrogate (0.1 below, 0.28 above, dual 10) + 0.1 KL to the start policy,

where mu is the sampler and pi_old the trainer at the same weights.

Deviations: successes of groups above `won` are not stored; the share of turns is taken before groups are dropped or
replaced, and stored successes are trained in full; play and training alternate; the rule for n is ours, as the release
has none; groups won above `won` are dropped; a group loses its first failure, not its oldest; all screens stay in view,
not five. Parts reused: GRPO; `Successes`; importance weights; filters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, Recording, arm
from lmgym.train.parts.filters import drop_outside, keep_uncertain
from lmgym.train.parts.importance import Choice
from lmgym.train.parts.stores import Successes
from lmgym.train.parts.tasks import Bank, Uniform
from lmgym.train.ranges import AboveOne, Fraction, NonNegative, PositiveInt
from lmgym.train.recipe import Recipe

EXPERIMENT = Direction(
    name="dart",
    claim="choosing rollouts, turns and tokens by what a task has shown beats GRPO",
    task="miniwob",
    options=("page=click-checkboxes", "actions=click", "places=false"),
    recordings=(Recording(by="demonstrator", episodes=500),),
    arms=(arm("dart", "dart"), arm("grpo", "grpo", "--clip", "0.1", "--dual", "10", "--kl", "0.1")),
    start=("--observation-weight", "0.1"),
    warmup=60,
    tokens=20_000,
    episodes=100,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of DART, and those of GRPO."""

    tasks: PositiveInt = 62  # the first instances of the split, which are played again and again
    fewest: PositiveInt = 2  # episodes of an instance; `group` is the most
    margin: PositiveInt = 2  # turns more than the longest success
    won: Fraction = 0.99  # success rate of a group above which it is dropped
    uncertain: Fraction = 0.8  # share of turns that are trained
    clip: NonNegative = 0.1
    dual: AboveOne | None = 10.0
    kl: NonNegative = 0.1
    importance: Choice = "token_cap"
    importance_most: float | None = 1.0
    drop_flat: bool = False


def recipe(args: Args) -> Recipe:
    """Return GRPO with these choices, with the same evaluation before and after."""
    plain = grpo.recipe(args)
    uniform = Uniform(args.instances, tries=args.group, budget=args.budget, first=args.tasks)
    kept = partial(drop_outside, low=0.0, high=args.won)
    return replace(
        plain,
        tasks=Bank(uniform, fewest=args.fewest, margin=args.margin),
        filter=[kept, partial(keep_uncertain, share=args.uncertain), *plain.filter],
        store=partial(Successes, drop=True),
    )
