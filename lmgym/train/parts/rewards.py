"""Rewards: what is added to the environment's own."""

from __future__ import annotations

from dataclasses import replace

from lmgym.types import Trajectory, Turn


def invalid_cost(trajectory: Trajectory, *, cost: float) -> Trajectory:
    """Takes `cost` from every turn whose action the environment did not understand."""

    def penalized(turn: Turn) -> Turn:
        return replace(turn, reward=turn.reward - cost, terms={**turn.terms, "invalid": -cost})

    turns = (turn if turn.info.get("valid", True) else penalized(turn) for turn in trajectory.turns)
    return replace(trajectory, turns=tuple(turns))


def limit_ends(trajectory: Trajectory) -> Trajectory:
    """Has the task's own limit of turns end an episode like any failure: a critic expects nothing behind it.

    The transcript tells how many turns are left, and an evaluation ends there too (Pardo et al. 2018). What else cuts
    an episode, a budget or a full context, still does.
    """
    if not trajectory.truncated or trajectory.stop != "max_turns":
        return trajectory
    return replace(trajectory, truncated=False, terminated=True)
