"""Intervals: Wilson's for a success rate, the bootstrap for means and paired differences. Plain numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Z95 = 1.959963984540054  # standard normal quantile at 0.975
RESAMPLES = 4000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """As `0.64 [0.54, 0.73]`."""
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


def wilson(successes: int, trials: int, *, z: float = Z95) -> Interval:
    """Wilson's interval of a success rate; [0, 1] without trials."""
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0)
    rate = successes / trials
    scale = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / scale
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / scale
    return Interval(rate, max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half)))


def bootstrap(values: Sequence[float] | npt.NDArray[np.float64], *, seed: int = 0) -> Interval:
    """Mean of independent `values` with the percentile interval of 4000 resamples."""
    sample = np.asarray(values, np.float64)
    if not len(sample):
        return Interval(math.nan, math.nan, math.nan)
    picks = np.random.default_rng(seed).integers(len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.quantile(sample[picks].mean(1), [0.025, 0.975])
    return Interval(float(sample.mean()), float(low), float(high))


def clustered(values: Sequence[float], instances: Sequence[object]) -> Interval:
    """Mean of `values` over instances, all tries of an instance as one; resamples whole instances."""
    tries: dict[object, list[float]] = {}
    for value, instance in zip(values, instances, strict=True):
        tries.setdefault(instance, []).append(value)
    return bootstrap([sum(found) / len(found) for found in tries.values()])


def paired(before: Sequence[float], after: Sequence[float], instances: Sequence[object]) -> Interval:
    """Mean of `after - before`, episode by episode; resamples whole instances."""
    return clustered([new - old for old, new in zip(before, after, strict=True)], instances)
