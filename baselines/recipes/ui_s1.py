"""UI-S1: practise on an expert's screens as if online: the expert's action is played whatever the policy answers.

    lmgym train ui_s1 webforms --model tiny

Lu et al. 2025, UI-S1: Advancing GUI Automation via Semi-online Reinforcement Learning. At every screen the policy acts;
its own words stay in the history and the expert's action leads to the next screen. An episode ends at the first
mismatch after `patches` others. With r = 0.1 format + 0.9 action, where action is 1 for the expert's, 0.5 for the right
call and 0.1 for another (r is 0 without a call),

    R_h = r_h + gamma R_(h+1), cut after a mismatch;    A_h = norm(R_0) + norm(R_h)

normalised over the group at the same turn. Groups whose R_0 deviates by `least` or less are dropped.

Deviations: the expert is the task's demonstrator, whose screens are those of its recordings; an answer that was patched
stays as it was sampled, where the release writes the expert's words (and a thought) in its place. All screens stay in
view (`--context window:2` keeps the newest).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import arm
from lmgym.baselines.recipes import dart
from lmgym.train.batch import Batch
from lmgym.train.parts.credit import within_groups
from lmgym.train.parts.filters import drop_even
from lmgym.train.parts.planners import Patch
from lmgym.train.parts.rewards import each, to_go_by_expert
from lmgym.train.parts.turns import Turns
from lmgym.train.ranges import Count, Fraction, NonNegative
from lmgym.train.recipe import Recipe

FEW = ("--instances", "4")  # a step, of groups of 8
EXPERIMENT = replace(
    dart.EXPERIMENT,  # task and start
    name="ui_s1",
    claim="going on after patched mismatches beats ending at the first",
    arms=(arm("ui_s1", "ui_s1", *FEW), arm("no patches", "ui_s1", *FEW, "--patches", "0")),
    tokens=10_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Grouped):
    """Options of UI-S1, and those of the surrogate."""

    patches: Count = 2  # mismatches that the expert repairs, per episode
    gamma: Fraction = 0.5  # discount of a turn
    least: NonNegative = 0.3  # deviation of the returns of a group
    kl: NonNegative = 1e-4  # weight of the divergence from the start policy
    drop_flat: bool = False  # groups are dropped by `least`


@within_groups
def credit(batch: Batch) -> Tensor:
    """Return norm(R_0) + norm(R_h) on the tokens of turn h; (B, T)."""
    turns = Turns(batch)
    step = turns.normal(turns.reward, by="turn")
    first = step.new_zeros(int(turns.episode.max()) + 1).index_add(0, turns.episode, step * (turns.number == 0))
    return turns.spread(step + first[turns.episode])


def recipe(args: Args) -> Recipe:
    """Return imitation and UI-S1, with the same evaluation before and after."""
    plain = grpo.grouped(args, credit)
    return replace(
        plain,
        planner=Patch(args.patches),
        reward=[each(partial(to_go_by_expert, gamma=args.gamma)), *plain.reward],
        filter=[partial(drop_even, least=args.least), *plain.filter],
        requires=frozenset({"expert"}),
    )
