"""Tasks: choose the episodes that a step plays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from lmgym.errors import RecipeError
from lmgym.train.state import InstancePool
from lmgym.types import Job


@dataclass(frozen=True)
class Uniform:
    """Passes over all instances of the split, each pass in a new order that depends on the seed alone."""

    instances: int  # per step
    tries: int = 1  # episodes per instance: a group
    budget: int | None = None  # maximum number of turns, below the task's own limit
    first: int | None = None  # use only the first instances of the split; None: all

    def __post_init__(self) -> None:
        optional = (number for number in (self.budget, self.first) if number is not None)
        if min(self.instances, self.tries, *optional) < 1:
            raise RecipeError(f"instances, tries, budget and first must be 1 or more; got {self}")

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """Return the jobs of a step, grouped by instance."""
        positions = range(step * self.instances, (step + 1) * self.instances)
        return [self._job(step, position, attempt, pool) for position in positions for attempt in range(self.tries)]

    def _job(self, step: int, number: int, attempt: int, pool: InstancePool) -> Job:
        size = pool.size if self.first is None else min(self.first, pool.size)
        lap, position = divmod(number, size)
        group = f"{pool.stage}-{step}-{number % self.instances}"
        return Job(
            task=pool.task,
            split=pool.split,
            options=pool.options,
            index=int(order(pool.seed, lap, size)[position]),
            seed=int(np.random.default_rng([pool.seed, number]).integers(1 << 31)),
            attempt=attempt,
            budget=self.budget,
            id=f"{group}-{attempt}",
            group=group,
        )


@cache
def order(seed: int, lap: int, size: int) -> npt.NDArray[np.int64]:
    """Return the numbers below `size` in the order of pass `lap`."""
    return np.random.default_rng([seed, lap]).permutation(size)
