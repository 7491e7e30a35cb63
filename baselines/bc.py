"""BC: imitation of a demonstrator, the negative log-likelihood of the answers alone.

    lmgym train bc guess_number --model tiny

Pomerleau 1991; for language agents Abdulhai et al. 2023, LMRL-Gym, whose `non_action_weight` is here called
`observation_weight`; the denominator is the number of action tokens, not of all. `interject` is the noise of DART
(Laskey et al. 2017): wrong actions stumble in, so that the way back is shown as well. They are drawn from the actions
that the task lists as admissible: where it lists none, as most web tasks, nothing stumbles in, and the run says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lmgym.train import ranges
from lmgym.train.interfaces import Optimiser, Term
from lmgym.train.parts.filters import mask_stumbles
from lmgym.train.parts.losses import nll
from lmgym.train.parts.planners import Stumble
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until, linear
from lmgym.train.stages import Evaluate, Sft, Stage


@dataclass(frozen=True, kw_only=True)
class Args:
    """What the imitation takes."""

    steps: int | None = 200
    seconds: float | None = None  # at most
    episodes: int = 64  # of a step
    instances: int | None = None  # that are demonstrated, over and over; None: fresh ones
    recorded: str | None = None  # JSON lines of episodes to imitate in place of the demonstrator's
    interject: float = 0.1  # share of turns at which something wrong is played; never imitated
    observation_weight: float = 0.3  # of the tokens that are no answer
    lr: float = 2e-3
    final_lr: float = 0.02  # share of `lr` at the end
    weight_decay: float = 1e-2
    minibatches: int = 4  # optimiser steps of a step
    optimiser: Literal["adamw", "muon"] = "muon"
    muon_lr: float = 2e-2  # of the hidden matrices, where the optimiser is Muon
    autocast: bool | None = None  # bfloat16 in the update; None: where the machine has it in hardware
    checkpointing: bool = False  # recompute activations in the backward pass
    evaluate: int = 256  # episodes

    def __post_init__(self) -> None:
        ranges.check(vars(self))


def sft(args: Args) -> Sft:
    """The imitation alone, as other baselines begin with it."""
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
    """What every baseline takes that begins with imitation, and is evaluated before and after what follows."""

    warmup: int | None = 200  # steps of imitation, as `bc` does by default; 0 is none
    warmup_seconds: float | None = None  # at most
    warmup_episodes: int = 64  # of a step of imitation
    warmup_instances: int | None = None  # that are demonstrated, over and over; None: fresh ones
    warmup_lr: float = 2e-3  # of imitation; Muon's own rate stays
    warmup_minibatches: int = 4  # optimiser steps of a step of imitation
    interject: float = 0.1  # share of demonstrated turns at which something wrong is played
    observation_weight: float = 0.3  # of the tokens of demonstrations that are no answer
    autocast: bool | None = None  # bfloat16 in the update; None: where the machine has it in hardware
    checkpointing: bool = False  # recompute activations in the backward pass
    evaluate: int = 256  # episodes, before and after

    def __post_init__(self) -> None:
        ranges.check(vars(self))


@dataclass(frozen=True, kw_only=True)
class Learning(Begun):
    """What every baseline takes that goes on to learn in optimiser steps."""

    lr: float = 1e-3
    final_lr: float = 1.0  # share of `lr` at the end
    final_norm_lr: float | None = None  # of the last norm's gain, which scales all logits; None: as `lr`
    adam_eps: float = 1e-8  # 1e-5 keeps AdamW from stepping at full rate where the gradient is next to nothing
    epochs: int = 1  # passes over the batch of a step
    minibatches: int = 4  # optimiser steps of a pass


def around(args: Begun, *stages: Stage) -> list[Stage]:
    """Imitation, `stages`, and the same evaluation before and after them."""
    imitation = Args(
        steps=args.warmup,
        seconds=args.warmup_seconds,
        episodes=args.warmup_episodes,
        instances=args.warmup_instances,
        interject=args.interject,
        observation_weight=args.observation_weight,
        lr=args.warmup_lr,
        minibatches=args.warmup_minibatches,
        autocast=args.autocast,
        checkpointing=args.checkpointing,
    )
    before, after = (Evaluate(name=f"{when} RL", episodes=args.evaluate) for when in ("before", "after"))
    return [sft(imitation), before, *stages, after]


def optimiser(args: Learning) -> Optimiser:
    """AdamW with a short rise of its rate, as after imitation."""
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
    """Imitation, then an evaluation."""
    return Recipe(stages=[sft(args), Evaluate(name="after BC", episodes=args.evaluate)])
