"""Filtered BC: imitate the best episodes only, of the policy itself in rounds or of a data set.

    lmgym train filtered_bc guess_number --model tiny
    lmgym train filtered_bc wordle --recorded data/wordle.parquet --share 0.1

Abdulhai et al. 2023, LMRL-Gym, with its settings for Wordle: rounds of 128 episodes of which the best 30 % are kept. Of
recorded episodes it keeps the best tenth (`--share 0.1`). By default episodes are
ranked over all instances, so that mostly the easy ones are kept; `within="group"` ranks them within their instance, in
data sets too, and those of instances with a single recorded episode together.

With ties the share kept differs from `share`: `--ties keep` keeps all episodes at the threshold, and episodes with the
lowest return are dropped (lowest in the group for rounds, lowest of all for data sets). With returns of 0 and 1, both
rules keep exactly the successes for any `share` below 1. The log has `dropped` for a round and `selected`, the share of
a data set that is kept.

The loss has no old log-probs, so a sampler of lower precision needs no importance weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lmgym.baselines import bc
from lmgym.errors import RecipeError
from lmgym.train.interfaces import FilterResult, Term
from lmgym.train.parts.filters import Ties, Within, keep_best, keep_top
from lmgym.train.parts.losses import nll
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import Count, NonNegative, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.stages import Rl, Sft


@dataclass(frozen=True, kw_only=True)
class Args(bc.Published, bc.Learning):
    """Options of filtered BC."""

    steps: Count | None = 45  # rounds, or steps over the recorded episodes
    seconds: NonNegative | None = None  # time limit
    recorded: str | None = None  # data set to learn from instead of the policy's own episodes
    share: float = 0.3  # share of the episodes to keep; 1 keeps all
    within: Within = "all"  # rank within the group, or among all
    ties: Ties = "keep"
    instances: int = 16  # per round
    group: int = 8  # attempts per instance
    budget: int | None = None  # maximum number of turns in training
    lr: Rate = 1e-5
    epochs: PositiveInt = 1  # passes over the episodes kept
    minibatches: PositiveInt = 4  # optimiser steps per epoch


def learning(args: Args) -> Rl | Sft:
    """Return the stage of rounds, or of imitation of a data set."""
    until = Until(steps=args.steps, seconds=args.seconds)
    optimiser = bc.optimiser(args)
    if args.recorded is None:
        return Rl(until=until, optimiser=optimiser)
    return Sft(
        until=until,
        name="rl",
        tasks=Uniform(args.instances, tries=args.group),
        recorded=Path(args.recorded),
        select=best(args),
        loss=[Term(loss=nll)],
        optimiser=optimiser,
    )


def best(args: Args) -> partial[FilterResult]:
    """Return the filter."""
    keep = keep_top if args.recorded is None else keep_best
    return partial(keep, share=args.share, within=args.within, ties=args.ties)


def recipe(args: Args) -> Recipe:
    """Return imitation of the demonstrator, then of the best, with the same evaluation before and after."""
    if not 0 < args.share <= 1:
        raise RecipeError(f"share must be in (0, 1]; got {args.share}")
    if args.recorded is None and args.within != "all" and args.group < 2:
        raise RecipeError(
            f"episodes are ranked within groups: group must be at least 2, or within=all; got group={args.group}"
        )
    return Recipe(
        tasks=Uniform(args.instances, tries=args.group, budget=args.budget),
        filter=[best(args)],
        loss=[Term(loss=nll)],
        stages=bc.around(args, learning(args)),
    )
