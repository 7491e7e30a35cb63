"""ILQL: token values learnt from recorded episodes by expectile regression, which then bend the policy's logits.

    lmgym train ilql guess_number --model tiny
    lmgym train ilql wordle --recorded data/wordle.parquet

Snell et al. 2022, Offline RL for Natural Language Generation with Implicit Language Q Learning; defaults of Abdulhai et
al. 2023, LMRL-Gym. Without a data set it records one: episodes of the demonstrator with many wrong moves, and of the
policy that imitation has made. V is an upper expectile of Q over the answers in the data, so that Q learns of the best
continuation the data show, not of the mean one: pieces of different episodes are put together. The policy itself stays
as it is; the last evaluation plays by log pi + beta Q.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmgym.baselines import bc
from lmgym.errors import RecipeError
from lmgym.policy.forward import head_of
from lmgym.train.critics import Base, Estimator, Trunk, mlp
from lmgym.train.parts.planners import Stumble
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Evaluate, FitCritic, Generate, Recipe, Sft, Stage
from lmgym.train.schedule import Until
from lmgym.train.services import Services
from lmgym.train.token_critic import DONE, Chain, TokenCritic


@dataclass(frozen=True, kw_only=True)
class Offline(bc.Begun):
    """What learning values from recorded episodes takes, besides what the imitation before it does."""

    recorded: str | None = None  # data set to learn from, and to imitate before; None: recorded by the run itself
    demonstrated: int = 512  # episodes of the demonstrator to record, in steps of 64
    stumbles: float = 0.3  # share of their turns at which something wrong is played
    sampled: int = 1024  # episodes of the policy to record, in steps of 64
    budget: int | None = None  # turns of a recorded episode at most
    steps: int | None = 200
    seconds: float | None = None  # at most
    episodes: int = 64  # of a step
    minibatches: int = 2  # optimiser steps of a step
    base: Base = "own"  # that the heads read: own and small learn with them, policy stays as it is
    lr: float = 3e-4
    gamma: float = 0.99  # a token
    tau_target: float = 0.005  # what targets go of their way at each optimiser step
    bias: float = 0.0  # that all values begin with: about the mean return
    beta: float = 16.0  # weight of Q beside the policy's log-probabilities


@dataclass(frozen=True, kw_only=True)
class Args(Offline):
    """What ILQL takes, besides what all learning of values from records does."""

    tau: float = 0.7  # expectile that V is of Q; 0.5 is the mean
    cql: float = 0.01  # weight of the cross-entropy that keeps the Q of answers not in the data down


class Heads(nn.Module):
    """Twin Q of every token of the vocabulary, and V, of states."""

    def __init__(self, trunk: nn.Module, width: int, vocabulary: int, *, seed: int, bias: float) -> None:
        super().__init__()
        self.trunk = trunk
        sizes = [width, 2 * width]
        self.q = nn.ModuleList(mlp([*sizes, vocabulary], seed=[seed, n], bias=bias) for n in (0, 1))
        self.v = mlp([*sizes, 1], seed=[seed, 2], bias=bias)


def expectile(difference: Tensor, tau: float) -> Tensor:
    """Half the square of what is missing, weighed tau where it is positive and 1 - tau where not; any shape."""
    return (tau - (difference < 0).to(difference)).abs() * difference.square() / 2


def losses(
    q: tuple[Tensor, Tensor], v: Tensor, slow: tuple[Tensor, Tensor], chain: Chain, *, gamma: float, tau: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Those of Q (both), of V, and the cross-entropies of both Q; each (N,).

    `q` and `slow` are the twins and their targets at the tokens, (N, V); `v` is of all the chain's states, (N + E,).
    """
    ids, count = chain.ids[:, None], len(chain.ids)
    after = torch.where(chain.following == DONE, 0.0, v.detach()[chain.following])
    goal = chain.reward + gamma * after
    of_q = sum(((each.gather(1, ids)[:, 0] - goal).square() / 2 for each in q), torch.zeros_like(goal))
    least = torch.minimum(*(each.gather(1, ids)[:, 0] for each in slow)).detach()
    of_v = expectile(least - v[:count], tau)
    of_cql = sum((F.cross_entropy(each, chain.ids, reduction="none") for each in q), torch.zeros_like(goal))
    return of_q, of_v, of_cql


class Implicit(TokenCritic):
    """Fits the heads by ILQL's loss."""

    def __init__(self, services: Services, args: Args) -> None:
        self.args, policy = args, services.policy
        trunk = Trunk(policy, args.base, seed=services.pool.seed)
        heads = Heads(trunk, trunk.width, len(head_of(policy.model)), seed=services.pool.seed, bias=args.bias)
        net = Estimator(heads.to(policy.device), lr=args.lr, share=args.tau_target)
        super().__init__(services, net, trunk, beta=args.beta, steps=args.minibatches)

    def losses(self, chain: Chain) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The three of them together."""
        count = len(chain.ids)
        online, target = self.net.online, self.net.slow
        with torch.no_grad():
            slow = tuple(head(chain.slow[:count]) for head in target.q)
        q, v = tuple(head(chain.states[:count]) for head in online.q), online.v(chain.states)[:, 0]
        of_q, of_v, of_cql = losses(q, v, slow, chain, gamma=self.args.gamma, tau=self.args.tau)
        figures = {"q_loss": of_q, "v_loss": of_v, "cql_loss": of_cql, "v": v[:count]}
        return of_q + of_v + self.args.cql * of_cql, figures

    def quality(self, states: Tensor) -> Tensor:
        """The smaller of the targets' Q, (R, V)."""
        return torch.minimum(*(head(states) for head in self.net.slow.q))


def recording(args: Offline) -> list[Stage]:
    """The stages that record a data set, in the folder `data` of the run; none where there is one."""
    if args.recorded is not None:
        return []
    size = 64
    made: list[Stage] = []
    for name, count, demonstrated in (("demonstrate", args.demonstrated, True), ("record", args.sampled, False)):
        if count:
            stage = Generate(
                until=Until(steps=-(-count // size)),
                into="data",
                tasks=Uniform(size, budget=args.budget),
                planner=Stumble(args.stumbles) if demonstrated else None,
                demonstrated=demonstrated,
                name=name,
            )
            made.append(stage)
    return made


def offline(args: Offline) -> list[Stage]:
    """Imitation, a data set, values fitted to it; the policy alone before, as the critic guides it after."""
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
    """Raises RecipeError where there would be nothing to learn from."""
    if args.recorded is None and not args.demonstrated and not args.sampled:
        raise RecipeError("values are learnt from episodes: record some (demonstrated, sampled) or name a data set")
    if not 0 <= args.gamma <= 1 or not 0 < args.tau_target <= 1:
        raise RecipeError(f"gamma is in [0, 1], tau_target in (0, 1]; got {args.gamma} and {args.tau_target}")


def recipe(args: Args) -> Recipe:
    """Imitation, recording, ILQL; the policy evaluated alone before, and guided by Q after."""
    checked(args)
    if not 0 < args.tau < 1:
        raise RecipeError(f"tau is an expectile, in (0, 1); got {args.tau}")
    return Recipe(tasks=Uniform(args.episodes), critic=partial(Implicit, args=args), stages=offline(args))
