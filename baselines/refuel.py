"""REFUEL: sample two answers at the same turn and regress the difference of their returns.

    lmgym train refuel guess_number --model tiny

Gao et al. 2024, Regressing the Relative Future: Efficient Policy Optimization for Multi-turn RLHF. A step is one
iteration: the policy plays, each episode is rewound to one of its turns, drawn uniformly, and continued from there by
the same policy with new sampling noise and a new environment seed; a pass over the pairs fits

    log pi(y|s) / pi_t(y|s) - log pi(y'|s) / pi_t(y'|s)   to   eta (R - R')

where s is the history before the turn, y and y' are the two answers, and R, R' are the returns of the rest of each
episode. The minimiser is pi_t exp(eta Q) up to normalisation. pi_t is computed by the trainer: the log-probs of the
sampler differ, and the difference would be fitted as well. With `rewind="last"`, the paper's ablation, only the
answer of the last turn is sampled twice. Deviations from the released code: an episode is scored at its end, where it
draws the turn at which a dialogue is scored; answers are sampled at temperature 1, not 0.8; the learning rate stays,
where it falls along a cosine. `eta` of the paper fits scores of a reward model, whose differences are about 0.01: for
returns of 0 and 1 take 1 to 5, or `scale="std"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from lmgym.baselines import bc
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.errors import RecipeError
from lmgym.rollout.episode_state import number_of
from lmgym.rollout.fork import fork
from lmgym.rollout.planner import Planner
from lmgym.train.batch import Batch
from lmgym.train.interfaces import ScoredBatch, Term
from lmgym.train.math import less_the_other
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import Count, NonNegative, Positive, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.services import Services
from lmgym.train.stages import Rl
from lmgym.types import Job, Trajectory

EXPERIMENT = Direction(
    name="refuel",
    claim="regressing differences of returns beats the policy gradient of episodes at equal tokens",
    task="guess_number",
    arms=(arm("refuel", "refuel"), arm("rloo (REINFORCE)", "rloo")),
    warmup=12,
    tokens=30_000,
)


@dataclass(frozen=True, kw_only=True)
class Paired(bc.Learning):
    """Options of REFUEL, with the values of small models."""

    steps: Count | None = 45  # iterations, each with its own pairs
    seconds: NonNegative | None = None  # time limit
    pairs: int = 256  # per iteration, each of another instance; pairs with equal answers are dropped
    budget: int | None = 16  # maximum number of turns in training; evaluations keep the task's own limit
    eta: Positive = 1.0  # nats per unit of return; 1,000 fits differences of 0.01, as those of reward models
    scale: Literal["none", "std"] = "std"  # std: divide the return differences by their standard deviation
    rewind: Literal["any", "last"] = "any"  # turn whose answer is sampled twice
    lr: Rate = 1e-4
    epochs: PositiveInt = 1  # passes over the pairs
    minibatches: PositiveInt = 2  # optimiser steps per pass


@dataclass(frozen=True, kw_only=True)
class Args(bc.Published, Paired):
    """Options of REFUEL, by default those of its paper."""

    eta: Positive = 1_000.0
    scale: Literal["none", "std"] = "none"
    lr: Rate = 3e-7


@dataclass(frozen=True)
class Rewind(Planner):
    """Plays each episode a second time from one of its turns, drawn uniformly, or from its last."""

    budget: int | None = None  # maximum number of turns, shared ones included
    to: Literal["any", "last"] = "any"

    def after_episode(self, trajectory: Trajectory, others: Sequence[Trajectory]) -> Iterable[Job]:
        """Return the job of the second episode; it has its own id and therefore its own sampling noise."""
        spoken = [number for number, turn in enumerate(trajectory.turns) if turn.completion.ids]
        if trajectory.parent is not None or not spoken:
            return ()
        chance = np.random.default_rng([number_of(trajectory.id), trajectory.seed, trajectory.attempt])
        drawn, reseed = spoken[int(chance.integers(len(spoken)))], int(chance.integers(1 << 31))
        turn = drawn if self.to == "any" else spoken[-1]
        return [fork(trajectory, turn, reseed=reseed, others=others, budget=self.budget, trusted=True)]


class Pairs:
    """The pairs of a step: episodes cut after the answer they differ in, which gets the return from there on."""

    def __init__(self) -> None:
        self.pairs: list[Trajectory] = []

    def put(self, episodes: Sequence[Trajectory]) -> None:
        """Pair each fork with its parent; pairs with equal answers are dropped."""
        firsts = {episode.id: episode for episode in episodes if episode.parent is None}
        self.pairs = []
        for second in episodes:
            first, turn = firsts.get(second.parent or ""), second.forked_at
            if first is None or len(second.turns) <= turn:
                continue
            answers = [each.turns[turn].completion.ids for each in (first, second)]
            if all(answers) and answers[0] != answers[1]:
                self.pairs += [ending(first, turn), ending(second, turn)]

    def draw(self, services: Services, *, seed: Sequence[int]) -> list[Trajectory]:
        """Return all pairs."""
        return self.pairs

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: pairs are used in the step that played them."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing: no state is kept."""


