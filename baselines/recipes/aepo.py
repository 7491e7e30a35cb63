"""AEPO: divide episodes into tries and forks by entropy, and keep the gradients of clipped tokens.

    lmgym train aepo alfworld --model tiny

Dong et al. 2025, Agentic Entropy-Balanced Policy Optimization, on top of ARPO (`arpo.py`). The first try of an instance
measures the entropy H_root of its first answer and H_tool of the later ones; of k episodes

    m = k sigmoid(beta (H_root - mean H_tool))

are tries and the rest forks. A fork has ARPO's probability times 1 - c / c_max after c forks in a row on its path. A
token with A > 0 and a ratio r above 1 + e keeps the gradient of (1 + e) A r / sg(r). Advantages are scaled by 1 + a z,
where z is the z-score of the token's entropy in the batch, clipped to [-1, 1].

Deviations: no dual clip, which `arpo` has; the form of the penalty, of z and the value of a are ours, as the release
has no code for them; a group has `roots` tries or more; the loss is a mean over tokens, as in `arpo`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from lmgym.baselines.curves.directions import Direction, arm
from lmgym.baselines.recipes import arpo
from lmgym.train.batch import Batch
from lmgym.train.interfaces import Term
from lmgym.train.parts.credit import within_groups
from lmgym.train.parts.losses import open_surrogate
from lmgym.train.parts.planners import BalancedFork
from lmgym.train.parts.tasks import Uniform
from lmgym.train.ranges import NonNegative, PositiveInt
from lmgym.train.recipe import Recipe

EXPERIMENT = Direction(
    name="aepo",
    claim="balancing entropy in forks and updates beats ARPO",
    task="alfworld",
    arms=(arm("aepo", "aepo"), arm("arpo", "arpo")),
    warmup=150,
    tokens=60_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(arpo.Args):
    """Options of AEPO."""

    roots: int = 2  # least number of tries of an instance
    beta: NonNegative = 1.0  # per nat
    in_a_row: PositiveInt = 3  # c_max
    entropy_weight: NonNegative = 0.3  # a
    clip: NonNegative = 0.2  # lower clip range of the ratio
    clip_high: NonNegative = 0.28  # e, upper clip range of the ratio


@within_groups
def credit(batch: Batch, *, entropy_weight: float) -> Tensor:
    """Return ARPO's advantages, larger at tokens of high entropy; (B, T)."""
    entropy = batch.entropy[batch.mask]
    z = (batch.entropy - entropy.mean()) / (entropy.std(correction=0) + 1e-6)
    return arpo.credit(batch) * (1.0 + entropy_weight * z.clamp(-1.0, 1.0))


def recipe(args: Args) -> Recipe:
    """Return imitation and AEPO, with the same evaluation before and after."""
    fork = BalancedFork(args.group, args.roots, args.base, args.weight, beta=args.beta, in_a_row=args.in_a_row)
    return replace(
        arpo.recipe(args),
        tasks=Uniform(args.instances, tries=1, budget=args.budget),
        planner=fork,
        credit=partial(credit, entropy_weight=args.entropy_weight),
        loss=[Term(loss=partial(open_surrogate, low=args.clip, high=args.clip_high), aggregation="token_mean")],
    )
