"""ARPO: fork an episode where the policy is uncertain after an observation, and share credit over the tree.

    lmgym train arpo alfworld --model tiny

Dong et al. 2025, Agentic Reinforced Policy Optimization. A group of n episodes begins with `roots` tries. After each
observation the policy answers o_h; with dH the entropy of its first tokens less that of the first answer, a fork that
samples o_h anew starts with probability

    P = clip(base + weight dH, 0, 1)

until the group has n episodes; what is left of the budget goes to new tries. The advantage is the group-normalised
return of an episode; tokens that several episodes share get the mean of theirs ("hard" estimation).

Deviations: entropies are exact and in nats, not of the ten most likely tokens divided by log |V|; the fork samples the
uncertain answer itself anew, where the released code forks one observation later; missing episodes are always played,
never duplicated; the reward is the task's. The loss is the mean over the tokens of all episodes, shared ones once: the
paper divides by the length of each whole path, and a fork's row has its own tokens alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from lmgym.baselines import bc, grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.errors import RecipeError
from lmgym.train.batch import Batch
from lmgym.train.math import group_normal
from lmgym.train.parts.credit import within_groups
from lmgym.train.parts.planners import EntropyFork
from lmgym.train.parts.tasks import Uniform
from lmgym.train.parts.trees import Paths
from lmgym.train.ranges import Count, NonNegative, PositiveInt, Rate
from lmgym.train.recipe import Recipe

EXPERIMENT = Direction(
    name="arpo",
    claim="forking where the policy is uncertain beats independent tries at equal tokens",
    task="alfworld",
    arms=(arm("arpo", "arpo"), arm("no forks", "arpo", "--roots", "16")),
    warmup=150,
    tokens=60_000,
)


@dataclass(frozen=True, kw_only=True)
class Args(bc.Learning):
    """Options of ARPO."""

    steps: Count | None = 60
    instances: PositiveInt = 8  # per step
    group: int = 16  # episodes per instance, forks included
    roots: int = 8  # tries of an instance before the first fork
    base: NonNegative = 0.5  # probability of a fork where the entropy is that of the first answer
    weight: NonNegative = 0.2  # change of the probability per nat
    budget: int | None = 16  # maximum number of turns in training; evaluations keep the task's own limit
    lr: Rate = 3e-4


@within_groups
def credit(batch: Batch) -> Tensor:
    """Return each episode's group-normalised return, averaged over the episodes that share a token; (B, T)."""
    paths = Paths(batch)
    return paths.mean(group_normal(paths.returns(), batch.groups().cpu(), std=True))


def recipe(args: Args) -> Recipe:
    """Return imitation and ARPO, with the same evaluation before and after."""
    if not 2 <= args.roots <= args.group:
        raise RecipeError(f"ARPO needs 2 <= roots <= group; got roots={args.roots} and group={args.group}")
    return replace(
        grpo.recipe(replace(grpo.options(args), aggregation="token_mean")),
        tasks=Uniform(args.instances, tries=args.roots, budget=args.budget),
        planner=EntropyFork(paths=args.group, roots=args.roots, base=args.base, weight=args.weight),
        credit=credit,
        requires=frozenset({"replay"}),
    )
