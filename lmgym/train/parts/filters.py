"""Filters: drop episodes from the statistics, or exclude turns from training."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, pstdev, stdev
from typing import Literal

from lmgym.train.interfaces import FilterResult
from lmgym.types import Trajectory

Within = Literal["group", "all"]
Ties = Literal["keep", "cut"]


def groups(trajectories: Sequence[Trajectory]) -> dict[tuple[str, str], list[Trajectory]]:
    """Return the trajectories by (group, seat), in their order."""
    members: dict[tuple[str, str], list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        members[trajectory.group, trajectory.seat].append(trajectory)
    return dict(members)


def drop_flat_groups(trajectories: Sequence[Trajectory], *, below: float = 1e-6) -> FilterResult:
    """Drop groups whose returns differ by at most `below`: they carry no signal (DAPO)."""
    returns = [(members, [trajectory.reward for trajectory in members]) for members in groups(trajectories).values()]
    flat = (members for members, earned in returns if max(earned) - min(earned) <= below)
    return FilterResult(drop=frozenset(t.id for members in flat for t in members))


def drop_even(trajectories: Sequence[Trajectory], *, least: float) -> FilterResult:
    """Drop groups whose rewards of the first turn have a sample deviation of `least` or less (UI-S1)."""
    sets = [members for members in groups(trajectories).values() if len(members) > 1]
    even = [members for members in sets if stdev(each.turns[0].reward for each in members) <= least]
    return FilterResult(drop=frozenset(each.id for members in even for each in members))


def drop_lone_episodes(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Drop episodes whose group has no other attempt to compare with; forks of an episode do not count as attempts."""
    alone = (each for each in groups(trajectories).values() if len({t.root for t in each}) < 2)
    return FilterResult(drop=frozenset(t.id for members in alone for t in members))


def keep_top(
    trajectories: Sequence[Trajectory], *, share: float, within: Within = "group", ties: Ties = "keep"
) -> FilterResult:
    """Keep the `share` of a round's episodes with the highest returns, per group or over all, and drop the rest.

    Episodes with the lowest return are always dropped, so a group with equal returns is dropped as a whole; a `share`
    of 1 keeps everything. `ties` at the threshold are all kept, or cut in order.
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
    """Keep the `share` of a data set's episodes with the highest returns, per task or over all, and drop the rest.

    Attempts at one instance are ranked among themselves; instances with a single attempt are ranked together. Episodes
    with the lowest return of the whole data set are dropped unless `share` is 1 or all returns are equal: of successes
    and failures only successes remain, so the share kept can differ from `share`. Ties are handled as in `keep_top`;
    at least one episode of every group is ranked high enough.
    """
    candidates = groups(trajectories).values() if within == "group" else [list(trajectories)]
    sets = [members for members in candidates if len(members) > 1]
    alone = [members[0] for members in candidates if len(members) == 1]
    returns = [trajectory.reward for trajectory in trajectories]
    everything = share == 1 or min(returns) == max(returns)
    ranked = [each for members in (*sets, alone) if members for each in _upper(members, share, ties)]
    return _all_but([each for each in ranked if everything or each.reward > min(returns)], trajectories)


def _upper(members: Sequence[Trajectory], share: float, ties: Ties) -> list[Trajectory]:
    """Return the `share` with the highest returns, at least one."""
    ranked = sorted(members, key=lambda trajectory: -trajectory.reward)  # stable: equals stay in order
    count = max(1, round(share * len(members)))
    if ties == "cut":
        return ranked[:count]
    return [each for each in ranked if each.reward >= ranked[count - 1].reward]


def _all_but(kept: Sequence[Trajectory], trajectories: Sequence[Trajectory]) -> FilterResult:
    return FilterResult(drop=frozenset(each.id for each in trajectories) - {each.id for each in kept})


def mask_truncated(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Exclude truncated episodes from training; they still count in the statistics of their group."""
    cut = (t for t in trajectories if t.truncated)
    return FilterResult(mask=frozenset((t.id, turn) for t in cut for turn in range(len(t.turns))))


def mask_stumbles(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Exclude turns whose action was replaced by a random one (see `Stumble`) from training."""
    return FilterResult(
        mask=frozenset(
            (t.id, number) for t in trajectories for number, turn in enumerate(t.turns) if turn.info.get("stumble")
        )
    )


def mask_void(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Exclude episodes with a void turn from training; they still count in the statistics of their group."""
    void = (t for t in trajectories if is_void(t))
    return FilterResult(mask=frozenset((t.id, turn) for t in void for turn in range(len(t.turns))))


def is_void(trajectory: Trajectory) -> bool:
    """Return True for an episode with a void turn (SimpleTIR): here one that the environment took for no action."""
    return not all(turn.info.get("valid", True) for turn in trajectory.turns)


def drop_failures(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Drop episodes without success, unless there is no success at all."""
    return _all_but([t for t in trajectories if t.success] or trajectories, trajectories)


def drop_outside(trajectories: Sequence[Trajectory], *, low: float, high: float) -> FilterResult:
    """Drop groups whose success rate is below `low` or above `high`: those too hard or too easy to learn from."""
    sets = groups(trajectories).values()
    outside = (each for each in sets if not low <= sum(t.success for t in each) / len(each) <= high)
    return FilterResult(drop=frozenset(t.id for members in outside for t in members))


def keep_varied(trajectories: Sequence[Trajectory], *, share: float) -> FilterResult:
    """Keep the `share` of groups whose returns vary most, at least one, and drop the rest; ties stay in order."""
    members = list(groups(trajectories).values())
    spreads = [pstdev(trajectory.reward for trajectory in group) for group in members]
    ranked = sorted(range(len(members)), key=lambda number: -spreads[number])
    kept = [t for number in ranked[: max(1, round(share * len(members)))] for t in members[number]]
    return _all_but(kept, trajectories)


def keep_uncertain(trajectories: Sequence[Trajectory], *, share: float) -> FilterResult:
    """Exclude all but the `share` of turns with the highest mean entropy of their tokens from training (DART)."""
    entropies = {
        (t.id, number): fmean(turn.completion.entropy)
        for t in trajectories
        for number, turn in enumerate(t.turns)
        if turn.completion.entropy
    }
    ranked = sorted(entropies, key=lambda turn: -entropies[turn])
    return FilterResult(mask=frozenset(ranked[max(1, round(share * len(ranked))) :]))
