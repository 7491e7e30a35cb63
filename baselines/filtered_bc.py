"""Filtered BC: imitation of the best episodes alone; those of the policy itself, round by round, or recorded ones.

    lmgym train filtered_bc guess_number --model tiny
    lmgym train filtered_bc wordle --recorded data/wordle.parquet --share 0.1

Abdulhai et al. 2023, LMRL-Gym, whose rounds have 128 episodes, of which the upper 30 % are kept. Episodes are ranked
within their task by default, recorded ones too: ranked over all tasks, the easy ones would be all that is kept. What
was recorded once of each task has nothing of its own to be ranked with, and is ranked together.

The share that is really kept is another where returns tie: with `--ties keep` all at the border are kept, and what is
as bad as the worst is not, the worst of its group in a round, of all where it is recorded. Of returns that are 0 or 1
both make a filter of successes, whatever `share` is below 1. The log has `dropped` of a round and `selected`, the share
of a data set that is kept.

What is kept is imitated, whoever said it: its loss has no old log-probs, so that a sampler of other precision needs no
importance weights.
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
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.stages import Rl, Sft


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """What filtered BC takes, besides what the imitation before it does."""

    steps: int | None = 45  # rounds, or steps over the recorded episodes
    seconds: float | None = None  # at most
    recorded: str | None = None  # data set to learn from, in place of the policy's own episodes
    share: float = 0.3  # of the episodes is kept, the best; 1 keeps all
    within: Within = "group"  # ranked in the group, the tries of a task, or among all
    ties: Ties = "keep"
    instances: int = 16  # tasks of a round
    group: int = 8  # tries of each
    budget: int | None = None  # turns of a training episode at most
    lr: float = 1e-3
    epochs: int = 1  # passes over what is kept
    minibatches: int = 4  # optimiser steps of an epoch


def learning(args: Args) -> Rl | Sft:
    """Rounds of play and imitation, or imitation of what is recorded."""
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
    """The filter that gives the algorithm its name."""
    keep = keep_top if args.recorded is None else keep_best
    return partial(keep, share=args.share, within=args.within, ties=args.ties)


def recipe(args: Args) -> Recipe:
    """Imitation of the demonstrator, then of the best; the same evaluation before and after."""
    if not 0 < args.share <= 1:
        raise RecipeError(f"share is in (0, 1]; got {args.share}")
    if args.recorded is None and args.within != "all" and args.group < 2:
        raise RecipeError(f"episodes are ranked among the tries of a task: group must be at least 2; got {args.group}")
    return Recipe(
        tasks=Uniform(args.instances, tries=args.group, budget=args.budget),
        filter=[best(args)],
        loss=[Term(loss=nll)],
        stages=bc.around(args, learning(args)),
    )
