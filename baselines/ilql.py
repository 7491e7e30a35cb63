"""ILQL: learn token values from recorded episodes by expectile regression, then add them to the policy's logits.

    lmgym train ilql guess_number --model tiny
    lmgym train ilql wordle --recorded data/wordle.parquet

Snell et al. 2022, Offline RL for Natural Language Generation with Implicit Language Q Learning; defaults of Abdulhai et
al. 2023, LMRL-Gym. Without a data set it records one: episodes of the demonstrator with many wrong moves, and of the
imitated policy. V is an upper expectile of Q over the answers in the data, so that Q reflects the best continuation in
the data rather than the mean: parts of different episodes are combined. The policy itself is not changed; the last
evaluation samples from log pi + beta Q. Deviations from the released code: those of `mc.py`, and Q is that of the
target networks, where the release takes the trained ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from lmgym.baselines import bc, mc
from lmgym.baselines.curves.directions import STITCH
from lmgym.errors import RecipeError
from lmgym.policy.local.forward import head_of
from lmgym.train.critics import Estimator, Trunk, mlp
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.services import Services
from lmgym.train.token_critic import DONE, Chain, TokenCritic

EXPERIMENT = replace(STITCH, name="ilql")  # that of LMRL-Gym


@dataclass(frozen=True, kw_only=True)
class Args(bc.Published, mc.Offline):
    """Options of ILQL."""

    tau: float = 0.7  # expectile of Q that V estimates; 0.5 is the mean
    tau_target: float = 0.005  # update rate of the target networks per optimiser step; 0.02 for runs of some hundred


class TokenHeads(nn.Module):
    """Heads that map states to twin Q of every token of the vocabulary, and to V."""

    def __init__(
        self, trunk: nn.Module, width: int, vocabulary: int, *, seed: int, bias: float, norm: bool = False
    ) -> None:
        super().__init__()
        self.trunk = trunk
        sizes = [width, 2 * width]
        self.q = nn.ModuleList(mlp([*sizes, vocabulary], seed=[seed, n], bias=bias, norm=norm) for n in (0, 1))
        self.v = mlp([*sizes, 1], seed=[seed, 2], bias=bias, norm=norm)

    def heads(self) -> list[nn.Module]:
        """Return all three heads."""
        return [*self.q, self.v]


def expectile(difference: Tensor, tau: float) -> Tensor:
    """Return half the squared difference, weighted by tau where it is positive and 1 - tau elsewhere; any shape."""
    return (tau - (difference < 0).to(difference)).abs() * difference.square() / 2


def losses(
    q: tuple[Tensor, Tensor], v: Tensor, slow: tuple[Tensor, Tensor], chain: Chain, *, gamma: float, tau: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the losses of both Q, of V, and the cross-entropies of both Q; each (N,).

    `q` and `slow` are the twins and their targets in the states of the chain, (S, V), and `v` is V there, (S,).
    """
    place, ids = chain.place[: len(chain.ids)], chain.ids
    done = chain.following == DONE
    after = torch.where(done, 0.0, v.detach()[chain.place[chain.following.masked_fill(done, 0)]])
    goal = chain.reward + gamma * after
    of_q = sum(((each[place, ids] - goal).square() / 2 for each in q), torch.zeros_like(goal))
    least = torch.minimum(*(each[place, ids] for each in slow)).detach()
    of_v = expectile(least - v[place], tau)
    of_cql = sum((each.logsumexp(-1)[place] - each[place, ids] for each in q), torch.zeros_like(goal))
    return of_q, of_v, of_cql


class Implicit(TokenCritic):
    """A critic that fits its heads by ILQL's loss."""

    def __init__(self, services: Services, args: Args) -> None:
        self.args, policy = args, services.policy
        seed = services.pool.seed
        trunk = Trunk(policy, args.base, seed=seed, autocast=args.autocast, checkpointing=args.checkpointing)
        vocabulary = len(head_of(policy.model))
        heads = TokenHeads(trunk, trunk.width, vocabulary, seed=seed, bias=args.bias or 0.0, norm=args.norm)
        net = Estimator(heads.to(policy.device), lr=args.lr, share=args.tau_target)
        super().__init__(services, net, trunk, **mc.options(args))

    def losses(self, chain: Chain) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the sum of the three losses."""
        online = self.net.online
        with torch.no_grad():
            slow = tuple(head(chain.slow) for head in self.net.slow.q)
        q, v = tuple(head(chain.states) for head in online.q), online.v(chain.states)[:, 0]
        of_q, of_v, of_cql = losses(q, v, slow, chain, gamma=self.args.gamma, tau=self.args.tau)
        figures = {"q_loss": of_q, "v_loss": of_v, "cql_loss": of_cql, "v": v[chain.place[: len(chain.ids)]]}
        return of_q + of_v + self.args.cql * of_cql, figures

    def quality(self, states: Tensor) -> Tensor:
        """Return the minimum of the target Qs, (R, V)."""
        return torch.minimum(*(head(states) for head in self.net.slow.q))


def recipe(args: Args) -> Recipe:
    """Return imitation, recording and ILQL; the policy is evaluated alone before, guided by Q after."""
    mc.checked(args)
    if not 0 < args.tau < 1 or not 0 < args.tau_target <= 1:
        raise RecipeError(f"tau must be in (0, 1) and tau_target in (0, 1]; got {args.tau} and {args.tau_target}")
    critic = partial(Implicit, args=args)
    return Recipe(tasks=Uniform(args.episodes), critic=critic, blind=mc.blind(args), stages=mc.offline(args))
