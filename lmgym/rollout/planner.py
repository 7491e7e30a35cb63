"""What is played: a Planner's three hooks, and what they may answer.

Resampling, best-first search and a proposer's problems are jobs of `after_episode`; rewinding is a Fork that stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmgym.types import Job, Message, Trajectory, Turn

if TYPE_CHECKING:
    from lmgym.rollout.episode_state import EpisodeState


@dataclass(frozen=True)
class Replace:
    """Say `text` in the policy's stead; the turn is of kind "given" and has no ids."""

    text: str
    info: Mapping[str, Any] = field(default_factory=dict)  # goes into the turn's


@dataclass(frozen=True)
class Continue:
    """Go on."""


@dataclass(frozen=True)
class Stop:
    """Cut the episode; it is scored by the task's `score_if_cut`."""

    reason: str


@dataclass(frozen=True)
class Fork:
    """Play `count` further episodes that share the turns before `turn` of this one."""

    count: int = 1
    turn: int | None = None  # of the seat on turn; None: all so far
    reseed: int | None = None  # fresh chance for the first of them, one more for each next; None keeps this episode's
    stop: str | None = None  # cut this episode for that reason; None: it goes on


CONTINUE = Continue()


class Node:
    """A running episode, to be read."""

    __slots__ = ("_live",)

    def __init__(self, live: EpisodeState) -> None:
        self._live = live

    @property
    def job(self) -> Job:
        """The job being played, with its id."""
        return self._live.job

    @property
    def seat(self) -> str:
        """The seat on turn."""
        return self._live.side.seat

    @property
    def turns(self) -> Sequence[Turn]:
        """The turns of the seat on turn so far."""
        return self._live.side.history.turns

    @property
    def observation(self) -> Message:
        """What the seat on turn has to answer."""
        return self._live.side.history.observation

    @property
    def info(self) -> Mapping[str, Any]:
        """Of the step that led here, or of the reset."""
        return self._live.shown.info

    @property
    def hints(self) -> Mapping[str, Any]:
        """What the seat's policy and the planner want to know of the environment."""
        return self._live.shown.hints

    @property
    def forks(self) -> int:
        """Forks made of this episode so far."""
        return self._live.forks


class Planner:
    """Plays every episode to its end; the base of other planners."""

    wants: frozenset[str] = frozenset()  # hints of the environment: of {"oracle", "demonstrator", "admissible"}

    def before_step(self, node: Node) -> Replace | None:
        """Asked when a seat is on turn; None lets its policy speak."""
        return None

    def after_step(self, node: Node) -> Continue | Stop | Fork:
        """Asked after each step that did not end the episode; not for the turns of a prefix."""
        return CONTINUE

    def after_episode(self, trajectory: Trajectory, others: Sequence[Trajectory]) -> Iterable[Job]:
        """More jobs, after an episode as its first seat saw it; `others` are the views of the other seats."""
        return ()
