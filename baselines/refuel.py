"""REFUEL: two answers to the same moment of a conversation, and the difference of what came of them, regressed.

    lmgym train refuel guess_number --model tiny

Gao et al. 2024, Regressing the Relative Future: Efficient Policy Optimization for Multi-turn RLHF. A step is one
iteration of it: the policy plays, each episode is rewound to one of its turns, drawn uniformly, and played on from
there by the same policy with other sampling noise and fresh chance; a pass over the pairs fits

    log pi(y|s) / pi_t(y|s) - log pi(y'|s) / pi_t(y'|s)   to   eta (R - R')

where s is all that was said before the turn, y and y' are the two answers, and R, R' are what the rest of each episode
brought. Its minimiser is pi_t exp(eta Q) up to normalisation. pi_t is scored anew by the trainer: the sampler's
log-probs differ, and the difference would be fitted as well. The release draws the turn at which a dialogue is judged,
too; here an episode is judged when it is over.
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
from lmgym.errors import RecipeError
from lmgym.rollout.episode_state import number_of
from lmgym.rollout.fork import fork
from lmgym.rollout.planner import Planner
from lmgym.train.batch import Batch
from lmgym.train.interfaces import ScoredBatch, Term
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.services import Services
from lmgym.train.stages import Rl
from lmgym.types import Job, Trajectory


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """What REFUEL takes, besides what the imitation before it does."""

    steps: int | None = 45  # iterations: a data set of pairs each
    seconds: float | None = None  # at most
    pairs: int = 256  # of an iteration, each of an instance of its own; those that say the same twice are dropped
    budget: int | None = 16  # turns of a training episode at most; evaluation keeps the task's own limit
    eta: float = 1.0  # nats for a unit of return
    scale: Literal["none", "std"] = "std"  # of returns: their differences in a data set, divided by their deviation
    lr: float = 1e-4
    epochs: int = 1  # passes over the pairs of an iteration
    minibatches: int = 2  # optimiser steps of a pass


@dataclass(frozen=True)
class Rewind(Planner):
    """Plays each episode a second time from one of its turns on, which is drawn uniformly."""

    budget: int | None = None  # turns of an episode at most, those that are shared included

    def after_episode(self, trajectory: Trajectory, others: Sequence[Trajectory]) -> Iterable[Job]:
        """The job of the second time; its id, and so its sampling noise, is its own."""
        spoken = [number for number, turn in enumerate(trajectory.turns) if turn.completion.ids]
        if trajectory.parent is not None or not spoken:
            return ()
        chance = np.random.default_rng([number_of(trajectory.id), trajectory.seed, trajectory.attempt])
        turn, reseed = spoken[int(chance.integers(len(spoken)))], int(chance.integers(1 << 31))
        return [fork(trajectory, turn, reseed=reseed, others=others, budget=self.budget, trusted=True)]


class Pairs:
    """The pairs of a step: episodes that end with the answer they differ in, which earns all that came after."""

    def __init__(self) -> None:
        self.pairs: list[Trajectory] = []

    def put(self, episodes: Sequence[Trajectory]) -> None:
        """Pair each second time with the first; twice the same answer says nothing and is dropped."""
        firsts = {episode.id: episode for episode in episodes if episode.parent is None}
        self.pairs = []
        for second in episodes:
            first, turn = firsts.get(second.parent or ""), second.forked_at
            if first is None or len(second.turns) <= turn:
                continue
            said = [each.turns[turn].completion.ids for each in (first, second)]
            if all(said) and said[0] != said[1]:
                self.pairs += [ending(first, turn), ending(second, turn)]

    def draw(self, services: Services, *, seed: Sequence[int]) -> list[Trajectory]:
        """All of them."""
        return self.pairs

    def state_dict(self) -> dict[str, Any]:
        """Nothing: what a step played it learns from in that step."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing was kept."""


def ending(trajectory: Trajectory, turn: int) -> Trajectory:
    """The trajectory up to its answer in `turn`, the only one that is trained, with the return from there on."""
    earned = sum(each.reward for each in trajectory.turns[turn:])
    last = replace(trajectory.turns[turn], reward=earned, terms={"return": earned})
    return replace(trajectory, turns=(*trajectory.turns[:turn], last), forked_at=turn, group=trajectory.root)


def together(batch: Batch) -> Tensor:
    """Which pair a row is of; (B,)."""
    return batch.group


def less_the_other(values: Tensor, pair: Tensor) -> Tensor:
    """Each row's value less that of the other row of its pair; all (B,)."""
    _, number = torch.unique(pair, return_inverse=True)
    total = values.new_zeros(int(number.max()) + 1).index_add(0, number, values)
    return 2 * values - total[number]


def credit(batch: Batch, *, eta: float, scale: Literal["none", "std"]) -> Tensor:
    """Eta times the difference of returns, on every token of the answer; (B, T)."""
    difference = less_the_other(batch.returns()[batch.episode], together(batch))
    if scale == "std":
        difference = difference / difference.square().mean().sqrt().clamp(min=1e-6)  # of both signs, so of mean 0
    return (eta * difference)[:, None].to(batch.reward) * batch.mask


def regression(scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
    """The squared error of a pair's log-ratio difference, on every token of both answers; (B, T)."""
    batch = scored.batch
    moved = ((scored.logprobs - batch.logprobs) * batch.mask).sum(1)
    goal = (batch.advantage * batch.mask).sum(1) / batch.mask.sum(1).clamp(min=1)
    difference = less_the_other(moved, together(batch))
    error = (difference - goal).square()
    figures = {"log_ratio": difference.detach().abs(), "goal": goal.abs()}
    wide = torch.ones_like(scored.logprobs)
    return error[:, None] * wide, {name: value[:, None] * wide for name, value in figures.items()}


def recipe(args: Args) -> Recipe:
    """Imitation, REFUEL, and the same evaluation before and after."""
    if args.eta <= 0 or args.pairs < 1:
        raise RecipeError(f"REFUEL needs eta above 0 and a pair or more; got eta={args.eta}, pairs={args.pairs}")
    rl = Rl(
        until=Until(steps=args.steps, seconds=args.seconds),
        optimiser=bc.optimiser(args),
        # always, whatever sampled. An importance weight beside it would be wrong: on the advantage, which is the target
        # here, it asks for another ratio. How often a pair is drawn does not move the minimiser, where it can be met
        rescore=True,
    )
    return Recipe(
        tasks=Uniform(args.pairs, budget=args.budget),
        planner=Rewind(args.budget),
        store=Pairs,
        credit=partial(credit, eta=args.eta, scale=args.scale),
        loss=[Term(loss=regression, aggregation="seq_mean", together=together)],
        stages=bc.around(args, rl),
        replays=True,
    )
