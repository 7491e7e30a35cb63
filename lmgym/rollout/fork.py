"""Going on from the middle of a recorded episode: which turns are shared, and in what order they were played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.errors import ReplayError
from lmgym.rollout.trust import check_harmless
from lmgym.types import FIRST_SEAT, Job, Trajectory, Turn

PLY = "ply"  # in a turn's info where several seats play: its place among the turns of all
RESEED = "reseed"  # in a turn's info: fresh chance that the environment got before the action


def seat_id(episode: str, seat: str) -> str:
    """Id of a seat's trajectory in an episode."""
    return episode if seat == FIRST_SEAT else f"{episode}/{seat}"


def episode_id(trajectory_id: str, seat: str) -> str:
    """Id of the episode that a seat's trajectory belongs to: that of its job."""
    return trajectory_id if seat == FIRST_SEAT else trajectory_id.removesuffix(f"/{seat}")


def owned_turns(trajectory: Trajectory) -> tuple[Turn, ...]:
    """The turns that are not shared with the trajectory this one was forked from."""
    return trajectory.turns[trajectory.forked_at :]


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
    """Return the job that plays `trajectory.turns[:turn]` again and goes on from there.

    Forks at the same turn differ in `number`, which is part of their ids and so of their sampling noise. Where
    several seats played, `others` are the trajectories of the other seats. A fork goes on in its parent's segment:
    play it with the policy and the context that the parent was played with. A record may come from anybody: what
    `check_harmless` refuses is played only where its maker is `trusted`, as by a planner of the engine that played it.
    """
    for each in () if trusted else (trajectory, *others):
        check_harmless(each)
    if not 0 <= turn <= len(trajectory.turns):
        raise ReplayError(f"{trajectory.id} has {len(trajectory.turns)} turns; it cannot be forked at {turn}")
    seats = {each.seat: each for each in (trajectory, *others)}
    agent = seats.get(FIRST_SEAT)
    if agent is None:
        raise ReplayError(f"{trajectory.id} is the view of {trajectory.seat}: give the agent's among `others`")
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
        prefix=_before(rest, trajectory, others),
        root=agent.root,
        parent=parent,
        reseed=reseed,
    )


def _before(rest: Sequence[Turn], trajectory: Trajectory, others: Sequence[Trajectory]) -> tuple[Turn, ...]:
    """Turns of all seats that were played before the first of `rest`; all there are where nothing is left."""
    if not any(PLY in turn.info for each in (trajectory, *others) for turn in each.turns):
        return trajectory.turns[: len(trajectory.turns) - len(rest)]
    everything = sorted((turn for each in (trajectory, *others) for turn in each.turns), key=_ply)
    before = tuple(turn for turn in everything if not rest or _ply(turn) < _ply(rest[0]))
    if [_ply(turn) for turn in before] != list(range(len(before))):
        raise ReplayError(f"{trajectory.id} was played by several seats: give their trajectories as `others`")
    return before


def _ply(turn: Turn) -> int:
    return int(turn.info[PLY])
