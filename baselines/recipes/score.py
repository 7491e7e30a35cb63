"""SCoRe: learn to correct an own first attempt, in two stages.

    lmgym train score frozen_lake --option protocol=twice --option slippery=false

Kumar et al. 2024, Training language models to self-correct via reinforcement learning. With y1, y2 the two attempts,

    stage I:   max E[r(y2)] - b1 KL(y1) - b KL,                       b1 large: the first attempt stays as it was;
    stage II:  max E[r(y1) + r(y2) + alpha (r(y2) - r(y1))] - b KL,   the bonus credited to the second attempt alone.

Each attempt is credited with its own reward less the mean of the group's attempts with the same number. Summed over the
episode the bonus would give r(y1) the factor 1 - alpha, and the policy would learn to fail first.

Deviations: groups of tries are the baseline of REINFORCE; KL is to the policy that the stage began with.
Parts reused: GRPO's surrogate; credit of turns; a stage with its own parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.train.batch import Batch
from lmgym.train.interfaces import Term
from lmgym.train.parts.losses import kl_to_start
from lmgym.train.parts.rewards import each, improved
from lmgym.train.parts.turns import by_number
from lmgym.train.ranges import Count, NonNegative
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until, constant
from lmgym.train.stages import Rl

EXPERIMENT = Direction(
    name="score",
    claim="two stages with a bonus for improvement correct more than rewarding both attempts",
    task="frozen_lake",
    options=("protocol=twice", "slippery=false"),
    arms=(arm("score", "score"), arm("both rewarded", "score", "--first-steps", "0", "--alpha", "0")),
    warmup=60,
    tokens=400_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Grouped):
    """Options of SCoRe, and those of the surrogate."""

    first_steps: Count = 20  # of stage I; `steps` are those of stage II
    alpha: NonNegative = 10.0  # of the bonus
    first_kl: NonNegative = 1.0  # b1, on the first attempt in stage I
    kl: NonNegative = 0.01  # b
    drop_flat: bool = False  # equal sums can be of unequal attempts


def first_attempt(batch: Batch) -> Tensor:
    """Mark the trained tokens of first attempts; (B, T) bool."""
    return batch.mask & (batch.turn == 0)


def recipe(args: Args) -> Recipe:
    """Return both stages, with the same evaluation before and after."""
    plain = grpo.grouped(args, by_number)
    *begun, second, after = plain.stages
    assert isinstance(second, Rl)
    hold = Term(loss=partial(kl_to_start, kind=args.kl_kind, on=first_attempt), name="first_kl", reference=True)
    hold = replace(hold, coef=constant(args.first_kl), counted=first_attempt)
    outcome, bonus = (each(partial(improved, first=f, alpha=a)) for f, a in ((0.0, 0.0), (1.0, args.alpha)))
    held = replace(plain, reward=[outcome, *plain.reward], loss=[*plain.loss, hold])
    later = args.first_steps if args.steps is None else args.steps
    share = args.first_steps / max(1, args.first_steps + later)  # of the time limit
    limits = [args.seconds and args.seconds * part for part in (share, 1 - share)]
    first = replace(second, name="first", until=Until(steps=args.first_steps, seconds=limits[0]), parts=held)
    stages = [*begun, first, replace(second, until=Until(steps=args.steps, seconds=limits[1])), after]
    return replace(plain, stages=stages, reward=[bonus, *plain.reward], reward_terms=frozenset({"attempt"}))
