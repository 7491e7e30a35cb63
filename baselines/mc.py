"""MC returns: regress token values on the returns of recorded episodes, then add them to the policy's logits.

    lmgym train mc guess_number --model tiny
    lmgym train mc wordle --recorded data/wordle.parquet

Abdulhai et al. 2023, LMRL-Gym. Without a data set it records one: episodes of the demonstrator with many wrong moves,
and of the imitated policy. Q is the value of the policies that made the data, so sampling from log pi + beta Q is one
step of policy improvement and does not combine parts of different episodes. Returns of truncated episodes bootstrap
from the expectation of Q under the policy. Deviations from the released code: heads have twice the width of the policy,
and AdamW's second beta is 0.999, not 0.95.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmgym.baselines import bc
from lmgym.errors import RecipeError
from lmgym.policy.local.forward import head_of
from lmgym.train.batch import Batch
from lmgym.train.critics import Base, Estimator, Trunk, mlp
from lmgym.train.parts.planners import Stumble
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import Count, Fraction, NonNegative, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until, linear
from lmgym.train.services import Services
from lmgym.train.stage import Evaluate, Stage
from lmgym.train.stages import FitCritic, Generate, Sft
from lmgym.train.token_critic import DONE, Chain, TokenCritic


@dataclass(frozen=True, kw_only=True)
class Offline(bc.Begun):
    """Options of algorithms that learn token values from recorded episodes."""

    recorded: str | None = None  # data set to learn from and to imitate; None: the run records one
    demonstrated: Count = 512  # episodes of the demonstrator to record, in steps of 64
    stumbles: Fraction = 0.3  # share of their turns with a wrong action, as `interject`
    sampled: Count = 1024  # episodes of the policy to record, in steps of 64
    budget: int | None = None  # maximum number of turns of a recorded episode
    steps: Count | None = 200
    seconds: NonNegative | None = None  # time limit
    episodes: int = 64  # per step
    minibatches: PositiveInt = 4  # optimiser steps per step
    base: Base = "own"  # network below the heads; own and small are trained, policy is frozen
    lr: Rate = 1e-5
    final_lr: Rate = 1.0  # final learning rate as a share of `lr`
    gamma: Fraction = 0.99  # discount per token
    norm: bool = False  # layer normalisation in the heads, which keeps values from diverging (Ball et al. 2023)
    bias: float | None = None  # initial value; None: the mean return of the first step's episodes
    cql: NonNegative = 0.01  # weight of the cross-entropy that lowers Q of answers outside the data (CQL)
    beta: NonNegative = 16.0  # weight of Q in the logits; after little training less is better


@dataclass(frozen=True, kw_only=True)
class Args(bc.Published, Offline):
    """Options of MC."""


class Head(nn.Module):
    """A head that maps states to Q of every token of the vocabulary."""

    def __init__(
        self, trunk: nn.Module, width: int, vocabulary: int, *, seed: int, bias: float, norm: bool = False
    ) -> None:
        super().__init__()
        self.trunk = trunk
        self.q = mlp([width, 2 * width, vocabulary], seed=[seed], bias=bias, norm=norm)

    def heads(self) -> list[nn.Sequential]:
        """Return the only head."""
        return [self.q]


def returns(chain: Chain, boot: Tensor, *, gamma: float) -> Tensor:
    """Return the discounted reward to go of each token (N,), with bootstrap values `boot` (E,) at truncation."""
    goals = torch.cat([torch.zeros_like(chain.reward), boot]).tolist()
    reward, following = chain.reward.tolist(), chain.following.tolist()
    for token in range(len(reward) - 1, -1, -1):
        after = 0.0 if following[token] == DONE else goals[following[token]]
        goals[token] = reward[token] + gamma * after
    return torch.tensor(goals[: len(reward)], device=chain.reward.device)


class MonteCarlo(TokenCritic):
    """A critic that fits Q to returns."""

    def __init__(self, services: Services, args: Offline) -> None:
        self.args, policy = args, services.policy
        seed = services.pool.seed
        trunk = Trunk(policy, args.base, seed=seed, autocast=args.autocast, checkpointing=args.checkpointing)
        vocabulary = len(head_of(policy.model))
        head = Head(trunk, trunk.width, vocabulary, seed=seed, bias=args.bias or 0.0, norm=args.norm)
        net = Estimator(head.to(policy.device), lr=args.lr)
        super().__init__(services, net, trunk, **options(args))

    def losses(self, chain: Chain) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return half the squared error plus the weighted cross-entropy."""
        count = len(chain.ids)
        place, ends = chain.place[:count], chain.place[count:]
        q = self.net.online.q(chain.states)
        boot = (chain.behaviour * q.detach()[ends]).sum(-1)
        goal = returns(chain, boot, gamma=self.args.gamma)
        taken = q[place, chain.ids]
        of_q = (taken - goal).square() / 2
        of_cql = q.logsumexp(-1)[place] - taken
        return of_q + self.args.cql * of_cql, {"q_loss": of_q, "cql_loss": of_cql, "critic_return": goal}

    @torch.no_grad()
    def behaviour(self, batch: Batch, cut: Tensor) -> Tensor:
        """Return the policy's next-token probabilities (E, V) at the end of the rows `cut`."""
        if not len(cut):
            return torch.empty(0, 1, device=cut.device)
        policy, rows = self.services.policy, batch.rows(cut)
        last = policy.states(rows.ids, rows.attention, media=rows.media)[torch.arange(len(cut)), rows.lengths - 1]
        head = head_of(policy.model)
        return F.linear(last.to(head), head).float().softmax(-1)

    def quality(self, states: Tensor) -> Tensor:
        """Return Q, (R, V)."""
        q: Tensor = self.net.online.q(states)
        return q


