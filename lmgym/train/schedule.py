"""Progress and end of a stage, and schedules over its progress."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from lmgym.errors import RecipeError
from lmgym.train.ranges import Count, NonNegative, check_ranges


@dataclass(frozen=True)
class StageProgress:
    """Progress of a stage."""

    step: int
    share: float  # of the stage's limit, in [0, 1]


Schedule = Callable[[StageProgress], float]
MEASURED = 10.0  # seconds of a stage after which its speed is known


def constant(value: float) -> Schedule:
    """Return a schedule that is always `value`."""
    return lambda progress: value


def linear(first: float, last: float) -> Schedule:
    """Return a schedule that goes linearly from `first` to `last` over the stage."""
    return lambda progress: first + (last - first) * progress.share


def cosine(first: float, last: float, *, steps: int) -> Schedule:
    """Return a schedule that goes from `first` to `last` along half a cosine in `steps` steps, and stays there."""
    return lambda at: first + (last - first) * (1 - math.cos(math.pi * min(1.0, at.step / steps))) / 2


@dataclass(frozen=True, kw_only=True)
class Until:
    """Limits of a stage, which ends at the first one reached."""

    steps: Count | None = None
    seconds: NonNegative | None = None  # in the stage, without interruptions and evaluations on the way

    def __post_init__(self) -> None:
        if self.steps is None and self.seconds is None:
            raise RecipeError("a stage needs an end: Until(steps=...) or Until(seconds=...)")
        check_ranges(self)

    def progress(self, step: int, seconds: float) -> StageProgress:
        """Return the progress after `step` steps in `seconds`.

        It follows the steps alone while all of them fit into the time, or the speed is not measured yet, so that a time
        limit changes no run that keeps it.
        """
        expected = self.expected(step, seconds) if seconds >= MEASURED else self.steps
        limits = (
            [(step, self.steps)] if self.steps is not None and expected == self.steps else self._limits(step, seconds)
        )
        shares = [1.0 if not limit else at / limit for at, limit in limits]
        return StageProgress(step, min(1.0, max(shares)))

    def reached(self, step: int, seconds: float) -> bool:
        """Return True if a limit is reached."""
        return any(at >= limit for at, limit in self._limits(step, seconds))

    def expected(self, step: int, seconds: float) -> int | None:
        """Return how many steps the stage will take at the speed of its first `step`; None without a time limit."""
        if self.seconds is None or not step or not seconds:
            return None
        in_time = max(step, math.ceil(step * self.seconds / seconds))  # the step that crosses the limit is finished
        return in_time if self.steps is None else min(in_time, self.steps)

    def _limits(self, step: int, seconds: float) -> list[tuple[float, float]]:
        pairs = ((step, self.steps), (seconds, self.seconds))
        return [(at, limit) for at, limit in pairs if limit is not None]
