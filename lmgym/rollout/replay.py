"""Proving a recorded episode: its actions, played again without a model, must earn what they earned."""

from __future__ import annotations

import math
from collections.abc import MutableMapping, Sequence

from lmgym.env.registry import find
from lmgym.errors import ReplayError
from lmgym.policy.base import Conversation, SimpleSession
from lmgym.rollout.engine import Engine
from lmgym.rollout.env_pool import Kind
from lmgym.rollout.episode_state import SeatConfig
from lmgym.rollout.fork import fork
from lmgym.types import FIRST_SEAT, Completion, Message, Trajectory

BY_TASK = ("done", "max_turns")  # what ends an episode without the engine's doing


class Mute:
    """Says nothing, for want of room: the engine cuts the episode where the recorded turns end."""

    name = "mute"
    version = 0
    wants: frozenset[str] = frozenset()

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Say nothing."""
        return [Completion(text="", finish="context") for _ in conversations]

    def count(self, messages: Sequence[Message]) -> int:
        """Nothing is too much."""
        return 0

    def session(self) -> SimpleSession:
        """A session that answers at once."""
        return SimpleSession(self)


def replay(
    trajectory: Trajectory,
    *,
    others: Sequence[Trajectory] = (),
    player: Kind | None = None,
    pictures: MutableMapping[str, bytes] | None = None,
    trusted: bool = False,
) -> Trajectory:
    """Play a recorded episode again and return it as it went; `pictures` takes the PNGs that were shown, by digest.

    Raises ReplayError at the first observation or reward that differs, and where score, success or the ending do;
    tasks whose goldens hold outcomes only are held to the outcome. `others` are the trajectories of the other seats.
    A record may come from anybody: what `check_harmless` refuses is played only where its maker is `trusted`.
    """
    everyone = (trajectory, *others)
    job = fork(trajectory, len(trajectory.turns), others=others, trusted=trusted)
    seats = {each.seat: SeatConfig(prompt=each.prompt) for each in everyone if each.seat != FIRST_SEAT}
    shown = {} if pictures is None else pictures
    played = list(Engine(seats=seats, player=player, pictures=shown).run(Mute(), [job]))
    again = {each.seat: each for each in played}
    for each in everyone:
        _compare(each, again[each.seat])
    return again[trajectory.seat]


def _compare(recorded: Trajectory, played: Trajectory) -> None:
    names = ["terminated", "truncated", "score", "success"]
    if recorded.stop in BY_TASK:
        names.append("stop")
    if find(recorded.task).goldens == "exact":
        names.append("final")
    differences = [
        f"{name} was {before!r}, is {after!r}"
        for name in names
        if not _same(before := getattr(recorded, name), after := getattr(played, name))
    ]
    for number, (before, after) in enumerate(zip(recorded.turns, played.turns, strict=False)):
        for term, earned in after.terms.items():  # those that a recipe added are its own
            if not _same(before.terms.get(term, 0.0), earned):
                differences.append(f"turn {number} earned {before.terms.get(term, 0.0)} of {term}, and now {earned}")
    if differences:
        raise ReplayError(f"{recorded.id} ({recorded.task}) does not replay: {'; '.join(differences)}")


def _same(before: object, after: object) -> bool:
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-9)
    return before == after