def options(args: Offline) -> dict[str, Any]:
    """Return the keyword arguments of a TokenCritic."""
    schedule = linear(1.0, args.final_lr)
    return {"beta": args.beta, "steps": args.minibatches, "schedule": schedule, "centred": args.bias is None}


def recording(args: Offline) -> list[Stage]:
    """Return the stages that record a data set in the run's folder `data`; none if one is given."""
    if args.recorded is not None:
        return []
    size = 64
    stages: list[Stage] = []
    for name, count, demonstrated in (("demonstrate", args.demonstrated, True), ("record", args.sampled, False)):
        if count:
            stage = Generate(
                until=Until(steps=-(-count // size)),
                into="data",
                tasks=Uniform(size, budget=args.budget),
                planner=Stumble(args.stumbles) if demonstrated and args.stumbles else None,
                demonstrated=demonstrated,
                name=name,
            )
            stages.append(stage)
    return stages


def offline(args: Offline) -> list[Stage]:
    """Return imitation, recording and value fitting; the policy is evaluated alone before, guided by Q after."""
    fit = FitCritic(
        until=Until(steps=args.steps, seconds=args.seconds), recorded=Path(args.recorded or "data"), name="values"
    )
    imitation, *between, after = bc.around(args, *recording(args), fit)
    assert isinstance(imitation, Sft)
    assert isinstance(after, Evaluate)
    if args.recorded is not None:
        imitation = replace(imitation, recorded=Path(args.recorded))
    return [imitation, *between, replace(after, by="critic")]


def checked(args: Offline) -> None:
    """Raise RecipeError if there is nothing to learn from, or if a data set leaves an option without effect."""
    if args.recorded is None and not args.demonstrated and not args.sampled:
        raise RecipeError(
            "no episodes to learn from: set demonstrated or sampled above 0, or name a data set by recorded"
        )
    if args.recorded is not None and args.warmup_instances is not None:
        raise RecipeError(
            f"warmup_instances={args.warmup_instances} limits what the demonstrator plays, and {args.recorded} is "
            "imitated in its place: leave out warmup_instances or recorded"
        )


def blind(args: Offline) -> str | None:
    """Return the reason why the heads see no pictures; None if they do."""
    return "a value network of base small sees no pictures: use base own or policy" if args.base == "small" else None


def recipe(args: Args) -> Recipe:
    """Return imitation, recording and regression; the policy is evaluated alone before, guided by Q after."""
    checked(args)
    critic = partial(MonteCarlo, args=args)
    return Recipe(tasks=Uniform(args.episodes), critic=critic, blind=blind(args), stages=offline(args))
