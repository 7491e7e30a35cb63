"""ViGoRL: thoughts that point at places of a picture, learnt from traces of a tree search and then by RL.

    lmgym train vigorl lmgym/VisualSearchViGoRL-v0 --model tiny-vl

Sarch et al. 2025, Grounded Reinforcement Learning for Visual Reasoning. A search over thoughts and crops is
written down as traces in which wrong branches stay, followed by words that go back; after imitating these, GRPO
maximises

    0.6 accuracy + 0.4 f,        f = 1 + 0.2 (D - 1) if the format holds, else 0,

with D the number of crops at least 10 pixels apart: the task's reward, whose option `most_format` can limit f.

Deviations: no divergence unless `kl` is set; the searcher is the imitated policy, not a large model; the first path of
a tree is the demonstrator's, so that each has a way to the answer. `wrong=0` is the ablation: traces are straight.
Parts reused: GRPO; imitation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lmgym.baselines import bc, grpo
from lmgym.baselines.curves.directions import EPS, PICTURES_START, Direction, arm
from lmgym.train.interfaces import Optimiser
from lmgym.train.parts.search import SearchTraces, successful_traces
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import Count, PositiveInt, Rate
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.stages import Generate

EXPERIMENT = Direction(
    name="vigorl",
    claim="traces of a tree search with their wrong branches teach more than straight ones",
    task="lmgym/VisualSearchViGoRL-v0",
    arms=(arm("wrong branches", "vigorl", *EPS), arm("straight", "vigorl", *EPS, "--wrong", "0")),
    model="tiny-vl",
    start=PICTURES_START,
    warmup=32,
    tokens=150_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of ViGoRL, and those of GRPO."""

    trees: PositiveInt = 64  # instances that are searched
    simulations: PositiveInt = 8  # episodes per tree
    wrong: Count = 1  # answers of wrong branches in a trace
    trace_steps: Count = 10  # of imitation of the traces
    trace_lr: Rate = 3e-4
    budget: int | None = 6  # maximum number of turns in training


def recipe(args: Args) -> Recipe:
    """Return imitation, tree search, imitation of its traces, and GRPO."""
    base = grpo.recipe(args)
    *begun, rl, after = base.stages
    search = Generate(
        name="search",
        until=Until(steps=1 if args.trace_steps else 0),
        into="traces",
        tasks=Uniform(args.trees, budget=args.budget),
        planner=SearchTraces(args.simulations, wrong=args.wrong, turns=args.budget or 6),
        filter=[successful_traces],
    )
    plain = bc.sft(bc.Args(steps=args.trace_steps, episodes=args.trees))
    optimiser = Optimiser(lr=args.trace_lr, minibatches=args.minibatches, autocast=args.autocast)
    optimiser = replace(optimiser, checkpointing=args.checkpointing)
    traces = replace(plain, name="traces", recorded=Path("traces"), planner=None, optimiser=optimiser)
    stages = [*begun, search, traces, rl, after]
    return replace(base, stages=stages, requires=frozenset({"pictures", "replay", "expert"}))
