"""Rewards: changes to the rewards of the environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lmgym.train.interfaces import Reward
from lmgym.train.schedule import StageProgress
from lmgym.train.services import Services
from lmgym.types import Trajectory, Turn


def each(change: Callable[[Trajectory], Trajectory]) -> Reward:
    """Return the reward that changes every episode on its own."""

    def changed(trajectories: Sequence[Trajectory], services: Services, progress: StageProgress) -> list[Trajectory]:
        return [change(trajectory) for trajectory in trajectories]

    return changed


def with_rewards(trajectory: Trajectory, rewards: Sequence[float], *, name: str) -> Trajectory:
    """Return the trajectory with these rewards of its turns (one each), as the only term `name`."""
    pairs = zip(trajectory.turns, rewards, strict=True)
    turns = (replace(turn, reward=reward, terms={name: reward}) for turn, reward in pairs)
    return replace(trajectory, turns=tuple(turns))


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
