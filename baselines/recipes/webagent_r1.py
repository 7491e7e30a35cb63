"""WebAgent-R1: keep the newest page in full and a stub of the others, and average the loss by turn.

    lmgym train webagent_r1 webforms --model tiny

Wei et al. 2025, WebAgent-R1: Training Web Agents via End-to-End Multi-Turn Reinforcement Learning. After imitation,
each task is played n times in parallel browsers; at every turn all pages but the newest are replaced by a constant, and
each answer is scored under the context it was sampled with. The loss of M-GRPO is

    -1/n sum_i 1/H_i sum_h 1/|a_ih| sum_t min(r A_i, clip(r, 1 - 0.2, 1 + 0.28) A_i) + beta KL(pi || pi_start)

over H_i turns of |a_ih| tokens, where A_i is the outcome, normalised within the group.

Deviations: a dual clip of 3; play and updates alternate; thoughts are trained like all tokens. The released trainer
hides observations from attention while it scores; here they are seen, as they were by the sampler.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from lmgym.baselines import bc, grpo
from lmgym.baselines.curves.directions import arm
from lmgym.baselines.recipes import dart
from lmgym.rollout.context import Stub
from lmgym.train.parts.turns import by_turn
from lmgym.train.ranges import Count, NonNegative, PositiveInt, Rate
from lmgym.train.recipe import Recipe

EXPERIMENT = replace(
    dart.EXPERIMENT,  # task, demonstrations and tokens
    name="webagent_r1",
    claim="stubs for old pages are no worse than all pages in full, at the same number of tokens",
    arms=(
        arm("stubs", "webagent_r1", start=("--context", "stub:1")),  # what either arm sees is what it imitated
        arm("all pages", "webagent_r1", "--keep", "25"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """Options of WebAgent-R1."""

    steps: Count | None = 60
    instances: PositiveInt = 8  # per step
    group: int = 8  # attempts per instance
    keep: PositiveInt = 1  # newest pages in full
    kl: NonNegative = 0.001  # weight of the divergence from the start policy
    budget: int | None = 15  # maximum number of turns in training; evaluations keep the task's own limit
    lr: Rate = 3e-4


def recipe(args: Args) -> Recipe:
    """Return imitation and WebAgent-R1, with the same evaluation before and after."""
    base = grpo.recipe(grpo.options(args))
    return replace(base, context=Stub(args.keep), credit=partial(by_turn, credit=base.credit))
