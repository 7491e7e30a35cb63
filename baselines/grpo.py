"""GRPO: each episode is judged against the other tries of its task; no critic.

    lmgym train grpo guess_number --model tiny

Shao et al. 2024, DeepSeekMath (group advantages); Yu et al. 2025, DAPO (asymmetric clip, flat groups dropped, mean over
tokens); Liu et al. 2025, Dr. GRPO (`std=False`, `aggregation="const_norm"`); Ye et al. 2020 (dual clip);
Xiong et al. 2025 (positive advantages alone, as in RAFT: `negative_advantage_weight=0`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from lmgym.baselines import bc
from lmgym.errors import RecipeError
from lmgym.train.batch import Batch
from lmgym.train.interfaces import Term
from lmgym.train.math import Aggregation, Penalty, group_normal
from lmgym.train.parts.credit import beside_same_state, penalize_invalid, within_groups
from lmgym.train.parts.filters import drop_flat_groups, drop_lone_episodes
from lmgym.train.parts.importance import Choice, importance
from lmgym.train.parts.losses import kl_to_start, surrogate
from lmgym.train.parts.rewards import invalid_cost
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until, constant
from lmgym.train.stages import Rl


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """What GRPO takes, besides what the imitation before it does."""

    steps: int | None = 60
    seconds: float | None = None  # at most
    instances: int = 16  # tasks of a step
    group: int = 8  # tries of each
    budget: int | None = 16  # turns of a training episode at most; evaluation keeps the task's own limit
    lr: float = 3e-4
    std: bool = True  # divide by the group's deviation
    negative_advantage_weight: float = 1.0  # of advantages below zero; 1 is the paper's, 0 is RAFT's
    clip: float = 0.2  # below 1
    clip_high: float = 0.28  # above 1
    dual: float | None = 3.0  # floor of the surrogate, for bad tokens that became likely
    aggregation: Aggregation = "seq_mean"
    longest: int = 1024  # tokens, by which const_norm divides
    drop_flat: bool = True  # groups without variance
    kl: float = 0.0  # weight of the divergence from the policy that RL began with; --lora: from the base
    kl_kind: Penalty = "k2"
    epochs: int = 1
    minibatches: int = 4  # optimiser steps of an epoch
    importance: Choice = "none"  # weights of tokens, where the sampler is not the trainer
    importance_least: float | None = None
    importance_most: float | None = None
    rescore: bool | None = None  # old log-probs by the trainer; None: where it or the sampler is not fp32
    invalid_cost: float = 0.0  # cost of an action that was none, to its episode's return
    state_advantage_weight: float = 0.0  # of the advantage among a group's answers to the same state (GiGPO)
    invalid_penalty: float = 0.0  # taken from the advantage of such an answer itself; above 0, nothing praises it


@within_groups
def credit(
    batch: Batch, *, std: bool, negative_weight: float = 1.0, state_weight: float = 0.0, invalid_penalty: float = 0.0
) -> Tensor:
    """Return each episode's advantage over its group on all its tokens, changed by the weights in `Args`; (B, T)."""
    if bool(batch.forked.any()):
        raise RecipeError("GRPO compares whole episodes: where some fork, use lmgym.train.parts.trees.tree_credit")
    group = batch.groups()
    if int(torch.unique(group, return_counts=True)[1].min()) < 2:
        raise RecipeError("GRPO compares the tries of a task: a group has a single episode; use group >= 2")
    advantage = group_normal(batch.returns(), group, std=std)[batch.episode][:, None] * batch.mask
    if state_weight:
        advantage = advantage + state_weight * _scale(batch, std)[batch.episode][:, None] * beside_same_state(batch)
    advantage = torch.where(advantage < 0, negative_weight * advantage, advantage).float()
    return penalize_invalid(advantage, batch, invalid_penalty) if invalid_penalty else advantage


def _scale(batch: Batch, std: bool) -> Tensor:
    """What the difference of two returns of a group is multiplied by, for each episode; (E,)."""
    returns, group = batch.returns(), batch.groups()
    centred = group_normal(returns, group, std=False)
    wide = group_normal(returns, group, std=std) / torch.where(centred == 0, 1.0, centred)
    _, member = torch.unique(group, return_inverse=True)
    most = torch.zeros_like(returns).scatter_reduce(0, member, wide, "amax")
    return most[member]


def terms(args: Args) -> list[Term]:
    """The surrogate and, where it has a weight, the divergence."""
    kind, longest = args.aggregation, args.longest
    clip = partial(surrogate, low=args.clip, high=args.clip_high, dual=args.dual)
    found = [Term(loss=clip, aggregation=kind, longest=longest)]
    if args.kl:
        kl, coef = partial(kl_to_start, kind=args.kl_kind), constant(args.kl)
        found.append(Term(loss=kl, name="kl", coef=coef, aggregation=kind, longest=longest, reference=True))
    return found


def recipe(args: Args) -> Recipe:
    """Imitation, GRPO, and the same evaluation before and after."""
    if args.group < 2:
        raise RecipeError(f"GRPO compares the tries of a task: group must be at least 2; got {args.group}")
    rl = Rl(
        until=Until(steps=args.steps, seconds=args.seconds),
        optimiser=bc.optimiser(args),
        rescore=args.rescore,
    )
    return Recipe(
        tasks=Uniform(args.instances, tries=args.group, budget=args.budget),
        reward=[partial(invalid_cost, cost=args.invalid_cost)] if args.invalid_cost else [],
        filter=[*([drop_flat_groups] if args.drop_flat else []), drop_lone_episodes],
        credit=partial(
            credit,
            std=args.std,
            negative_weight=args.negative_advantage_weight,
            state_weight=args.state_advantage_weight,
            invalid_penalty=args.invalid_penalty,
        ),
        importance=importance(args.importance, args.importance_least, args.importance_most),
        loss=terms(args),
        stages=bc.around(args, rl),
    )
