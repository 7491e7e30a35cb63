"""Filters: which episodes leave the statistics, and which turns are not trained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lmgym.train.recipe import Verdict
from lmgym.types import Trajectory


def groups(trajectories: Sequence[Trajectory]) -> dict[tuple[str, str], list[Trajectory]]:
    """Trajectories by (group, seat), in the order they came."""
    found: dict[tuple[str, str], list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        found[trajectory.group, trajectory.seat].append(trajectory)
    return dict(found)


def drop_flat_groups(trajectories: Sequence[Trajectory], *, below: float = 1e-6) -> Verdict:
    """Drops the groups whose returns are all the same, within `below`: they say nothing (DAPO)."""
    flat: set[str] = set()
    for members in groups(trajectories).values():
        returns = [trajectory.reward for trajectory in members]
        if max(returns) - min(returns) <= below:
            flat |= {trajectory.id for trajectory in members}
    return Verdict(drop=frozenset(flat))


def mask_truncated(trajectories: Sequence[Trajectory]) -> Verdict:
    """Does not train on episodes that were cut; they count in their group's statistics."""
    cut = (t for t in trajectories if t.truncated)
    return Verdict(mask=frozenset((t.id, turn) for t in cut for turn in range(len(t.turns))))


def mask_stumbles(trajectories: Sequence[Trajectory]) -> Verdict:
    """Does not train on the turns in which a random action was put into the player's mouth."""
    return Verdict(
        mask=frozenset(
            (t.id, number) for t in trajectories for number, turn in enumerate(t.turns) if turn.info.get("stumble")
        )
    )
