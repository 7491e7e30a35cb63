"""Planners decide what is played: seven hooks and their answers.

Planners keep no state of an episode or a group: the Node and its Group have it. Rewinding is a Fork that stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from lmgym.types import Job, Message, Trajectory, Turn


@dataclass(frozen=True)
class Replace:
    """Play `text` in the policy's place; the turn is of kind "given" and has no ids."""

    text: str
    info: Mapping[str, Any] = field(default_factory=dict)  # added to the turn's info


@dataclass(frozen=True)
class Continue:
    """Continue the episode."""


@dataclass(frozen=True)
class Stop:
    """Cut the episode; the task's `score_if_cut` scores it."""

    reason: str


@dataclass(frozen=True)
class Fork:
    """Play `count` more episodes that share the turns before `turn` of this one."""

    count: int = 1
    turn: int | None = None  # of the seat on turn; None: all so far
    reseed: int | None = None  # fresh chance of the first fork, one more for each next; None keeps this episode's
    stop: str | None = None  # cut this episode for that reason; None: it continues


CONTINUE = Continue()


@dataclass(slots=True, eq=False)
class Group:
    """The jobs of a group, forks included, and the episodes that have ended; all are played by one engine."""

    name: str
    jobs: list[Job] = field(default_factory=list)  # queued, running and ended, in the order queued
    trajectories: list[Trajectory] = field(default_factory=list)  # of the first seat, in the order ended
    open: int = 0  # jobs that have not ended

    @staticmethod
    def name_of(job: Job) -> str:
        """Return the name of a job's group; a job without one shares a group with its forks only."""
        return job.group or job.root or job.id

    @property
    def roots(self) -> int:
        """Number of jobs that are no forks."""
        return sum(job.parent is None for job in self.jobs)

    def tries(self, count: int) -> list[Job]:
        """Return `count` more tries of the group's instance."""
        first, attempt = self.jobs[0], 1 + max(job.attempt for job in self.jobs)
        return [replace(first, attempt=n, id=f"{self.name}-{n}") for n in range(attempt, attempt + count)]


class Node(Protocol):
    """A running episode as planners read it."""

    @property
    def group(self) -> Group:
        """The group of the episode, as it stands."""

    @property
    def job(self) -> Job:
        """The job being played, with its id."""

    @property
    def seat(self) -> str:
        """Name of the seat on turn."""

    @property
    def turns(self) -> Sequence[Turn]:
        """Turns of the seat on turn so far."""

    @property
    def observation(self) -> Message:
        """Observation that the seat on turn answers next."""

    @property
    def info(self) -> Mapping[str, Any]:
        """Info of the latest step or of the reset."""

    @property
    def hints(self) -> Mapping[str, Any]:
        """Hints that the seat's policy and the planner requested from the environment."""

    @property
    def forks(self) -> int:
        """Number of forks made of this episode so far."""


class Planner:
    """Plays every episode to its end; the base of other planners."""

    wants: frozenset[str] = frozenset()  # hints to request: of {"oracle", "demonstrator", "admissible"}

    def before_step(self, node: Node) -> Replace | None:
        """Return text to play in place of the seat on turn; None lets its policy act."""
        return None

    def before_action(self, node: Node, answer: str) -> Replace | None:
        """Return the action that the environment gets for an answer of the policy; None for the answer itself.

        The turn keeps the sampled words, which the next prompts show, and is trained like any other.
        """
        return None

    def saves(self, node: Node) -> bool:
        """Return True if the state after the next action is to be saved, where the task can, for forks to start from.

        A fork at the present turn or before the latest answer starts from a saved state, any other by replay: its
        trajectory is the same.
        """
        return False

    def after_step(self, node: Node) -> Continue | Stop | Fork:
        """Decide how to continue after a step that did not end the episode; replayed turns are not asked about."""
        return CONTINUE

    def at_end(self, node: Node) -> Fork | None:
        """Return a fork before the answer that ended the episode, or None; replayed turns are not asked about."""
        return None

    def after_episode(self, trajectory: Trajectory, others: Sequence[Trajectory]) -> Iterable[Job]:
        """Return more jobs, given the first seat's view of a finished episode and the other seats' views."""
        return ()

    def after_group(self, group: Group) -> Iterable[Job]:
        """Return more jobs once all jobs of a group have ended; called again when those of the same group have.

        The jobs of a group must follow each other in the run.
        """
        return ()
