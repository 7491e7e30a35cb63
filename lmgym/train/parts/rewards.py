"""Rewards: changes to the rewards of the environment."""

from __future__ import annotations

from dataclasses import replace

from lmgym.types import Trajectory, Turn


def invalid_cost(trajectory: Trajectory, *, cost: float) -> Trajectory:
    """Subtract `cost` from the reward of every turn with an invalid action."""

    def penalized(turn: Turn) -> Turn:
        return replace(turn, reward=turn.reward - cost, terms={**turn.terms, "invalid": -cost})

    turns = (turn if turn.info.get("valid", True) else penalized(turn) for turn in trajectory.turns)
    return replace(trajectory, turns=tuple(turns))


def limit_ends(trajectory: Trajectory) -> Trajectory:
    """Mark episodes that reached the task's turn limit as terminated, so that a critic expects no further reward.

    Justified because the transcript states the turns left and evaluations end there too (Pardo et al. 2018). Episodes
    truncated by a budget or a full context stay truncated.
    """
    if not trajectory.truncated or trajectory.stop != "max_turns":
        return trajectory
    return replace(trajectory, truncated=False, terminated=True)
