"""EPO (explicit): train an adviser, whose strategies a frozen agent reads, by the turns that a judge finds critical.

    lmgym train epo_adviser lmgym/ALFWorldAdvised-v0

Liu et al. 2025, EPO: Explicit Policy Optimization for Strategic Reasoning (arXiv 2502.12486). A critical turn earns 1,
the last a tenth of the outcome. With G_h = sum_k>=h gamma^(k-h) r_k over the largest |G| of the batch, the loss of an
episode is - 1/H sum_h G_h 1/|a_h| sum_t log pi(a_ht), without a baseline. Deviations: only won episodes are judged, by
a rule unless `judge` names a model (the paper: GPT-4o); the agent is the imitated policy as RL begins, not a large one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from torch import Tensor

from lmgym.baselines import bc
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.train.batch import Batch
from lmgym.train.interfaces import Term
from lmgym.train.parts.losses import reinforce
from lmgym.train.parts.rewards import critical_turns
from lmgym.train.parts.tasks import Uniform
from lmgym.train.parts.turns import Turns, by_turn
from lmgym.train.ranges import Count, Fraction, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.seats import Seat
from lmgym.train.stages import Rl
from lmgym.types import FIRST_SEAT

FEW = ("--instances", "32")  # a step, so that the budget holds about ten
EXPERIMENT = Direction(
    name="epo_adviser",
    claim="reinforcing the strategies that a judge finds critical beats as many drawn at random",
    task="lmgym/ALFWorldAdvised-v0",
    arms=(arm("judged", "epo_adviser", *FEW), arm("random turns", "epo_adviser", *FEW, "--chosen", "random")),
    start=("--seats", "adviser"),
    warmup=100,
    tokens=40_000,
    episodes=100,
)


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """Options of EPO's adviser."""

    steps: Count | None = 60
    instances: PositiveInt = 128  # per step, one episode of each
    budget: int | None = 16  # maximum number of turns in training; evaluations keep the task's own limit
    judge: str = "python:lmgym.tasks.alfworld.advised:changes"  # a policy, such as http://HOST/v1#MODEL
    chosen: Literal["judged", "random"] = "judged"  # turns that are rewarded
    gamma: Fraction = 0.99  # discount of a turn
    lr: Rate = 3e-4
    epochs: PositiveInt = 3
    minibatches: PositiveInt = 1


def credit(batch: Batch, *, gamma: float) -> Tensor:
    """Return G of each turn over the largest |G|, on all its tokens; (B, T)."""
    turns = Turns(batch)
    to_go = turns.to_go(turns.reward, gamma=gamma)
    return turns.spread(to_go / to_go.abs().max().clamp(min=1e-6))


def recipe(args: Args) -> Recipe:
    """Return imitation of both seats, then RL of the adviser, between two evaluations of both."""
    rl = Rl(until=Until(steps=args.steps), optimiser=bc.optimiser(args))
    return Recipe(
        tasks=Uniform(args.instances, budget=args.budget),
        reward=[partial(critical_turns, seat="adviser", judge=args.judge, chosen=args.chosen)],
        credit=partial(by_turn, credit=partial(credit, gamma=args.gamma)),
        loss=[Term(loss=reinforce, aggregation="seq_mean")],
        seats={FIRST_SEAT: Seat(player="start"), "adviser": Seat(imitated=True)},
        stages=bc.around(args, rl, others="seats"),
        judges=(args.judge,),
    )