def ending(trajectory: Trajectory, turn: int) -> Trajectory:
    """Return the trajectory up to its answer in `turn`, the only one trained, with the return from there on."""
    earned = sum(each.reward for each in trajectory.turns[turn:])
    last = replace(trajectory.turns[turn], reward=earned, terms={"return": earned})
    return replace(trajectory, turns=(*trajectory.turns[:turn], last), forked_at=turn, group=trajectory.root)


def together(batch: Batch) -> Tensor:
    """Return the number of the pair of each row; (B,)."""
    return batch.group


def credit(batch: Batch, *, eta: float, scale: Literal["none", "std"]) -> Tensor:
    """Return eta times the difference of returns, on every token of the answer; (B, T)."""
    difference = less_the_other(batch.returns()[batch.episode], together(batch))
    if scale == "std":
        # each pair has both signs, so the mean is 0
        difference = difference / difference.square().mean().sqrt().clamp(min=1e-6)
    return (eta * difference)[:, None].to(batch.reward) * batch.mask


def regression(scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return the squared error of a pair's log-ratio difference, on every token of both answers; (B, T)."""
    batch = scored.batch
    moved = ((scored.logprobs - batch.logprobs) * batch.mask).sum(1)
    goal = (batch.advantage * batch.mask).sum(1) / batch.mask.sum(1).clamp(min=1)
    difference = less_the_other(moved, together(batch))
    error = (difference - goal).square()
    figures = {"log_ratio": difference.detach().abs(), "goal": goal.abs()}
    wide = torch.ones_like(scored.logprobs)
    return error[:, None] * wide, {name: value[:, None] * wide for name, value in figures.items()}


def recipe(args: Paired) -> Recipe:
    """Return imitation and REFUEL, with the same evaluation before and after."""
    if args.eta <= 0 or args.pairs < 1:
        raise RecipeError(f"REFUEL needs eta above 0 and pairs of 1 or more; got eta={args.eta}, pairs={args.pairs}")
    rl = Rl(
        until=Until(steps=args.steps, seconds=args.seconds),
        optimiser=bc.optimiser(args),
        # always rescored, and without importance weights: they would multiply the advantage, which is the regression
        # target here. How often a pair is sampled does not change the minimiser
        rescore=True,
    )
    return Recipe(
        tasks=Uniform(args.pairs, budget=args.budget),
        planner=Rewind(args.budget, args.rewind),
        store=Pairs,
        credit=partial(credit, eta=args.eta, scale=args.scale),
        loss=[Term(loss=regression, aggregation="seq_mean", together=together)],
        stages=bc.around(args, rl),
        requires=frozenset({"replay"}),
    )
