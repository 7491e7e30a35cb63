"""MARS: one policy plays both seats of a game, with the credit of turns compared by role.

    lmgym train mars tic_tac_toe
    lmgym train mars mini_hanabi --seat partner

Yuan et al. 2025, MARS: Reinforcing Multi-Agent Reasoning of LLMs through Self-Play in Strategic Games. Each seat's view
of a game is an episode of its own. With R_h the sum of the seat's rewards from its turn h on,

    A_h = whiten(R_h - mean over all turns of the same role),

since roles differ in what they earn on average: the first player of Kuhn poker loses. An invalid action costs 0.05.

The role of a seat is to move first or second; means are over turns. Deviations: temperature 1 and the whole transcript
(the paper: 0.6, the present state); one game a run. `baseline="pooled"`, one mean for both roles, is the ablation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.rollout.fork import PLY
from lmgym.train.batch import Batch
from lmgym.train.math import group_normal
from lmgym.train.parts.credit import whitened
from lmgym.train.parts.turns import Turns
from lmgym.train.ranges import NonNegative
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import StageProgress
from lmgym.train.seats import Seat
from lmgym.train.services import Services
from lmgym.types import Trajectory

EXPERIMENT = Direction(
    name="mars",
    claim="a baseline for each role beats one for both",
    task="tic_tac_toe",
    arms=(arm("by role", "mars"), arm("pooled", "mars", "--baseline", "pooled")),
    warmup=30,
    tokens=100_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Grouped):
    """Options of MARS, and those of the surrogate."""

    seat: str = "opponent"  # name of the other seat
    baseline: Literal["role", "pooled"] = "role"
    kl: NonNegative = 0.2  # weight of the divergence from the start policy of RL (--lora: from the base)
    clip_high: NonNegative = 0.2  # upper clip range of the ratio
    drop_flat: bool = False
    invalid_cost: NonNegative = 0.05  # penalty in the reward of an invalid action


def by_role(trajectories: Sequence[Trajectory], services: Services, progress: StageProgress) -> list[Trajectory]:
    """Return the episodes with their role for a seat: to move first in the game, or second."""
    return [replace(t, seat="second" if t.turns and t.turns[0].info[PLY] else "first") for t in trajectories]


def credit(batch: Batch, *, baseline: Literal["role", "pooled"]) -> Tensor:
    """Return each turn's rewards from there on, less the mean over the turns of its role or of all; (B, T)."""
    turns = Turns(batch)
    role = batch.seat[batch.first_rows()][turns.episode]
    compared = role if baseline == "role" else torch.zeros_like(role)
    return turns.spread(group_normal(turns.to_go(turns.reward), compared, std=False))


def recipe(args: Args) -> Recipe:
    """Return imitation and self-play, between two evaluations against the task's opponent."""
    plain = grpo.grouped(args, whitened(partial(credit, baseline=args.baseline)))
    filters = plain.filter if args.drop_flat else []
    return replace(plain, reward=[*plain.reward, by_role], filter=filters, seats={args.seat: Seat()})
