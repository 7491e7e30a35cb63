"""Forks: jobs that replay the first turns of a recorded episode and continue from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.errors import ReplayError
from lmgym.rollout.trust import check_harmless
from lmgym.types import FIRST_SEAT, Job, Trajectory, Turn

PLY = "ply"  # key in a turn's info if several seats play: its position among the turns of all
RESEED = "reseed"  # key in a turn's info: seed that the environment got before the action


def seat_id(episode: str, seat: str) -> str:
    """Return the id of a seat's trajectory in an episode."""
    return episode if seat == FIRST_SEAT else f"{episode}/{seat}"


def episode_id(trajectory_id: str, seat: str) -> str:
    """Return the id of the episode, and of its job, that a seat's trajectory belongs to."""
    return trajectory_id if seat == FIRST_SEAT else trajectory_id.removesuffix(f"/{seat}")


def fork(
    trajectory: Trajectory,
    turn: int,
    *,
    number: int = 0,
    reseed: int | None = None,
    others: Sequence[Trajectory] = (),
    budget: int | None = None,
    tags: Mapping[str, Any] | None = None,
    trusted: bool = False,
) -> Job:
    """Return the job that replays `trajectory.turns[:turn]` and continues from there.

    Forks at the same turn differ in `number`, which is part of their ids and so of their sampling noise. `others` are
    the trajectories of the other seats, if several played. A fork continues its parent's segment: play it with the
    parent's policy and context. Records that `check_harmless` refuses are forked only if `trusted`.
    """
    for each in () if trusted else (trajectory, *others):
        check_harmless(each)
    if not 0 <= turn <= len(trajectory.turns):
        raise ReplayError(f"{trajectory.id} cannot be forked at turn {turn}; it has {len(trajectory.turns)} turns")
    seats = {each.seat: each for each in (trajectory, *others)}
    agent = seats.get(FIRST_SEAT)
    if agent is None:
        raise ReplayError(f"{trajectory.id} is the trajectory of seat {trajectory.seat}: pass the agent's in `others`")
    rest = trajectory.turns[turn:]
    if reseed is None and rest:
        reseed = rest[0].info.get(RESEED)
    parent = episode_id(trajectory.id, trajectory.seat)
    return Job(
        task=agent.task,
        split=agent.split,
        options=agent.options,
        index=agent.index,
        instance=agent.instance,
        seed=agent.seed,
        attempt=agent.attempt,
        id=f"{parent}+{turn}.{number}",
        group=agent.group,
        prompt=agent.prompt,
        tags={**agent.tags, **(tags or {})},
        budget=budget,
        prefix=_prefix(rest, trajectory, others),
        root=agent.root,
        parent=parent,
        reseed=reseed,
    )


def _prefix(rest: Sequence[Turn], trajectory: Trajectory, others: Sequence[Trajectory]) -> tuple[Turn, ...]:
    """Return the turns of all seats played before the first of `rest`; all turns if `rest` is empty."""
    if not any(PLY in turn.info for each in (trajectory, *others) for turn in each.turns):
        return trajectory.turns[: len(trajectory.turns) - len(rest)]
    everything = sorted((turn for each in (trajectory, *others) for turn in each.turns), key=_ply)
    before = tuple(turn for turn in everything if not rest or _ply(turn) < _ply(rest[0]))
    if [_ply(turn) for turn in before] != list(range(len(before))):
        raise ReplayError(f"{trajectory.id} was played by several seats: pass their trajectories in `others`")
    return before


def _ply(turn: Turn) -> int:
    return int(turn.info[PLY])
