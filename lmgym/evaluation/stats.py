"""Intervals for evaluations, where the tries of an instance are one sample: whole instances are what was drawn.

Which interval is used where was decided by the coverage found in simulated evaluations;
`docs/explanation/statistics.md` shows the table and `tests/evaluation/test_coverage.py` holds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

Z95 = 1.959963984540054  # standard normal quantile at 0.975
Z80 = 0.8416212335729143  # at 0.8
TAIL = 0.025  # of each side of a 95 % interval
RESAMPLES = 4000
BLOCK = 1 << 22  # picks of the bootstrap that are held at once


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % confidence interval."""

    mean: float
    low: float
    high: float
    method: str = field(default="", compare=False)  # how the interval was found

    def __str__(self) -> str:
        """As `0.64 [0.54, 0.73]`."""
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


UNKNOWN = Interval(math.nan, math.nan, math.nan, "no data")


# Rates ---------------------------------------------------------------------------------------------------------


def wilson(successes: float, trials: float, *, z: float = Z95) -> Interval:
    """Wilson's interval of a success rate; [0, 1] without trials. A clustered sample has fractional `trials`."""
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0, "no data")
    rate = successes / trials
    scale = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / scale
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / scale
    return Interval(rate, max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half)), "wilson")


def clopper_pearson(successes: int, trials: int) -> Interval:
    """Exact binomial interval: never covers less than 95 %, and usually more."""
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0, "no data")
    from scipy.special import betaincinv

    low = betaincinv(successes, trials - successes + 1, TAIL) if successes else 0.0
    high = betaincinv(successes + 1, trials - successes, 1 - TAIL) if successes < trials else 1.0
    return Interval(successes / trials, float(low), float(high), "clopper-pearson")


def unit(values: Sequence[float] | Array, instances: Sequence[object]) -> Interval:
    """Mean over instances of `values` in [0, 1] with Wilson's interval for as many trials as the sample is worth.

    A single try of each instance at success is plain Wilson. Several tries are worth between as many trials as
    there are instances (all tries alike) and as there are tries (instances alike), by the variance found between
    instances. For outcomes of 0 and 1 few instances may tell that variance, those with any success or, if fewer, any
    failure: it is averaged over them and one instance as unlike as can be. Without any variance at a bound an instance
    is a trial, so that 0 of 50 is never [0, 0]; `constant` elsewhere.
    """
    means, tries = by_instance(values, instances)
    count = len(means)
    if count == 0:
        return Interval(math.nan, 0.0, 1.0, "no data")
    if means.min() < 0 or means.max() > 1:
        return student(means)
    mean = float(means.mean())
    if mean in (0.0, 1.0) or (count == 1 and _binary(values)):
        return wilson(mean * count, count)
    if _binary(values):
        if tries.max() == 1:
            return wilson(float(means.sum()), count)
        largest = mean * (1 - mean)  # variance of instances each of which always or never succeeds
        telling = min(int((means > 0).sum()), int((means < 1).sum()))
        variance = (float(means.var(ddof=1)) * telling + largest) / (telling + 1)
        trials = min(max(largest * count / variance, count), count * count / float((1 / tries).sum()))
    else:
        if count == 1 or np.ptp(means) < 1e-12:
            return constant(mean, count, bounds=(0.0, 1.0))
        trials = mean * (1 - mean) * count / float(means.var(ddof=1))
    return _renamed(wilson(mean * trials, trials, z=t_quantile(count - 1)), mean)


def _renamed(interval: Interval, mean: float) -> Interval:
    return Interval(mean, interval.low, interval.high, "clustered wilson")


def _binary(values: Sequence[float] | Array) -> bool:
    return bool(np.isin(np.asarray(values, np.float64), (0.0, 1.0)).all())


# Means ---------------------------------------------------------------------------------------------------------


def by_instance(values: Sequence[float] | Array, instances: Sequence[object]) -> tuple[Array, Array]:
    """Mean and number of the values of each instance, in the order in which instances first come; both (instances,)."""
    places: dict[object, int] = {}
    place = [places.setdefault(instance, len(places)) for instance in instances]
    found = np.asarray(values, np.float64)
    if len(found) != len(place):
        raise ValueError(f"{len(found)} values of {len(place)} instances")
    tries = np.bincount(place, minlength=len(places)).astype(np.float64)
    return np.bincount(place, weights=found, minlength=len(places)) / tries, tries


