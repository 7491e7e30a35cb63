"""RLOO: compare each episode with the mean of the other attempts at its instance; an unbiased policy gradient.

    lmgym train rloo guess_number --model tiny

Kool et al. 2019 (leave-one-out baseline); Ahmadian et al. 2024, Back to Basics (for language models: an episode is one
action, with a divergence in the reward). One update per batch and the divergence's weight are those of TRL; its list of
papers gives two updates and 0.03 for Ahmadian et al. The baseline of an episode does not depend on it, so with
`minibatches=1`, the default, the gradient is unbiased: no clipping, no normalisation by length or deviation. With
several updates per batch, the ratio of whole episodes is clipped.
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
from lmgym.train.math import Penalty, group_normal
from lmgym.train.parts.credit import within_groups
from lmgym.train.parts.filters import drop_flat_groups, drop_lone_episodes
from lmgym.train.parts.importance import Choice, importance
from lmgym.train.parts.kl import reward_kl
from lmgym.train.parts.losses import Unit, kl_to_start, reinforce, unit_surrogate
from lmgym.train.parts.rewards import each, invalid_cost
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import Count, NonNegative, Positive, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until, constant
from lmgym.train.stages import Rl


@dataclass(frozen=True, kw_only=True)
class Args(bc.Published, bc.Learning):
    """Options of RLOO."""

    steps: Count | None = 45
    seconds: NonNegative | None = None  # time limit
    instances: int = 16  # per step
    group: int = 8  # attempts per instance
    budget: int | None = 16  # maximum number of turns in training; evaluations keep the task's own limit
    lr: Rate = 1e-6
    drop_flat: bool = False  # drop groups whose returns are equal; they otherwise count in the mean over episodes
    kl_reward: NonNegative = 0.05  # penalty in the reward per nat from the start policy of RL (--lora: from the base)
    kl_target: Positive | None = None  # nats per episode to which kl_reward adapts; None: fixed
    kl_horizon: PositiveInt = 10_000  # episodes; time scale of the adaptation
    kl: NonNegative = 0.0  # weight of the divergence as a loss term, instead of in the reward
    kl_kind: Penalty = "k2"
    epochs: PositiveInt = 1
    minibatches: PositiveInt = 1  # optimiser steps per epoch; with several updates the ratio is clipped
    ratio: Unit = "sequence"  # tokens that share a ratio, with several updates
    clip: NonNegative = 0.2
    importance: Choice = "none"  # importance weights for a sampler that differs from the trainer
    importance_least: float | None = None
    importance_most: float | None = None
    rescore: bool | None = None  # recompute old log-probs with the trainer; None: unless both are fp32
    invalid_cost: NonNegative = 0.0  # penalty in the reward of an invalid action


@within_groups
def credit(batch: Batch) -> Tensor:
    """Return each episode's return minus the mean of the others of its group, on all its tokens; (B, T)."""
    if bool(batch.forked.any()):
        raise RecipeError("RLOO compares whole episodes: for forks use lmgym.train.parts.trees.tree_credit")
    group = batch.groups()
    _, member, size = torch.unique(group, return_inverse=True, return_counts=True)
    if int(size.min()) < 2:
        raise RecipeError("RLOO compares the attempts of a group, and a group has a single episode; use group >= 2")
    advantage = group_normal(batch.returns(), group, std=False) * (size.double() / (size - 1))[member]
    spread: Tensor = advantage[batch.episode][:, None].to(batch.reward)
    return spread * batch.mask


def terms(args: Args) -> list[Term]:
    """Return the policy gradient, or its clipped surrogate for several updates, and the divergence."""
    term = partial(Term, aggregation="seq_sum")
    if args.epochs * args.minibatches == 1:
        loss = [term(loss=reinforce)]
    else:
        clip = partial(unit_surrogate, unit=args.ratio, low=args.clip, high=args.clip)
        loss = [term(loss=clip, together=whole_episodes)]
    if args.kl:
        kl = partial(kl_to_start, kind=args.kl_kind)
        loss.append(term(loss=kl, name="kl", coef=constant(args.kl), reference=True))
    return loss


def whole_episodes(batch: Batch) -> Tensor:
    """Return the key of rows that a ratio of episodes needs together; (B,)."""
    return batch.episode


def recipe(args: Args) -> Recipe:
    """Return imitation and RLOO, with the same evaluation before and after."""
    if args.group < 2:
        raise RecipeError(f"RLOO compares the attempts of a group: group must be at least 2; got {args.group}")
    rl = Rl(
        until=Until(steps=args.steps, seconds=args.seconds),
        optimiser=bc.optimiser(args),
        rescore=args.rescore,
    )
    return Recipe(
        tasks=Uniform(args.instances, tries=args.group, budget=args.budget),
        reward=[each(partial(invalid_cost, cost=args.invalid_cost))] if args.invalid_cost else [],
        filter=[*([drop_flat_groups] if args.drop_flat else []), drop_lone_episodes],
        reward_kl=reward_kl(args.kl_reward, target=args.kl_target, horizon=args.kl_horizon),
        credit=credit,
        importance=importance(args.importance, args.importance_least, args.importance_most),
        loss=terms(args),
        stages=bc.around(args, rl),
    )
