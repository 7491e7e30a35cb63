"""Filters: which episodes leave the statistics, and which turns are not trained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from lmgym.train.recipe import Verdict
from lmgym.types import Trajectory

Within = Literal["group", "all"]
Ties = Literal["keep", "cut"]


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


def drop_lone_episodes(trajectories: Sequence[Trajectory]) -> Verdict:
    """Drops those whose group has no other try left to compare them with; forks of an episode are none."""
    alone = (each for each in groups(trajectories).values() if len({t.root for t in each}) < 2)
    return Verdict(drop=frozenset(t.id for members in alone for t in members))


def keep_top(
    trajectories: Sequence[Trajectory], *, share: float, within: Within = "group", ties: Ties = "keep"
) -> Verdict:
    """Keeps the `share` of episodes with the highest return, of each group or of all, and drops the rest.

    What is no better than the worst is never kept, so that a group of equals is dropped whole. `ties` at the border
    are all kept, or cut in the order in which they came.
    """
    sets = list(groups(trajectories).values()) if within == "group" else [list(trajectories)]
    kept: set[str] = set()
    for members in sets:
        ranked = sorted(members, key=lambda trajectory: -trajectory.reward)  # stable: equals stay in order
        count = max(1, round(share * len(members)))
        border, worst = ranked[count - 1].reward, ranked[-1].reward
        chosen = [each for each in ranked if each.reward >= border] if ties == "keep" else ranked[:count]
        kept |= {trajectory.id for trajectory in chosen if trajectory.reward > worst}
    return Verdict(drop=frozenset(trajectory.id for trajectory in trajectories) - kept)


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
