"""ARPO for GUI agents: GRPO on solvable tasks, where a group without success gets one from a replay.

    lmgym train arpo_gui miniwob --option pixels=screenshot --option observe=none --model tiny-vl

Lu et al. 2025, ARPO: End-to-end policy optimization for GUI agents with experience replay. If the returns of a group
deviate by less than 0.05 around a mean below 0.2, its first episode is replaced by the newest stored success of the
same instance; the store keeps eight of each. The trainer recomputes all old log-probs, so the ratio of a replayed
episode begins at 1. An answer that is no action costs 0.5.

Deviations: the paper picks 128 solvable tasks by an evaluation before training; here an instance that was never won in
its first `attempts` episodes is left out while training. Instances stand for the paper's tasks. The divergence of a
replayed episode from the policy is not corrected, as in the paper. All screens stay in view, not a window.
Parts reused: GRPO with all its options; the store `Successes`; the tasks `Band`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import SMALL_STEPS, Direction, Recording, arm
from lmgym.train.parts.stores import Successes
from lmgym.train.parts.tasks import Band, Uniform
from lmgym.train.ranges import Count, NonNegative, PositiveInt
from lmgym.train.recipe import Recipe

FEW = (*SMALL_STEPS, "--tasks", "8")  # so that each is played again and again
EXPERIMENT = Direction(
    name="arpo_gui",
    claim="a stored success in groups without any beats GRPO",
    task="miniwob",
    options=("pixels=screenshot", "observe=none", "page=click-test-2", "actions=mouse_click", "max_turns=2"),
    recordings=(Recording(by="demonstrator", episodes=500),),
    arms=(arm("arpo_gui", "arpo_gui", *FEW), arm("no replay", "arpo_gui", *FEW, "--capacity", "0")),
    model="tiny-vl",
    start=("--observation-weight", "0", "--minibatches", "8"),
    warmup=40,
    tokens=20_000,
    episodes=100,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of ARPO, and those of GRPO."""

    tasks: PositiveInt = 128  # the first instances of the split, which are played again and again
    attempts: PositiveInt = 64  # episodes without success after which an instance is left out
    capacity: Count = 8  # stored successes of each instance; 0: no replay
    clip_high: NonNegative = 0.3
    drop_flat: bool = False  # before the replay
    invalid_cost: NonNegative = 0.5
    rescore: bool | None = True


def recipe(args: Args) -> Recipe:
    """Return GRPO with the replay, with the same evaluation before and after."""
    plain = grpo.recipe(args)
    uniform = Uniform(args.instances, tries=args.group, budget=args.budget, first=args.tasks)
    tasks = Band(uniform, low=1e-9, attempts=args.attempts)
    store = partial(Successes, args.capacity) if args.capacity else None
    return replace(plain, tasks=tasks, store=store)
