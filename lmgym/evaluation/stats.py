"""Confidence intervals for evaluations, clustered by instance: instances are the sample, tries of one are averaged.

The choice of intervals rests on their coverage in simulated evaluations: `docs/explanation/statistics.md` shows the
table and `tests/evaluation/test_coverage.py` holds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

Z95 = 1.959963984540054  # standard normal quantile at 0.975
Z80 = 0.8416212335729143  # at 0.8
TAIL = 0.025  # probability on each side of a 95 % interval
RESAMPLES = 4000
BLOCK = 1 << 22  # picks of the bootstrap in memory at once


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % confidence interval."""

    mean: float
    low: float
    high: float
    method: str = field(default="", compare=False)  # name of the method that gave the interval

    def __str__(self) -> str:
        """Format as `0.64 [0.54, 0.73]`."""
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


UNKNOWN = Interval(math.nan, math.nan, math.nan, "no data")


def wilson(successes: float, trials: float, *, z: float = Z95) -> Interval:
    """Return Wilson's interval of a success rate; [0, 1] without trials. Clustered samples have fractional `trials`."""
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0, "no data")
    rate = successes / trials
    scale = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / scale
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / scale
    return Interval(rate, max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half)), "wilson")


def clopper_pearson(successes: int, trials: int) -> Interval:
    """Return the exact binomial interval, whose coverage is at least 95 %."""
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0, "no data")
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(method="exact")
    return Interval(successes / trials, float(interval.low), float(interval.high), "clopper-pearson")


def unit(values: Sequence[float] | Array, instances: Sequence[object]) -> Interval:
    """Return the mean over instances of `values` in [0, 1], with Wilson's interval at the effective number of trials.

    With one try per instance and outcomes 0 or 1 this is plain Wilson. With several, the effective number follows from
    the variance between instances: it lies between the number of instances (all tries of one agree) and the number of
    tries (instances do not differ). For outcomes 0 or 1 the variance is estimated from few instances if success or
    failure is rare, so it is averaged with one instance of the largest possible variance. If all values are 0 or all
    are 1, each instance counts as one trial, so that 0 of 50 is never [0, 0]; equal values in between are `constant`.
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
        largest = mean * (1 - mean)  # variance between instances of which each always or never succeeds
        informative = min(int((means > 0).sum()), int((means < 1).sum()))
        variance = (float(means.var(ddof=1)) * informative + largest) / (informative + 1)
        trials = min(max(largest * count / variance, count), count * count / float((1 / tries).sum()))
    else:
        if count == 1 or np.ptp(means) < 1e-12:
            return constant(mean, count, bounds=(0.0, 1.0))
        trials = mean * (1 - mean) * count / float(means.var(ddof=1))
    return replace(wilson(mean * trials, trials, z=t_quantile(count - 1)), mean=mean, method="clustered wilson")


def _binary(values: Sequence[float] | Array) -> bool:
    return bool(np.isin(np.asarray(values, np.float64), (0.0, 1.0)).all())


def by_instance(values: Sequence[float] | Array, instances: Sequence[object]) -> tuple[Array, Array]:
    """Return the mean and the number of values of each instance, in order of first appearance; both (instances,)."""
    numbers: dict[object, int] = {}
    labels = [numbers.setdefault(instance, len(numbers)) for instance in instances]
    if len(values) != len(labels):
        raise ValueError(f"{len(values)} values of {len(labels)} instances")
    tries = np.bincount(labels, minlength=len(numbers)).astype(np.float64)
    return np.bincount(labels, weights=np.asarray(values, np.float64), minlength=len(numbers)) / tries, tries


def t_quantile(freedom: int) -> float:
    """Return Student's quantile at 0.975."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - TAIL))


def student(values: Sequence[float] | Array, *, bounds: tuple[float, float] | None = None) -> Interval:
    """Return the mean of independent `values` with the t interval, cut at `bounds`; `constant` without variance."""
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
    """Return the interval of `count` equal values within `bounds`; nan without bounds.

    If less than a share of 0.025 ** (1 / count) of the population had this value, 97.5 % of samples would contain
    another one; the rest of the population may lie anywhere within the bounds. For 0 within [0, 1] this is the
    Clopper-Pearson interval.
    """
    if bounds is None:
        return Interval(value, math.nan, math.nan, "no variance")
    rest = 1 - TAIL ** (1 / count)
    low, high = bounds
    return Interval(value, value - rest * (value - low), value + rest * (high - value), "constant")


def paired_interval(differences: Sequence[float] | Array) -> Interval:
    """Return the mean of independent paired differences in [-1, 1], with its interval.

    The t interval; if all differences are -1, 0 or 1 (single tries, solved or not), that of Agresti and Min, which adds
    half a pair to each of the four cells, with Student's quantile: plain t covers 77 % if few pairs are discordant.
    """
    sample = np.asarray(differences, np.float64)
    if not _discrete(sample):
        return student(sample, bounds=(-1.0, 1.0))
    mean, (centre, error) = float(sample.mean()), _smoothed(sample)
    half = t_quantile(len(sample) - 1) * error
    return Interval(mean, max(-1.0, min(mean, centre - half)), min(1.0, max(mean, centre + half)), "agresti-min")


