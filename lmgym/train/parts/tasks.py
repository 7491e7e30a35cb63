"""Tasks: which episodes a step plays."""

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
    """Every instance of the split once before any comes again, in an order that follows from the seed alone."""

    instances: int  # of a step
    tries: int = 1  # episodes of an instance: a group
    budget: int | None = None  # turns at most, below the task's own limit
    first: int | None = None  # instances of the split that are played at all; None: every one

    def __post_init__(self) -> None:
        optional = (number for number in (self.budget, self.first) if number is not None)
        if min(self.instances, self.tries, *optional) < 1:
            raise RecipeError(f"a step needs instances, tries and turns, 1 or more; got {self}")

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """The jobs of a step, try by try within an instance."""
        places = range(step * self.instances, (step + 1) * self.instances)
        return [self._job(step, place, attempt, pool) for place in places for attempt in range(self.tries)]

    def _job(self, step: int, place: int, attempt: int, pool: InstancePool) -> Job:
        size = pool.size if self.first is None else min(self.first, pool.size)
        lap, position = divmod(place, size)
        group = f"{pool.stage}-{step}-{place % self.instances}"
        return Job(
            task=pool.task,
            split=pool.split,
            options=pool.options,
            index=int(order(pool.seed, lap, size)[position]),
            seed=int(np.random.default_rng([pool.seed, place]).integers(1 << 31)),
            attempt=attempt,
            budget=self.budget,
            id=f"{group}-{attempt}",
            group=group,
        )


@cache
def order(seed: int, lap: int, size: int) -> npt.NDArray[np.int64]:
    """All numbers below `size` in the order of a lap."""
    return np.random.default_rng([seed, lap]).permutation(size)
