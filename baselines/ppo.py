"""PPO: a critic says what the state before each token is worth; each token is judged by what changed after it.

    lmgym train ppo guess_number --model tiny

Schulman et al. 2017 (clipped surrogate), 2016 (generalised advantages); Ziegler et al. 2019 (divergence from the start
policy in the reward, its coefficient adapted). Tokens are chained over what the environment writes and over segments;
an episode that was cut, by the task's limit of turns as by anything else, is worth what the critic says of the
observation it was cut at, one that ended nothing more; with `limit_ends=True` that limit ends it like any failure.
`level="turn"` with `ratio="turn"` is PPO over whole answers (VLA-RL), `level="both"` the bi-level advantages of RAGEN.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from lmgym.baselines import bc
from lmgym.errors import RecipeError
from lmgym.train.interfaces import Credit, Critic, Loss, Optimiser, Reward, Term
from lmgym.train.math import Aggregation, Penalty
from lmgym.train.parts.credit import Level, gae, whitened
from lmgym.train.parts.importance import Choice, importance
from lmgym.train.parts.kl import reward_kl
from lmgym.train.parts.losses import entropy_bonus, kl_to_start, surrogate, unit_surrogate
from lmgym.train.parts.rewards import invalid_cost, limit_ends
from lmgym.train.parts.tasks import Uniform
from lmgym.train.parts.value import Placement, ValueCritic, ValueSpec
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until, constant
from lmgym.train.services import Services
from lmgym.train.stages import FitCritic, Rl

SMALL = "a small critic reads ids alone and sees no pictures: use the critic head, network or joint"


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """What PPO takes, besides what the imitation before it does."""

    steps: int | None = 45
    seconds: float | None = None  # at most
    instances: int = 128  # tasks of a step
    tries: int = 1  # episodes of each
    budget: int | None = 16  # turns of a training episode at most; evaluation keeps the task's own limit
    lr: float = 3e-4
    gamma: float = 0.99  # of an action token, or of a turn; at 1 an episode that is cut loses nothing by never ending
    lam: float = 0.95
    level: Level = "token"  # of the estimate
    turn_gamma: float = 0.95  # of a turn, where the level is both
    whiten: bool = True  # advantages over the batch
    whiten_floor: float = 0.1  # least deviation that they are divided by, in units of return
    ratio: Literal["token", "turn"] = "token"  # what has one ratio
    clip: float = 0.2  # below 1
    clip_high: float = 0.2  # above 1
    dual: float | None = None  # floor of the surrogate, for bad tokens that became likely
    aggregation: Aggregation = "token_mean"
    longest: int = 1024  # tokens, by which const_norm divides
    entropy: float = 0.0  # weight of the entropy
    epochs: int = 1
    minibatches: int = 4  # optimiser steps of an epoch
    critic: Placement = "head"  # on the policy's states; small, network: own trunk; joint: in the policy's loss
    critic_steps: int = 5  # in which the critic learns alone, before the policy does
    critic_lr: float = 1e-3
    critic_epochs: int = 4
    critic_lam: float | None = None  # of its targets; None: as `lam`
    value_bias: float = 0.0  # what values begin as: about the mean return
    value_clip: float | None = None  # how far a value may gain by moving in a step
    value_coef: float = 0.5  # of the value loss, where the critic is joint
    kl_reward: float = 1e-3  # cost in a token's reward of a nat from the policy as RL began; --lora: from the base
    kl_target: float | None = None  # nats an episode, which the cost then follows
    kl_horizon: int = 10_000  # episodes over which it does
    kl: float = 0.0  # weight of the divergence in the loss, in place of that in the reward
    kl_kind: Penalty = "k2"
    importance: Choice = "none"  # weights of tokens, where the sampler is not the trainer
    importance_least: float | None = None
    importance_most: float | None = None
    rescore: bool | None = None  # old log-probs by the trainer; None: where it or the sampler is not fp32
    invalid_cost: float = 0.0  # cost of an action that was none
    limit_ends: bool = False  # the task's own limit of turns is an end as any failure; False: a cut like others


def credit(args: Args) -> Credit:
    """Generalised advantages by the critic's values."""
    judge = partial(gae, gamma=args.gamma, lam=args.lam, level=args.level, turn_gamma=args.turn_gamma)
    return whitened(judge, floor=args.whiten_floor) if args.whiten else judge


def terms(args: Args) -> list[Term]:
    """The surrogate and, where they have a weight, the entropy and the divergence."""
    clip: Loss = partial(surrogate, low=args.clip, high=args.clip_high, dual=args.dual)
    if args.ratio == "turn":
        clip = partial(unit_surrogate, unit="turn", low=args.clip, high=args.clip_high, dual=args.dual)
    term = partial(Term, aggregation=args.aggregation, longest=args.longest)
    found = [term(loss=clip)]
    if args.entropy:
        found.append(term(loss=entropy_bonus, name="entropy_bonus", coef=constant(args.entropy)))
    if args.kl:
        kl = partial(kl_to_start, kind=args.kl_kind)
        found.append(term(loss=kl, name="kl", coef=constant(args.kl), reference=True))
    return found


def critic(services: Services, *, args: Args) -> Critic:
    """The critic, whose returns are those of the advantages unless `critic_lam` says otherwise."""
    spec = ValueSpec(
        place=args.critic,
        gamma=args.gamma,
        lam=args.lam if args.critic_lam is None else args.critic_lam,
        level=args.level,
        turn_gamma=args.turn_gamma,
        clip=args.value_clip,
        bias=args.value_bias,
        coef=args.value_coef,
        optimiser=Optimiser(
            lr=args.critic_lr,
            epochs=args.critic_epochs,
            minibatches=args.minibatches,
            autocast=args.autocast,
            checkpointing=args.checkpointing,
        ),
    )
    return ValueCritic(services, spec)


def recipe(args: Args) -> Recipe:
    """Imitation, a warm-up of the critic, PPO, and the same evaluation before and after."""
    if args.ratio == "turn" and args.level != "turn":
        raise RecipeError("a ratio of whole turns needs one advantage a turn: set level=turn")
    reward: list[Reward] = [partial(invalid_cost, cost=args.invalid_cost)] if args.invalid_cost else []
    rl = Rl(
        until=Until(steps=args.steps, seconds=args.seconds),
        optimiser=bc.optimiser(args),
        rescore=args.rescore,
    )
    return Recipe(
        tasks=Uniform(args.instances, tries=args.tries, budget=args.budget),
        reward=[*reward, limit_ends] if args.limit_ends else reward,
        reward_kl=reward_kl(args.kl_reward, target=args.kl_target, horizon=args.kl_horizon),
        credit=credit(args),
        importance=importance(args.importance, args.importance_least, args.importance_most),
        loss=terms(args),
        critic=partial(critic, args=args),
        blind=SMALL if args.critic == "small" else None,
        stages=bc.around(args, FitCritic(until=Until(steps=args.critic_steps)), rl),
    )
