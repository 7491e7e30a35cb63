"""MGPO: a fixed template of two turns, a box and then the answer; only the answer is rewarded.

    lmgym train mgpo lmgym/VisualSearchMGPO-v0 --model tiny-vl

Huang et al. 2025, High-Resolution Visual Reasoning via Multi-Turn Grounding-Based Reinforcement Learning. The prompt of
the first turn asks for coordinates and nothing else, that of the second shows the box, cut from the full picture, and
asks for the answer; so a model that never crops by itself learns to crop. Both turns are trained with the advantage of
the episode, A = (R - mean R) / std R in its group with R in {0, 1}; there is no reward for the box.

The template is the task's, in which a box that cannot be read shows the full picture again. Deviation: imitation before
RL, as an untrained policy knows no form of a box. `boxes="fixed"` is the ablation: only the answers are trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lmgym.baselines import bc, grpo
from lmgym.baselines.curves.directions import EPS, PICTURES_START, Direction, arm
from lmgym.train.interfaces import FilterResult
from lmgym.train.ranges import Count, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.types import Trajectory

EXPERIMENT = Direction(
    name="mgpo",
    claim="the reward of the answer alone trains the box as well",
    task="lmgym/VisualSearchMGPO-v0",
    arms=(arm("mgpo", "mgpo", *EPS), arm("boxes not trained", "mgpo", *EPS, "--boxes", "fixed")),
    model="tiny-vl",
    start=PICTURES_START,
    warmup=16,
    tokens=60_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """Options of MGPO."""

    steps: Count | None = 80
    instances: PositiveInt = 16  # per step
    group: int = 8  # attempts per instance
    boxes: Literal["trained", "fixed"] = "trained"
    budget: int | None = 2  # turns: the box and the answer
    lr: Rate = 3e-4


def mask_boxes(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Exclude the first turn from training."""
    return FilterResult(mask=frozenset((each.id, 0) for each in trajectories))


def recipe(args: Args) -> Recipe:
    """Return imitation and MGPO, with the same evaluation before and after."""
    base = grpo.recipe(grpo.options(args))
    masks = [mask_boxes] if args.boxes == "fixed" else []
    return replace(base, filter=[*base.filter, *masks], requires=frozenset({"pictures"}))