def resolution(differences: Array) -> float:
    """Return the smallest true mean difference that a sample like this detects with power 0.8, two-sided at 5 %.

    It is nan for a single instance, whose variance is unknown.
    """
    count = len(differences)
    if count < 2:
        return math.nan
    if _discrete(differences):
        error = _smoothed(differences)[1]
    elif np.ptp(differences) < 1e-12:
        interval = constant(float(differences[0]), count, bounds=(-1.0, 1.0))
        error = (interval.high - interval.low) / (2 * t_quantile(count - 1))
    else:
        error = float(differences.std(ddof=1)) / math.sqrt(count)
    return (Z95 + Z80) * error


def _discrete(differences: Array) -> bool:
    return len(differences) > 1 and bool(np.isin(differences, (-1.0, 0.0, 1.0)).all())


def _smoothed(differences: Array) -> tuple[float, float]:
    """Return mean and standard error with half a pair added to each of the four cells."""
    count = len(differences) + 2
    centre = float(differences.sum()) / count
    return centre, math.sqrt(((float((differences**2).sum()) + 1) / count - centre**2) / count)


def bootstrap(values: Sequence[float] | Array, *, bounds: tuple[float, float] | None = None, seed: int = 0) -> Interval:
    """Return the mean of independent `values` with the BCa bootstrap interval of 4000 resamples.

    Without variance the interval is that of `constant` within `bounds`.
    """
    return bootstraps(np.asarray(values, np.float64)[:, None], bounds=bounds, seed=seed)[0]


def bootstraps(columns: Array, *, bounds: tuple[float, float] | None = None, seed: int = 0) -> list[Interval]:
    """Bootstrap each column of (samples, columns) over the same resamples."""
    count = len(columns)
    if not count:
        return [UNKNOWN] * columns.shape[1]
    drawn = np.concatenate([weights @ columns for weights in resamples(count, seed=seed)])
    return [
        _accelerated(columns[:, n], drawn[:, n]) or constant(float(columns[0, n]), count, bounds=bounds)
        for n in range(columns.shape[1])
    ]


def resamples(count: int, *, seed: int = 0, draws: int = RESAMPLES) -> Iterator[Array]:
    """Yield weights (rows, count) of `draws` resamples of `count` samples, in blocks of rows; each row sums to 1."""
    noise = np.random.default_rng(seed)
    rows = max(1, BLOCK // count)
    for start in range(0, draws, rows):
        size = min(rows, draws - start)
        picks = noise.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        yield np.bincount(picks.ravel(), minlength=size * count).reshape(size, count) / count


def _accelerated(sample: Array, drawn: Array) -> Interval | None:
    """Return Efron's BCa interval of a mean from its resampled means; None without variance.

    scipy.stats.bootstrap has the same equation, but its jackknife takes time and memory in the square of the sample,
    and it counts resampled means that differ from the mean by rounding alone as smaller or larger.
    """
    mean = float(sample.mean())
    deviation = sample - mean
    if np.ptp(sample) < 1e-12:
        return None
    from scipy.special import ndtr, ndtri

    ties = np.abs(drawn - mean) <= 1e-12 * max(1.0, abs(mean))
    below = float(((drawn < mean) & ~ties).mean() + ties.mean() / 2)
    bias = ndtri(min(max(below, 1 / len(drawn)), 1 - 1 / len(drawn)))
    acceleration = float((deviation**3).sum()) / (6 * float((deviation**2).sum()) ** 1.5)
    ends = bias + ndtri(np.array([TAIL, 1 - TAIL]))
    low, high = np.quantile(drawn, ndtr(bias + ends / (1 - acceleration * ends)))
    return Interval(mean, float(low), float(high), "bootstrap")


def clustered(values: Sequence[float] | Array, instances: Sequence[object]) -> Interval:
    """Return the mean of `values` over instances, with the bootstrap interval over whole instances."""
    return bootstrap(by_instance(values, instances)[0])


def mean_figure(values: Sequence[float] | Array, instances: Sequence[object]) -> Interval:
    """Return the mean over instances of a task's own figure: `unit` if all values are 0 or 1, else `clustered`."""
    return unit(values, instances) if _binary(values) else clustered(values, instances)


def paired(before: Sequence[float], after: Sequence[float], instances: Sequence[object]) -> Interval:
    """Return the paired difference `after - before` of values in [0, 1], averaged over the tries of each instance."""
    differences = [new - old for old, new in zip(before, after, strict=True)]
    return paired_interval(by_instance(differences, instances)[0])


def ratio(parts: Array, wholes: Array) -> Interval:
    """Return sum of `parts` over sum of `wholes`, both (instances,), with the linearised t interval cut at [0, 1]."""
    if not wholes.sum():
        return UNKNOWN
    share = float(parts.sum() / wholes.sum())
    linearised = share + (parts - share * wholes) / wholes.mean()
    return replace(student(linearised, bounds=(0.0, 1.0)), mean=share)
