"""GRPO: compare each episode with the other attempts at its instance; no critic.

    lmgym train grpo guess_number --model tiny

Shao et al. 2024, DeepSeekMath (group advantages, a divergence of weight 0.04, one update per batch), which the defaults
follow; the paper gives no clip range, which has no effect with one update. Yu et al. 2025, DAPO (`clip_high=0.28`,
`aggregation="token_mean"`, and `drop_flat=True`, which does not refill the batch); Liu et al. 2025, Dr. GRPO
(`std=False`, `aggregation="const_norm"`); Ye et al. 2020 (`dual=3`); Xiong et al. 2025 (positive advantages only,
similar to RAFT: `negative_advantage_weight=0`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

import torch
from torch import Tensor

from lmgym.baselines import bc
from lmgym.errors import RecipeError
from lmgym.train.batch import Batch
from lmgym.train.interfaces import Credit, Term
from lmgym.train.math import Aggregation, Penalty, group_normal
from lmgym.train.parts.credit import beside_same_state, penalize_invalid, within_groups
from lmgym.train.parts.filters import drop_flat_groups, drop_lone_episodes
from lmgym.train.parts.importance import Choice, importance
from lmgym.train.parts.losses import kl_to_start, surrogate
from lmgym.train.parts.rewards import each, invalid_cost
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import AboveOne, Count, NonNegative, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until, constant
from lmgym.train.stages import Rl


@dataclass(frozen=True, kw_only=True)
class Grouped(bc.Learning):
    """Options of algorithms that play groups and train by the clipped surrogate, whatever their credit."""

    steps: Count | None = 60
    seconds: NonNegative | None = None  # time limit
    instances: int = 16  # per step
    group: int = 8  # attempts per instance
    budget: int | None = 16  # maximum number of turns in training; evaluations keep the task's own limit
    lr: Rate = 3e-4
    clip: NonNegative = 0.2  # lower clip range of the ratio
    clip_high: NonNegative = 0.28  # upper clip range of the ratio
    dual: AboveOne | None = 3.0  # dual clip: floor of the surrogate for negative advantages; None: off
    aggregation: Aggregation = "seq_mean"
    longest: PositiveInt = 1024  # tokens; the divisor of const_norm
    drop_flat: bool = True  # drop groups whose returns are equal
    kl: NonNegative = 0.0  # weight of the divergence from the start policy of RL (--lora: from the base)
    kl_kind: Penalty = "k2"
    epochs: PositiveInt = 1
    minibatches: PositiveInt = 4  # optimiser steps per epoch
    importance: Choice = "none"  # importance weights for a sampler that differs from the trainer
    importance_least: float | None = None
    importance_most: float | None = None
    rescore: bool | None = None  # recompute old log-probs with the trainer; None: unless both are fp32
    invalid_cost: NonNegative = 0.0  # penalty in the reward of an invalid action


@dataclass(frozen=True, kw_only=True)
class Weighted(Grouped):
    """Options of algorithms that weigh GRPO's advantages."""

    std: bool = True  # divide advantages by the group's standard deviation
    negative_advantage_weight: NonNegative = 1.0  # factor of advantages below zero; 1: the paper, 0: as in RAFT
    state_advantage_weight: NonNegative = 0.0  # weight of the advantage within the same state (GiGPO)
    invalid_penalty: NonNegative = 0.0  # an invalid action's advantage is capped at 0, then lowered by this


@dataclass(frozen=True, kw_only=True)
class Args(bc.Published, Weighted):
    """Options of GRPO, by default those of DeepSeekMath."""

    lr: Rate = 1e-6
    clip_high: NonNegative = 0.2
    dual: AboveOne | None = None
    drop_flat: bool = False
    kl: NonNegative = 0.04
    kl_kind: Penalty = "k3"
    minibatches: PositiveInt = 1


@within_groups
def credit(
    batch: Batch, *, std: bool, negative_weight: float = 1.0, state_weight: float = 0.0, invalid_penalty: float = 0.0
) -> Tensor:
    """Return each episode's advantage over its group on all its tokens, changed by the weights in `Args`; (B, T)."""
    if bool(batch.forked.any()):
        raise RecipeError("GRPO compares whole episodes: for forks use lmgym.train.parts.trees.tree_credit")
    group = batch.groups()
    if int(torch.unique(group, return_counts=True)[1].min()) < 2:
        raise RecipeError("GRPO compares the attempts of a group, and a group has a single episode; use group >= 2")
    advantage = group_normal(batch.returns(), group, std=std)[batch.episode][:, None] * batch.mask
    if state_weight:
        advantage = advantage + state_weight * _scale(batch, std)[batch.episode][:, None] * beside_same_state(batch)
    advantage = torch.where(advantage < 0, negative_weight * advantage, advantage).float()
    return penalize_invalid(advantage, batch, invalid_penalty) if invalid_penalty else advantage


def _scale(batch: Batch, std: bool) -> Tensor:
    """Return the factor from return differences to advantages in each episode's group, 1 for equal returns; (E,)."""
    returns, group = batch.returns(), batch.groups()
    centred = group_normal(returns, group, std=False)
    wide = group_normal(returns, group, std=std) / torch.where(centred == 0, 1.0, centred)
    _, member = torch.unique(group, return_inverse=True)
    most, spread = (torch.zeros_like(returns).scatter_reduce(0, member, x, "amax") for x in (wide, centred.abs()))
    return torch.where(spread > 1e-6, most, 1.0)[member]  # as drop_flat_groups


def options(args: bc.Learning) -> Weighted:
    """Return options of groups, with the values of those that `args` has as well."""
    return Weighted(**{each.name: getattr(args, each.name) for each in fields(Weighted) if hasattr(args, each.name)})


def terms(args: Grouped) -> list[Term]:
    """Return the surrogate and, if its weight is not 0, the divergence."""
    kind, longest = args.aggregation, args.longest
    clip = partial(surrogate, low=args.clip, high=args.clip_high, dual=args.dual)
    loss = [Term(loss=clip, aggregation=kind, longest=longest)]
    if args.kl:
        kl, coef = partial(kl_to_start, kind=args.kl_kind), constant(args.kl)
        loss.append(Term(loss=kl, name="kl", coef=coef, aggregation=kind, longest=longest, reference=True))
    return loss


def grouped(args: Grouped, credit: Credit) -> Recipe:
    """Return imitation, then groups of attempts trained by the surrogate with `credit`, between two evaluations."""
    if args.group < 2:
        raise RecipeError(f"groups have attempts to compare: group must be at least 2; got {args.group}")
    rl = Rl(
        until=Until(steps=args.steps, seconds=args.seconds),
        optimiser=bc.optimiser(args),
        rescore=args.rescore,
    )
    return Recipe(
        tasks=Uniform(args.instances, tries=args.group, budget=args.budget),
        reward=[each(partial(invalid_cost, cost=args.invalid_cost))] if args.invalid_cost else [],
        filter=[*([drop_flat_groups] if args.drop_flat else []), drop_lone_episodes],
        credit=credit,
        importance=importance(args.importance, args.importance_least, args.importance_most),
        loss=terms(args),
        stages=bc.around(args, rl),
    )


def recipe(args: Weighted) -> Recipe:
    """Return GRPO."""
    advantages = partial(
        credit,
        std=args.std,
        negative_weight=args.negative_advantage_weight,
        state_weight=args.state_advantage_weight,
        invalid_penalty=args.invalid_penalty,
    )
    return grouped(args, advantages)
