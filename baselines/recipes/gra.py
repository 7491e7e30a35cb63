"""G-RA: rewards of lower priority count only where the reward above them reaches a threshold.

    lmgym train gra webshop --option progress=0.5

Sun et al. 2025, Stabilizing long-term multi-turn RL with gated rewards. With the terms of the reward in the order of
their priority, r1 the outcome, an episode earns

    R = r1 + sum over l >= 2 of 1[r(k) >= tau(k) for all k < l] r(l),

where r(l) is the sum of term l over the episode. Advantages are those of GRPO. On WebShop the terms are the purchase
and the progress towards it (AgentBoard's); a purchase that meets half of the wish opens the gate. `gra_swe` has
the terms of the paper's kind on SWERepair.

Deviations: the terms are names of the task's reward terms, and the thresholds options; the paper's are not known to us.
There was no code to compare with. `--direct` adds all terms up, the paper's D-RA.
Parts reused: GRPO with all its options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.errors import RecipeError
from lmgym.train.parts.rewards import each
from lmgym.train.ranges import numbers
from lmgym.train.recipe import Recipe
from lmgym.types import Trajectory

EXPERIMENT = Direction(
    name="gra",
    claim="gates keep immediate rewards from replacing the outcome",
    task="webshop",
    options=("progress=0.5",),
    arms=(arm("gra", "gra"), arm("all terms added", "gra", "--direct")),
    model="tiny?words=webshop",
    start=("--episodes", "64", "--minibatches", "8", "--interject", "0"),
    warmup=150,
    tokens=50_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Weighted):
    """Options of G-RA, and those of GRPO."""

    terms: str = "purchase,progress"  # reward terms by priority, the outcome first
    thresholds: str = "0.5"  # total that opens the gate behind each term but the last
    direct: bool = False  # no gates


def gated(trajectory: Trajectory, *, terms: Sequence[str], thresholds: Sequence[float]) -> Trajectory:
    """Return the trajectory without the terms behind a closed gate; terms that are not listed stay."""
    totals = [sum(turn.terms.get(term, 0.0) for turn in trajectory.turns) for term in terms]
    closed = [number for number, least in enumerate(thresholds) if totals[number] < least]
    shut = set(terms[closed[0] + 1 :] if closed else ())
    turns = []
    for turn in trajectory.turns:
        kept = {name: 0.0 if name in shut else value for name, value in turn.terms.items()}
        lost = sum(turn.terms.get(name, 0.0) for name in shut)
        turns.append(replace(turn, reward=turn.reward - lost, terms=kept))
    return replace(trajectory, turns=tuple(turns))


def recipe(args: Args) -> Recipe:
    """Return GRPO on gated rewards, with the same evaluation before and after."""
    terms = [term.strip() for term in args.terms.split(",")]
    thresholds = numbers("thresholds", args.thresholds, float)
    if len(set(terms)) != len(terms):
        raise RecipeError(f"each reward term has one priority; got {args.terms!r}")
    if len(thresholds) != len(terms) - 1:
        raise RecipeError(f"{len(terms)} terms have {len(terms) - 1} gates between them; got {args.thresholds!r}")
    plain = grpo.recipe(args)
    gate = [] if args.direct else [each(partial(gated, terms=terms, thresholds=thresholds))]
    return replace(plain, reward=[*gate, *plain.reward], reward_terms=frozenset(terms))
