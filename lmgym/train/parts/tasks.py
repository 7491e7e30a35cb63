"""Tasks: which episodes a step plays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from lmgym.train.recipe import Setting
from lmgym.types import Job


@dataclass(frozen=True)
class Uniform:
    """Every instance of the split once before any comes again, in an order that follows from the seed alone."""

    instances: int  # of a step
    tries: int = 1  # episodes of an instance: a group

    def draw(self, step: int, setting: Setting) -> list[Job]:
        """The jobs of a step, try by try within an instance."""
        places = range(step * self.instances, (step + 1) * self.instances)
        return [self._job(step, place, attempt, setting) for place in places for attempt in range(self.tries)]

    def _job(self, step: int, place: int, attempt: int, setting: Setting) -> Job:
        lap, position = divmod(place, setting.size)
        group = f"{setting.stage}-{step}-{place % self.instances}"
        return Job(
            task=setting.task,
            split=setting.split,
            options=setting.options,
            index=int(_order(setting.seed, lap, setting.size)[position]),
            seed=int(np.random.default_rng([setting.seed, place]).integers(1 << 31)),
            attempt=attempt,
            id=f"{group}-{attempt}",
            group=group,
        )


@cache
def _order(seed: int, lap: int, size: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng([seed, lap]).permutation(size)
