"""SUPO: train the summaries by which the policy itself keeps a long episode within a short context.

    lmgym train supo lmgym/TextWorldCooking-v0 --model tiny --limit 512

Lu et al. 2025, Scaling LLM Multi-turn RL with End-to-end Summarization-based Context Management. A prompt longer than
`limit` tokens asks the policy for a summary; the next prompt has the task, the summary and the newest observation. The
likelihood of an episode is a sum over its segments s, each with its own context, so that

    grad J = E[ A_i sum_s sum_(t in s) grad log pi(a_t | context_s, a_<t) ]

where A_i is normalised over the episodes of the group, never over segments. After `most` summaries the prompt grows
past `limit`; episodes that are cut by the context or the turn limit are not trained, and stay in the statistics of
their group.

Deviations: the loss is GRPO's, a clipped mean over the tokens of an episode; training and evaluation allow the same
number of summaries; imitation ends where the first summary would begin, as demonstrators write none.
`summaries="fixed"` is the ablation: summaries are sampled and not trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lmgym.baselines import bc, grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.rollout.context import Summarise
from lmgym.train.interfaces import FilterResult
from lmgym.train.parts.filters import mask_truncated
from lmgym.train.ranges import Count, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.types import Trajectory

EXPERIMENT = Direction(
    name="supo",
    claim="training the summaries beats leaving them as they are, at the same working context",
    task="alfworld",
    arms=(arm("supo", "supo"), arm("summaries not trained", "supo", "--summaries", "fixed")),
    warmup=150,
    tokens=60_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """Options of SUPO."""

    steps: Count | None = 60
    instances: PositiveInt = 16  # per step
    group: int = 8  # attempts per instance
    limit: PositiveInt = 512  # tokens of a prompt, above which a summary is asked for
    most: PositiveInt = 3  # summaries per episode
    summaries: Literal["trained", "fixed"] = "trained"
    budget: int | None = None  # maximum number of turns in training; None: the task's own
    lr: Rate = 3e-4


def mask_summaries(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Exclude summaries from training."""
    turns = ((each.id, number, turn) for each in trajectories for number, turn in enumerate(each.turns))
    return FilterResult(mask=frozenset((name, number) for name, number, turn in turns if turn.kind == "summary"))


def recipe(args: Args) -> Recipe:
    """Return imitation and SUPO, with the same evaluation before and after."""
    base = grpo.recipe(grpo.options(args))
    masks = [mask_truncated, *([mask_summaries] if args.summaries == "fixed" else [])]
    return replace(base, context=Summarise(args.limit, most=args.most), filter=[*base.filter, *masks])
