"""Own reward: GRPO on GuessNumber with a small cost per turn, so that short episodes earn more.

python examples/own_reward.py
"""

from __future__ import annotations

import sys
from dataclasses import replace

import lmgym.train
from lmgym.baselines import grpo
from lmgym.train.parts.rewards import each
from lmgym.types import Trajectory

COST = 0.05  # of a turn


def turn_cost(trajectory: Trajectory) -> Trajectory:
    """Take COST from the reward of every turn, as a named term of its own."""
    turns = (
        replace(turn, reward=turn.reward - COST, terms={**turn.terms, "turn_cost": -COST}) for turn in trajectory.turns
    )
    return replace(trajectory, turns=tuple(turns))


def main(steps: str = "20", warmup: str = "10", folder: str = "runs/own-reward") -> None:
    """Train the embedded model and print the paired gain in success."""
    args = grpo.Weighted(warmup=int(warmup), steps=int(steps), instances=8, group=4, evaluate=32)
    recipe = grpo.recipe(args)
    recipe = replace(recipe, reward=[*recipe.reward, each(turn_cost)])
    result = lmgym.train.run(recipe, task="guess_number", model="tiny:1m", out=folder, quiet=True)
    print(f"gain in success {result.paired_gain}; the run is in {result.folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])
