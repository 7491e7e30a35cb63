"""IGPO: a turn is rewarded with what it adds to the policy's own probability of the true answer.

    lmgym train igpo wordle
    lmgym train igpo webshop --prefix 'The product is '

Wang et al. 2025, Information gain-based policy optimization. With a the answer's tokens,

    P(t) = exp(1/|a| sum over j of log pi(a_j | what was seen before turn t, prefix, a_<j)),
    r(t) = P(t + 1) - P(t), and the task's score of the episode for the last turn;

all turn rewards of a group are normalised together, and a turn's advantage is their discounted sum from there on.

Deviations: no divergence unless `kl` is set (the paper: 0.001); a turn that writes the answer, or a part of it, gains
nothing, since its own words make the answer likelier. The authors' code takes the mean at equal token positions and no
deviation; here the paper's form. The last reward is the task's score, not F1. Parts reused: GRPO's surrogate; credit of
turns; the likelihood service.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.train.batch import Batch
from lmgym.train.parts.credit import within_groups
from lmgym.train.parts.rewards import information_gain
from lmgym.train.parts.turns import Turns
from lmgym.train.ranges import Fraction
from lmgym.train.recipe import Recipe

EXPERIMENT = Direction(
    name="igpo",
    claim="rewarding turns for what they add to the answer's probability beats the outcome alone",
    task="wordle",
    arms=(arm("igpo", "igpo"), arm("grpo", "grpo")),
    warmup=60,
    tokens=100_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(grpo.Grouped):
    """Options of IGPO, and those of the surrogate."""

    prefix: str = ""  # words that lead to the answer
    gamma: Fraction = 1.0  # discount of a turn


@within_groups
def credit(batch: Batch, *, gamma: float) -> Tensor:
    """Return the sum of normalised rewards from each turn on; (B, T)."""
    turns = Turns(batch)
    return turns.spread(turns.to_go(turns.normal(turns.reward), gamma=gamma))


def recipe(args: Args) -> Recipe:
    """Return the surrogate with the credit of turns, with the same evaluation before and after."""
    plain = grpo.grouped(args, partial(credit, gamma=args.gamma))
    gain = partial(information_gain, prefix=args.prefix)
    return replace(plain, reward=[gain, *plain.reward], requires=frozenset({"answer", "text"}))