def t_quantile(freedom: int) -> float:
    """Student's quantile at 0.975."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - TAIL))


def student(values: Sequence[float] | Array, *, bounds: tuple[float, float] | None = None) -> Interval:
    """Mean of independent `values` with the t interval; within `bounds`, of positive width there without variance."""
    sample = np.asarray(values, np.float64)
    if not len(sample):
        return UNKNOWN
    mean = float(sample.mean())
    if len(sample) == 1 or np.ptp(sample) < 1e-12:
        return constant(mean, len(sample), bounds=bounds)
    half = t_quantile(len(sample) - 1) * float(sample.std(ddof=1)) / math.sqrt(len(sample))
    low, high = bounds or (-math.inf, math.inf)
    return Interval(mean, max(low, mean - half), min(high, mean + half), "t")


def constant(value: float, count: int, *, bounds: tuple[float, float] | None) -> Interval:
    """Interval where all of `count` values are the same and lie within `bounds`; nan without bounds.

    A share of less than 0.025 ** (1 / count) of such values would have shown another one in 97.5 % of samples; the
    rest may lie anywhere within the bounds. For 0 within [0, 1] this is Clopper and Pearson's interval.
    """
    if bounds is None:
        return Interval(value, math.nan, math.nan, "no variance")
    rest = 1 - TAIL ** (1 / count)
    low, high = bounds
    return Interval(value, value - rest * (value - low), value + rest * (high - value), "constant")


def paired_interval(differences: Sequence[float] | Array) -> Interval:
    """Mean of independent paired differences within [-1, 1].

    The t interval; where all are -1, 0 or 1 (single tries, solved or not) Agresti and Min's, which adds half a pair to
    each of the four cells, with Student's quantile: plain t covers 77 % where hardly any pair is discordant.
    """
    found = np.asarray(differences, np.float64)
    if not _discrete(found):
        return student(found, bounds=(-1.0, 1.0))
    mean, (centre, error) = float(found.mean()), _smoothed(found)
    half = t_quantile(len(found) - 1) * error
    return Interval(mean, max(-1.0, min(mean, centre - half)), min(1.0, max(mean, centre + half)), "agresti-min")


def resolution(differences: Array) -> float:
    """Smallest true mean difference that so many paired differences show, two-sided at 5 %, in 80 % of samples."""
    if _discrete(differences):
        error = _smoothed(differences)[1]
    else:
        interval = student(differences, bounds=(-1.0, 1.0))
        error = (interval.high - interval.low) / (2 * t_quantile(max(1, len(differences) - 1)))
    return (Z95 + Z80) * error


def _discrete(differences: Array) -> bool:
    return len(differences) > 1 and bool(np.isin(differences, (-1.0, 0.0, 1.0)).all())


def _smoothed(differences: Array) -> tuple[float, float]:
    """Mean and standard error with half a pair more in each of the four cells."""
    count = len(differences) + 2
    centre = float(differences.sum()) / count
    return centre, math.sqrt(((float((differences**2).sum()) + 1) / count - centre**2) / count)


# Bootstrap -----------------------------------------------------------------------------------------------------


def bootstrap(values: Sequence[float] | Array, *, bounds: tuple[float, float] | None = None, seed: int = 0) -> Interval:
    """Mean of independent `values` with the bias-corrected and accelerated bootstrap interval of 4000 resamples.

    Without variance nothing is there to resample: then `constant` within `bounds`.
    """
    return bootstraps(np.asarray(values, np.float64)[:, None], bounds=bounds, seed=seed)[0]


def bootstraps(columns: Array, *, bounds: tuple[float, float] | None = None, seed: int = 0) -> list[Interval]:
    """`bootstrap` of each column of (samples, columns), over the same resamples."""
    count = len(columns)
    if not count:
        return [UNKNOWN] * columns.shape[1]
    drawn = np.concatenate([weights @ columns for weights in resamples(count, seed=seed)])
    return [
        _accelerated(columns[:, n], drawn[:, n]) or constant(float(columns[0, n]), count, bounds=bounds)
        for n in range(columns.shape[1])
    ]


def resamples(count: int, *, seed: int = 0, draws: int = RESAMPLES) -> Iterator[Array]:
    """Weights (rows, count) of `draws` resamples of `count` samples, in blocks of rows; a row sums to 1."""
    noise = np.random.default_rng(seed)
    rows = max(1, BLOCK // count)
    for start in range(0, draws, rows):
        size = min(rows, draws - start)
        picks = noise.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        yield np.bincount(picks.ravel(), minlength=size * count).reshape(size, count) / count


def _accelerated(sample: Array, drawn: Array) -> Interval | None:
    """Efron's interval of a mean from its resampled means; None without variance."""
    mean = float(sample.mean())
    away = sample - mean
    if np.ptp(sample) < 1e-12:
        return None
    from scipy.special import ndtr, ndtri

    same = np.abs(drawn - mean) <= 1e-12 * max(1.0, abs(mean))
    below = float(((drawn < mean) & ~same).mean() + same.mean() / 2)
    bias = ndtri(min(max(below, 1 / len(drawn)), 1 - 1 / len(drawn)))
    speed = float((away**3).sum()) / (6 * float((away**2).sum()) ** 1.5)
    ends = bias + ndtri(np.array([TAIL, 1 - TAIL]))
    low, high = np.quantile(drawn, ndtr(bias + ends / (1 - speed * ends)))
    return Interval(mean, float(low), float(high), "bootstrap")


# Episodes ------------------------------------------------------------------------------------------------------


def clustered(values: Sequence[float] | Array, instances: Sequence[object]) -> Interval:
    """Mean of `values` over instances, all tries of an instance as one; resamples whole instances."""
    return bootstrap(by_instance(values, instances)[0])


def paired(before: Sequence[float], after: Sequence[float], instances: Sequence[object]) -> Interval:
    """Mean of `after - before`, values in [0, 1], episode by episode; all tries of an instance as one."""
    differences = [new - old for old, new in zip(before, after, strict=True)]
    return paired_interval(by_instance(differences, instances)[0])


def ratio(parts: Array, wholes: Array) -> Interval:
    """Sum of `parts` over sum of `wholes`, both (instances,), with the t interval of its linearisation in [0, 1]."""
    if not wholes.sum():
        return UNKNOWN
    share = float(parts.sum() / wholes.sum())
    rest = (parts - share * wholes) / wholes.mean()
    found = student(rest + share, bounds=(0.0, 1.0))
    return Interval(share, found.low, found.high, found.method)
