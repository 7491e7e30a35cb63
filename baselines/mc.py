"""MC returns: token values regressed on what recorded episodes went on to earn, which then bend the policy's logits.

    lmgym train mc guess_number --model tiny
    lmgym train mc wordle --recorded data/wordle.parquet

Abdulhai et al. 2023, LMRL-Gym. Without a data set it records one: episodes of the demonstrator with many wrong moves,
and of the policy that imitation has made. Q is that of whoever made the data, so playing by log pi + beta Q is one step
of improvement and puts nothing together that no episode shows as a whole. The return of an episode that was cut goes on
with what the policy would earn by Q where it was cut.
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
from lmgym.policy.local.forward import head_of
from lmgym.train.batch import Batch
from lmgym.train.critics import Base, Estimator, Trunk, mlp
from lmgym.train.parts.planners import Stumble
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.services import Services
from lmgym.train.stages import Evaluate, FitCritic, Generate, Sft, Stage
from lmgym.train.token_critic import DONE, Chain, TokenCritic


@dataclass(frozen=True, kw_only=True)
class Offline(bc.Begun):
    """What learning values from recorded episodes takes, besides what the imitation before it does."""

    recorded: str | None = None  # data set to learn from, and to imitate before; None: recorded by the run itself
    demonstrated: int = 512  # episodes of the demonstrator to record, in steps of 64
    stumbles: float = 0.3  # share of their turns at which something wrong is played; as `interject`
    sampled: int = 1024  # episodes of the policy to record, in steps of 64
    budget: int | None = None  # turns of a recorded episode at most
    steps: int | None = 200
    seconds: float | None = None  # at most
    episodes: int = 64  # of a step
    minibatches: int = 4  # optimiser steps of a step
    base: Base = "own"  # that the heads read: own and small learn with them, policy stays as it is
    lr: float = 1e-3
    gamma: float = 0.99  # a token
    bias: float | None = None  # that all values begin with; None: the mean return of the first step's episodes
    cql: float = 0.01  # weight of the cross-entropy that keeps the Q of answers not in the data down
    beta: float = 4.0  # weight of Q beside the policy's log-probabilities; 16 in LMRL-Gym, after far longer fits


@dataclass(frozen=True, kw_only=True)
class Args(Offline):
    """What MC takes: nothing besides."""


class Head(nn.Module):
    """Q of every token of the vocabulary, of states."""

    def __init__(self, trunk: nn.Module, width: int, vocabulary: int, *, seed: int, bias: float) -> None:
        super().__init__()
        self.trunk = trunk
        self.q = mlp([width, 2 * width, vocabulary], seed=[seed], bias=bias)

    def heads(self) -> list[nn.Sequential]:
        """The one there is."""
        return [self.q]


def returns(chain: Chain, boot: Tensor, *, gamma: float) -> Tensor:
    """Discounted reward to go of each token, (N,); it goes on with `boot` (E,) where an episode was cut."""
    found = torch.cat([torch.zeros_like(chain.reward), boot]).tolist()
    reward, following = chain.reward.tolist(), chain.following.tolist()
    for token in range(len(reward) - 1, -1, -1):
        after = 0.0 if following[token] == DONE else found[following[token]]
        found[token] = reward[token] + gamma * after
    return torch.tensor(found[: len(reward)], device=chain.reward.device)


class MonteCarlo(TokenCritic):
    """Fits Q to returns."""

    def __init__(self, services: Services, args: Offline) -> None:
        self.args, policy = args, services.policy
        seed = services.pool.seed
        trunk = Trunk(policy, args.base, seed=seed, autocast=args.autocast, checkpointing=args.checkpointing)
        head = Head(trunk, trunk.width, len(head_of(policy.model)), seed=seed, bias=args.bias or 0.0)
        net = Estimator(head.to(policy.device), lr=args.lr)
        super().__init__(services, net, trunk, beta=args.beta, steps=args.minibatches, centred=args.bias is None)

    def losses(self, chain: Chain) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Half the squared error, and the cross-entropy."""
        count = len(chain.ids)
        q = self.net.online.q(chain.states)
        boot = (chain.behaviour * q[count:].detach()).sum(-1)
        goal = returns(chain, boot, gamma=self.args.gamma)
        of_q = (q[:count].gather(1, chain.ids[:, None])[:, 0] - goal).square() / 2
        of_cql = F.cross_entropy(q[:count], chain.ids, reduction="none")
        return of_q + self.args.cql * of_cql, {"q_loss": of_q, "cql_loss": of_cql, "critic_return": goal}

    @torch.no_grad()
    def behaviour(self, batch: Batch, cut: Tensor) -> Tensor:
        """The policy's probabilities (E, V) after the last token of the rows `cut`."""
        if not len(cut):
            return torch.empty(0, 1, device=cut.device)
        policy, rows = self.services.policy, batch.rows(cut)
        last = policy.states(rows.ids, rows.attention, media=rows.media)[torch.arange(len(cut)), rows.lengths - 1]
        head = head_of(policy.model)
        return F.linear(last.to(head), head).float().softmax(-1)

    def quality(self, states: Tensor) -> Tensor:
        """Q, (R, V)."""
        found: Tensor = self.net.online.q(states)
        return found


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
                planner=Stumble(args.stumbles) if demonstrated and args.stumbles else None,
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


def blind(args: Offline) -> str | None:
    """Why the heads see no pictures; None where they do."""
    return "values of base small are read from ids alone: use the base own or policy" if args.base == "small" else None


def recipe(args: Args) -> Recipe:
    """Imitation, recording, the regression; the policy evaluated alone before, and guided by Q after."""
    checked(args)
    critic = partial(MonteCarlo, args=args)
    return Recipe(tasks=Uniform(args.episodes), critic=critic, blind=blind(args), stages=offline(args))
