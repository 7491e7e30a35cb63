"""Filters: which episodes leave the statistics, and which turns are not trained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from lmgym.train.interfaces import FilterResult
from lmgym.types import Trajectory

Within = Literal["group", "all"]
Ties = Literal["keep", "cut"]


def groups(trajectories: Sequence[Trajectory]) -> dict[tuple[str, str], list[Trajectory]]:
    """Trajectories by (group, seat), in the order they came."""
    found: dict[tuple[str, str], list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        found[trajectory.group, trajectory.seat].append(trajectory)
    return dict(found)


def drop_flat_groups(trajectories: Sequence[Trajectory], *, below: float = 1e-6) -> FilterResult:
    """Drops the groups whose returns are all the same, within `below`: they say nothing (DAPO)."""
    flat: set[str] = set()
    for members in groups(trajectories).values():
        returns = [trajectory.reward for trajectory in members]
        if max(returns) - min(returns) <= below:
            flat |= {trajectory.id for trajectory in members}
    return FilterResult(drop=frozenset(flat))


def drop_lone_episodes(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Drops those whose group has no other try left to compare them with; forks of an episode are none."""
    alone = (each for each in groups(trajectories).values() if len({t.root for t in each}) < 2)
    return FilterResult(drop=frozenset(t.id for members in alone for t in members))


def keep_top(
    trajectories: Sequence[Trajectory], *, share: float, within: Within = "group", ties: Ties = "keep"
) -> FilterResult:
    """Keeps the `share` of a round's episodes with the highest return, of each group or of all, and drops the rest.

    What is no better than the worst is not kept, so that a group of equals is dropped whole; a `share` of 1 keeps
    everything. `ties` at the border are all kept, or cut in the order in which they came.
    """
    sets = list(groups(trajectories).values()) if within == "group" else [list(trajectories)]
    kept: list[Trajectory] = []
    for members in sets:
        worst = min(trajectory.reward for trajectory in members)
        kept += [each for each in _upper(members, share, ties) if share == 1 or each.reward > worst]
    return _all_but(kept, trajectories)


def keep_best(
    trajectories: Sequence[Trajectory], *, share: float, within: Within = "group", ties: Ties = "keep"
) -> FilterResult:
    """Keeps the `share` of a data set's episodes with the highest return, of each task or of all, and drops the rest.

    Tries of one task are ranked among themselves, what was tried once among all such. What is as bad as the worst of
    the whole data set is not kept, unless `share` is 1 or all is alike; so of successes and failures it keeps
    successes alone, and more or fewer than `share` of all. Ties are as in `keep_top`; of a group one is kept at least.
    """
    found = groups(trajectories).values() if within == "group" else [list(trajectories)]
    sets = [members for members in found if len(members) > 1]
    alone = [members[0] for members in found if len(members) == 1]
    returns = [trajectory.reward for trajectory in trajectories]
    everything = share == 1 or min(returns) == max(returns)
    ranked = [each for members in (*sets, alone) if members for each in _upper(members, share, ties)]
    return _all_but([each for each in ranked if everything or each.reward > min(returns)], trajectories)


def _upper(members: Sequence[Trajectory], share: float, ties: Ties) -> list[Trajectory]:
    """The `share` with the highest return, one at least."""
    ranked = sorted(members, key=lambda trajectory: -trajectory.reward)  # stable: equals stay in order
    count = max(1, round(share * len(members)))
    if ties == "cut":
        return ranked[:count]
    return [each for each in ranked if each.reward >= ranked[count - 1].reward]


def _all_but(kept: Sequence[Trajectory], trajectories: Sequence[Trajectory]) -> FilterResult:
    return FilterResult(drop=frozenset(each.id for each in trajectories) - {each.id for each in kept})


def mask_truncated(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Does not train on episodes that were cut; they count in their group's statistics."""
    cut = (t for t in trajectories if t.truncated)
    return FilterResult(mask=frozenset((t.id, turn) for t in cut for turn in range(len(t.turns))))


def mask_stumbles(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Does not train on the turns in which a random action was put into the player's mouth."""
    return FilterResult(
        mask=frozenset(
            (t.id, number) for t in trajectories for number, turn in enumerate(t.turns) if turn.info.get("stumble")
        )
    )
