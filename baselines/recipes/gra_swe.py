"""G-RA on SWERepair: rewards of the steps of a repair count only if it is submitted.

    lmgym train gra_swe swe_repair --option rewards=dense

Sun et al. 2025, Stabilizing long-term multi-turn RL with gated rewards, as in `gra`, with the terms of SWERepair by
priority: repaired, submitted, edited, located, tested, valid. The gate is a submission; without one the steps earn
nothing. Outputs older than the newest `keep` are stubs, as episodes take up to 40 turns.

The experiment has 96 bugs, which are imitated, trained on and measured: `tiny` repairs hardly any that it has not
imitated. Deviations: those of `gra`. Parts reused: all of `gra`; the stubs of WebAgent-R1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lmgym.baselines.curves.directions import Direction, Recording, arm
from lmgym.baselines.recipes import gra
from lmgym.rollout.context import Stub
from lmgym.train.ranges import PositiveInt
from lmgym.train.recipe import Recipe

EXPERIMENT = Direction(
    name="gra_swe",
    claim="gates keep immediate rewards from replacing the outcome",
    task="swe_repair",
    options=("level=easy", "rewards=dense", "max_turns=8", "bugs=96"),
    recordings=(Recording(by="demonstrator", episodes=96),),
    common=("--evaluate-split", "train", "--max-tokens", "256"),
    arms=(
        arm("gra", "gra_swe", "--instances", "2"),
        arm("all terms added", "gra_swe", "--direct", "--instances", "2"),
    ),
    start=("--episodes", "16", "--minibatches", "8", "--interject", "0"),
    warmup=100,
    tokens=60_000,
    episodes=40,
)


@dataclass(frozen=True, kw_only=True)
class Args(gra.Args):
    """Options of G-RA on SWERepair, and those of G-RA."""

    terms: str = "repaired,submitted,edited,located,tested,valid"  # reward terms by priority, the outcome first
    thresholds: str = "0,0.05,0,0,0"  # total that opens the gate behind each term but the last
    keep: PositiveInt = 6  # newest outputs in full


def recipe(args: Args) -> Recipe:
    """Return G-RA with stubs for old outputs, and with the same evaluation before and after."""
    return replace(gra.recipe(args), context=Stub(args.keep))
