"""Rewards: what is added to the environment's own."""

from __future__ import annotations

from dataclasses import replace

from lmgym.types import Trajectory, Turn


def invalid_cost(trajectory: Trajectory, *, cost: float) -> Trajectory:
    """Takes `cost` from every turn whose action the environment did not understand."""

    def charged(turn: Turn) -> Turn:
        if turn.info.get("valid", True):
            return turn
        return replace(turn, reward=turn.reward - cost, terms={**turn.terms, "invalid": -cost})

    return replace(trajectory, turns=tuple(charged(turn) for turn in trajectory.turns))
