"""BC: imitate a demonstrator by minimising the negative log-likelihood of its answers.

    lmgym train bc guess_number --model tiny

Pomerleau 1991; for language agents Abdulhai et al. 2023, LMRL-Gym. Their `non_action_weight` is `observation_weight`
here; the loss is divided by the number of action tokens, not of all tokens. `interject` is the noise of DART (Laskey et
al. 2017): some actions are replaced by wrong ones, so that the data shows how to recover. Weight decay applies to all
weights, theirs not to norms and biases. Wrong actions are drawn from the task's admissible actions; for tasks that list
none, like most web tasks, the run reports that none are interjected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lmgym.errors import RecipeError
from lmgym.train.interfaces import Optimiser, Term
from lmgym.train.parts.filters import mask_stumbles
from lmgym.train.parts.losses import nll
from lmgym.train.parts.planners import Stumble
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import Count, Fraction, NonNegative, Positive, PositiveInt, Rate, check_ranges
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until, linear
from lmgym.train.seats import Seat
from lmgym.train.stage import Evaluate, Others, Stage
from lmgym.train.stages import Sft


@dataclass(frozen=True, kw_only=True)
class Args:
    """Options of BC."""

    steps: Count | None = 200
    seconds: NonNegative | None = None  # time limit
    episodes: int = 64  # per step
    instances: int | None = None  # demonstrate only the first instances, repeatedly; None: all
    recorded: str | None = None  # recorded episodes to imitate instead of the demonstrator's
    interject: Fraction = 0.0  # share of turns with a wrong action; these are not imitated
    observation_weight: NonNegative = 0.0  # loss weight of tokens outside the answers
    lr: Rate = 1e-4
    final_lr: Rate = 1.0  # learning rate at the end of `steps` or `seconds`, not `--tokens`, as a share of `lr`
    weight_decay: Rate = 1e-3
    minibatches: PositiveInt = 4  # optimiser steps per step
    optimiser: Literal["adamw", "muon"] = "adamw"
    muon_lr: Rate = 2e-2  # learning rate of the hidden matrices, for optimiser muon
    autocast: bool | None = None  # bfloat16 in the update; None: if the hardware supports it
    checkpointing: bool = False  # recompute activations in the backward pass
    evaluate: int = 256  # episodes of the evaluation
    seats: str = ""  # other seats to imitate as well, by commas; the policy then plays them in the evaluation

    def __post_init__(self) -> None:
        check_ranges(self)


def sft(args: Args) -> Sft:
    """Return the imitation stage, which other baselines start with."""
    return Sft(
        until=Until(steps=args.steps, seconds=args.seconds),
        tasks=Uniform(args.episodes, first=args.instances),
        recorded=Path(args.recorded) if args.recorded else None,
        planner=Stumble(args.interject) if args.interject else None,
        filter=[mask_stumbles],
        loss=[Term(loss=nll)],
        observation_weight=args.observation_weight,
        optimiser=Optimiser(
            lr=args.lr,
            schedule=linear(1.0, args.final_lr),
            warmup=10,
            kind=args.optimiser,
            muon_lr=args.muon_lr,
            autocast=args.autocast,
            checkpointing=args.checkpointing,
            weight_decay=args.weight_decay,
            minibatches=args.minibatches,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Begun:
    """Options of algorithms that start with imitation and evaluate before and after the main stages.

    Imitation has the values of small models.
    """

    warmup: Count | None = 200  # steps of imitation; 0 is none
    warmup_seconds: NonNegative | None = None  # time limit
    warmup_episodes: int = 64  # per step of imitation
    warmup_instances: int | None = None  # demonstrate only the first instances, repeatedly; None: all
    warmup_lr: Rate = 2e-3  # learning rate of imitation; `muon_lr` stays
    warmup_final_lr: Rate = 0.02  # final learning rate of imitation as a share of `warmup_lr`
    warmup_weight_decay: Rate = 1e-2
    warmup_optimiser: Literal["adamw", "muon"] = "muon"
    warmup_minibatches: PositiveInt = 4  # optimiser steps per step of imitation
    interject: Fraction = 0.1  # share of demonstrated turns with a wrong action
    observation_weight: NonNegative = 0.3  # loss weight of tokens outside the answers, in imitation
    autocast: bool | None = None  # bfloat16 in the update; None: if the hardware supports it
    checkpointing: bool = False  # recompute activations in the backward pass
    evaluate: int = 256  # episodes of each evaluation
    evaluate_before: bool = True  # before RL as well
    evaluate_greedy: bool = False  # at temperature 0 as well, which tells learning from sharper sampling

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, kw_only=True)
class Published(Begun):
    """The same, with the imitation of LMRL-Gym, for pretrained models."""

    warmup_lr: Rate = Args.lr
    warmup_final_lr: Rate = Args.final_lr
    warmup_weight_decay: Rate = Args.weight_decay
    warmup_optimiser: Literal["adamw", "muon"] = Args.optimiser
    interject: Fraction = Args.interject
    observation_weight: NonNegative = Args.observation_weight


@dataclass(frozen=True, kw_only=True)
class Learning(Begun):
    """Options of baselines that train the policy after imitation."""

    lr: Rate = 1e-3
    final_lr: Rate = 1.0  # learning rate at the end of `steps` or `seconds`, not `--tokens`, as a share of `lr`
    final_norm_lr: Rate | None = None  # of the final norm's gain, which scales all logits; None: `lr`
    adam_eps: Positive = 1e-8  # 1e-5 keeps AdamW from full steps where gradients are almost 0
    epochs: PositiveInt = 1  # passes over the batch
    minibatches: PositiveInt = 4  # optimiser steps per epoch


def around(args: Begun, *stages: Stage, others: Others = "scripted") -> list[Stage]:
    """Return imitation and `stages`, with the same evaluation, against `others`, before and after the latter."""
    imitation = Args(
        steps=args.warmup,
        seconds=args.warmup_seconds,
        episodes=args.warmup_episodes,
        instances=args.warmup_instances,
        interject=args.interject,
        observation_weight=args.observation_weight,
        lr=args.warmup_lr,
        final_lr=args.warmup_final_lr,
        weight_decay=args.warmup_weight_decay,
        minibatches=args.warmup_minibatches,
        optimiser=args.warmup_optimiser,
        autocast=args.autocast,
        checkpointing=args.checkpointing,
    )
    after = Evaluate(name="after RL", episodes=args.evaluate, greedy=args.evaluate_greedy, others=others)
    before = [replace(after, name="before RL")] if args.evaluate_before else []
    return [sft(imitation), *before, *stages, after]


def optimiser(args: Learning) -> Optimiser:
    """Return AdamW with a short warm-up of the learning rate."""
    return Optimiser(
        lr=args.lr,
        final_norm_lr=args.final_norm_lr,
        eps=args.adam_eps,
        schedule=linear(1.0, args.final_lr),
        warmup=5,
        epochs=args.epochs,
        minibatches=args.minibatches,
        autocast=args.autocast,
        checkpointing=args.checkpointing,
    )


def recipe(args: Args) -> Recipe:
    """Return imitation and an evaluation."""
    if args.recorded is not None and args.instances is not None:
        raise RecipeError(
            f"instances={args.instances} limits what the demonstrator plays, and {args.recorded} is imitated in its "
            "place: leave out instances or recorded"
        )
    seats = {name.strip(): Seat(imitated=True) for name in args.seats.split(",") if name.strip()}
    others: Others = "seats" if seats else "scripted"
    return Recipe(stages=[sft(args), Evaluate(name="after BC", episodes=args.evaluate, others=others)], seats=seats)
