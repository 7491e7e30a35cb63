"""How far a stage is, when it is over, and what changes on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmgym.errors import RecipeError
from lmgym.train import ranges


@dataclass(frozen=True)
class StageProgress:
    """Where a stage stands."""

    step: int
    share: float  # of what the stage may take, in [0, 1]


Schedule = Callable[[StageProgress], float]


def constant(value: float) -> Schedule:
    """Always `value`."""
    return lambda progress: value


def linear(first: float, last: float) -> Schedule:
    """From `first` to `last` over the stage."""
    return lambda progress: first + (last - first) * progress.share


@dataclass(frozen=True, kw_only=True)
class Until:
    """When a stage ends: at the first of its limits."""

    steps: int | None = None
    seconds: float | None = None  # in the stage, those before an interruption included

    def __post_init__(self) -> None:
        if self.steps is None and self.seconds is None:
            raise RecipeError("a stage needs an end: Until(steps=...) or Until(seconds=...)")
        ranges.check(vars(self))

    def progress(self, step: int, seconds: float) -> StageProgress:
        """How far a stage is that made `step` steps in `seconds`."""
        shares = [1.0 if not limit else at / limit for at, limit in self._limits(step, seconds)]
        return StageProgress(step, min(1.0, max(shares)))

    def reached(self, step: int, seconds: float) -> bool:
        """Whether the stage is over."""
        return any(at >= limit for at, limit in self._limits(step, seconds))

    def _limits(self, step: int, seconds: float) -> list[tuple[float, float]]:
        pairs = ((step, self.steps), (seconds, self.seconds))
        return [(at, limit) for at, limit in pairs if limit is not None]
