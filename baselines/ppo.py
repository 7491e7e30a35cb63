"""PPO: a critic estimates the value of the state before each token; advantages are generalised (GAE).

    lmgym train ppo guess_number --model tiny

Schulman et al. 2017 (clipped surrogate), 2016 (generalised advantages); Ziegler et al. 2019 (divergence from the start
policy in the reward, with adapted coefficient); Abdulhai et al. 2023, LMRL-Gym, whose update the defaults follow: one
pass in four minibatches, a value head that is trained with the policy, a value clip of 0.2, no discount, a divergence
of weight 0.001. Deviations: the head has two layers in place of one, and LMRL-Gym's loss on demonstrations, of weight 1
in Wordle, is left out.

Advantages skip the tokens of the environment and segment boundaries. A truncated episode bootstraps from the value of
its final observation; where that exceeds the context, from the last state that has a value. With `limit_ends=True`, the
default, a turn limit counts as termination.
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
from lmgym.train.parts.credit import Decay, Level, gae, valued_tokens, whitened
from lmgym.train.parts.importance import Choice, importance
from lmgym.train.parts.kl import reward_kl
from lmgym.train.parts.losses import entropy_bonus, kl_to_start, surrogate, unit_surrogate
from lmgym.train.parts.rewards import each, invalid_cost, limit_ends
from lmgym.train.parts.tasks import Uniform
from lmgym.train.parts.value import Placement, ValueCritic, ValueSpec
from lmgym.train.ranges import AboveOne, Count, Fraction, NonNegative, Positive, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until, constant
from lmgym.train.services import Services
from lmgym.train.stages import FitCritic, Rl

SMALL = "a small critic sees no pictures: use critic head, network or joint"


@dataclass(frozen=True, kw_only=True)
class Shared(bc.Learning):
    """Options of PPO and of the recipes that build on it, with the values of small models."""

    steps: Count | None = 45
    seconds: NonNegative | None = None  # time limit
    instances: int = 128  # per step
    tries: PositiveInt = 1  # episodes per instance
    budget: int | None = 16  # maximum number of turns in training; evaluations keep the task's own limit
    lr: Rate = 3e-4
    gamma: Fraction = 0.99  # discount per action token, or per turn; at 1 truncation costs nothing, see limit_ends
    lam: Fraction = 0.95
    level: Level = "token"  # steps of the advantage estimate
    turn_gamma: Fraction = 0.95  # discount per turn, for level both
    whiten: bool = True  # normalise advantages over the batch
    whiten_floor: NonNegative = 0.1  # lower bound on the deviation they are divided by, in units of return
    ratio: Literal["token", "turn"] = "token"  # tokens that share a ratio
    clip: NonNegative = 0.2  # lower clip range of the ratio
    clip_high: NonNegative = 0.2  # upper clip range of the ratio
    dual: AboveOne | None = None  # dual clip: floor of the surrogate for negative advantages; None: off
    aggregation: Aggregation = "token_mean"
    longest: PositiveInt = 1024  # tokens; the divisor of const_norm
    entropy: float = 0.0  # weight of the entropy bonus
    epochs: PositiveInt = 1
    minibatches: PositiveInt = 4  # optimiser steps per epoch
    critic: Placement = "head"  # on the policy's states; small, network: its own trunk; joint: in the policy's loss
    critic_steps: Count = 5  # warm-up steps that train the critic alone
    critic_lr: Rate = 1e-3  # with critic joint of its warm-up alone: in RL the head learns at `lr`
    critic_epochs: PositiveInt = 4  # passes over the batch; with critic joint of its warm-up alone
    critic_lam: Fraction | None = None  # lambda of its targets; None: `lam`
    value_bias: float = 0.0  # initial value, about the mean return
    value_clip: NonNegative = 0.0  # value clipping: how far a value may move from the old one; 0: off
    value_coef: NonNegative = 0.5  # weight of the value loss, for critic joint
    kl_reward: NonNegative = 1e-3  # penalty in the reward per nat from the start policy of RL (--lora: from the base)
    kl_target: Positive | None = None  # nats per episode to which kl_reward adapts; None: fixed
    kl_horizon: PositiveInt = 10_000  # episodes; time scale of the adaptation
    kl: NonNegative = 0.0  # weight of the divergence as a loss term, instead of in the reward
    kl_kind: Penalty = "k2"
    importance: Choice = "none"  # importance weights for a sampler that differs from the trainer
    importance_least: float | None = None
    importance_most: float | None = None
    rescore: bool | None = None  # recompute old log-probs with the trainer; None: unless both are fp32
    invalid_cost: NonNegative = 0.0  # penalty in the reward of an invalid action
    limit_ends: bool = False  # treat the task's turn limit and `budget` as termination; False: as truncation


@dataclass(frozen=True, kw_only=True)
class Args(bc.Published, Shared):
    """Options of PPO, by default those of LMRL-Gym."""

    lr: Rate = 1e-5
    gamma: Fraction = 1.0
    whiten_floor: NonNegative = 0.0
    critic: Placement = "joint"
    critic_steps: Count = 0
    critic_lr: Rate = 1e-5
    value_clip: NonNegative = 0.2
    value_coef: NonNegative = 1.0
    limit_ends: bool = True


def credit(args: Shared, lam: Decay | None = None) -> Credit:
    """Return the credit function: generalised advantages from the critic's values, by `lam` or else the options'."""
    lam = args.lam if lam is None else lam
    advantages = partial(gae, gamma=args.gamma, lam=lam, level=args.level, turn_gamma=args.turn_gamma)
    return whitened(advantages, floor=args.whiten_floor) if args.whiten else advantages


def terms(args: Shared) -> list[Term]:
    """Return the surrogate and, if their weights are not 0, entropy and divergence."""
    term = partial(Term, aggregation=args.aggregation, longest=args.longest)
    if args.ratio == "turn":
        clip: Loss = partial(unit_surrogate, unit="turn", low=args.clip, high=args.clip_high, dual=args.dual)
        loss = [term(loss=clip, counted=partial(valued_tokens, level="turn"))]  # a turn counts once, not each token
    else:
        clip = partial(surrogate, low=args.clip, high=args.clip_high, dual=args.dual)
        loss = [term(loss=clip)]
    if args.entropy:
        loss.append(term(loss=entropy_bonus, name="entropy_bonus", coef=constant(args.entropy)))
    if args.kl:
        kl = partial(kl_to_start, kind=args.kl_kind)
        loss.append(term(loss=kl, name="kl", coef=constant(args.kl), reference=True))
    return loss


def critic(services: Services, *, args: Shared) -> Critic:
    """Return the critic; its targets use the lambda of the advantages unless `critic_lam` is set."""
    spec = ValueSpec(
        place=args.critic,
        gamma=args.gamma,
        lam=args.lam if args.critic_lam is None else args.critic_lam,
        level=args.level,
        turn_gamma=args.turn_gamma,
        clip=args.value_clip or None,
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


def recipe(args: Shared) -> Recipe:
    """Return imitation, critic warm-up and PPO, with the same evaluation before and after."""
    if args.ratio == "turn" and args.level != "turn":
        raise RecipeError("a ratio of whole turns needs one advantage per turn: set level=turn")
    reward: list[Reward] = [each(partial(invalid_cost, cost=args.invalid_cost))] if args.invalid_cost else []
    rl = Rl(
        until=Until(steps=args.steps, seconds=args.seconds),
        optimiser=bc.optimiser(args),
        rescore=args.rescore,
    )
    return Recipe(
        tasks=Uniform(args.instances, tries=args.tries, budget=args.budget),
        reward=[*reward, each(limit_ends)] if args.limit_ends else reward,
        reward_kl=reward_kl(args.kl_reward, target=args.kl_target, horizon=args.kl_horizon),
        credit=credit(args),
        importance=importance(args.importance, args.importance_least, args.importance_most),
        loss=terms(args),
        critic=partial(critic, args=args),
        blind=SMALL if args.critic == "small" else None,
        stages=bc.around(args, FitCritic(until=Until(steps=args.critic_steps)), rl),
    )
