"""SimpleTIR: GRPO that trains on no episode with a void turn, yet counts it among the attempts of its group.

    lmgym train simpletir python_math --option protocol=simpletir

Xue et al. 2025, SimpleTIR: End-to-End Reinforcement Learning for Multi-Turn Tool-Integrated Reasoning. A void turn has
neither a complete program nor an answer; it ends the episode, of which no token is trained. The advantage is

    A = (R - mean R) / std R    over all attempts at the problem, those with void turns among them.

Groups of which fewer than a tenth or more than nine tenths succeed are dropped; episodes cut by a limit are masked
while four others remain; results are never trained on.

Deviations: a void turn is one that the task calls invalid, on any task; problems are not oversampled to refill a step,
and imitation comes first, as an untrained policy writes no program. `void` holds the ablations: "turn" masks the void
turns alone, "drop" takes their episodes out of the statistics as well, "train" keeps all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.train.interfaces import Filter, FilterResult
from lmgym.train.math import Aggregation
from lmgym.train.parts.filters import drop_flat_groups, drop_lone_episodes, drop_outside, mask_truncated, mask_void
from lmgym.train.ranges import Fraction
from lmgym.train.recipe import Recipe
from lmgym.types import Trajectory

LEAST = 4  # uncut episodes of a step, without which cut ones are trained as well
EXPERIMENT = Direction(
    name="simpletir",
    claim="leaving episodes with void turns out of training steadies it",
    task="python_math",
    options=("protocol=simpletir",),
    arms=(arm("simpletir", "simpletir"), arm("void turns trained", "simpletir", "--void", "train")),
    model="tiny?words=python_math",
    start=("--interject", "0"),
    warmup=80,
    tokens=100_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Grouped):
    """Options of SimpleTIR, and those of the surrogate."""

    budget: int | None = 5  # turns in training; evaluations keep the task's ten
    void: Literal["episode", "turn", "drop", "train"] = "episode"
    easiest: Fraction = 0.9  # success above which a group is dropped
    hardest: Fraction = 0.1  # success below which it is
    aggregation: Aggregation = "token_mean"


def void_turns(trajectories: Sequence[Trajectory], *, drop: bool) -> FilterResult:
    """Exclude void turns alone from training, or `drop` their episodes from the statistics as well."""
    turns = [(each.id, n, turn) for each in trajectories for n, turn in enumerate(each.turns)]
    void = [(name, n) for name, n, turn in turns if not turn.info.get("valid", True)]
    return FilterResult(drop=frozenset(name for name, _ in void)) if drop else FilterResult(mask=frozenset(void))


def mask_overlong(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Exclude cut episodes from training while `LEAST` others remain."""
    enough = sum(not each.truncated for each in trajectories) >= LEAST
    return mask_truncated(trajectories) if enough else FilterResult()


def recipe(args: Args) -> Recipe:
    """Return GRPO with these filters, with the same evaluation before and after."""
    turn, drop = partial(void_turns, drop=False), partial(void_turns, drop=True)
    void: dict[str, list[Filter]] = {"episode": [mask_void], "turn": [turn], "drop": [drop], "train": []}
    band = partial(drop_outside, low=args.hardest, high=args.easiest)
    flat: list[Filter] = [partial(drop_flat_groups, below=1e-3)] if args.drop_flat else []
    filters: list[Filter] = [*void[args.void], band, *flat, drop_lone_episodes, mask_overlong]
    return replace(grpo.grouped(args, partial(grpo.credit, std=True)), filter=filters)
