"""Replay: recorded actions, played again without a model, must earn the recorded rewards and score."""

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

TASK_STOPS = ("done", "max_turns")  # reasons that the environment, not the engine, sets


class Mute:
    """Policy without an answer: the engine cuts the episode after the recorded turns."""

    name = "mute"
    version = 0
    wants: frozenset[str] = frozenset()

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Return empty completions."""
        return [Completion(text="", finish="context") for _ in conversations]

    def count(self, messages: Sequence[Message]) -> int:
        """Return 0."""
        return 0

    def session(self) -> SimpleSession:
        """Return a session that answers at once."""
        return SimpleSession(self)


def replay(
    trajectory: Trajectory,
    *,
    others: Sequence[Trajectory] = (),
    player: Kind | None = None,
    pictures: MutableMapping[str, bytes] | None = None,
    trusted: bool = False,
) -> Trajectory:
    """Replay a recorded episode and return the new trajectory; `pictures` receives the PNGs shown, by digest.

    Raises ReplayError at the first observation or reward that differs, and if score, success or ending differ; of
    tasks whose goldens hold outcomes only, just the outcome is compared. `others` are the trajectories of the other
    seats. Records that `check_harmless` refuses are replayed only if `trusted`.
    """
    everyone = (trajectory, *others)
    job = fork(trajectory, len(trajectory.turns), others=others, trusted=trusted)
    seats = {each.seat: SeatConfig(prompt=each.prompt) for each in everyone if each.seat != FIRST_SEAT}
    engine = Engine(seats=seats, player=player, pictures={} if pictures is None else pictures)
    replayed = {each.seat: each for each in engine.run(Mute(), [job])}
    for each in everyone:
        _compare(each, replayed[each.seat])
    return replayed[trajectory.seat]


def _compare(recorded: Trajectory, replayed: Trajectory) -> None:
    """Raise ReplayError if the outcome or a reward of a replayed trajectory differs."""
    names = ["terminated", "truncated", "score", "success"]
    if recorded.stop in TASK_STOPS:
        names.append("stop")
    if find(recorded.task).goldens == "exact":
        names.append("final")
    differences = [
        f"{name} was {before!r}, is {after!r} in the replay"
        for name in names
        if not _same(before := getattr(recorded, name), after := getattr(replayed, name))
    ]
    for name, figure in recorded.figures.items():
        if not _same(figure, after := replayed.figures.get(name)):
            differences.append(f"{name} was {figure}, is {after} in the replay")
    for number, (before, after) in enumerate(zip(recorded.turns, replayed.turns, strict=False)):
        for term, earned in after.terms.items():  # a recipe may have added others
            if not _same(before.terms.get(term, 0.0), earned):
                differences.append(
                    f"turn {number}: {term} was {before.terms.get(term, 0.0)}, is {earned} in the replay"
                )
    if differences:
        raise ReplayError(f"{recorded.id} ({recorded.task}) does not replay: {'; '.join(differences)}")


def _same(before: object, after: object) -> bool:
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-9)
    return before == after
