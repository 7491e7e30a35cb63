"""Power analysis: the instances and tries needed to detect a difference, before money is spent.

Success varies between instances and between the tries of one. More tries reduce only the second part. The first part
cancels in a paired comparison as far as both policies find the same instances hard.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmgym.errors import InstanceError
from lmgym.evaluation.runner import Report
from lmgym.evaluation.stats import Array, by_instance, t_quantile

LARGEST = 10_000_000  # instances


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Variance components of success, for two policies on the same instances."""

    success: float  # of the first policy, to which a difference is added
    icc: float  # intraclass correlation: share of the variance between instances, 0 to 1
    correlation: float  # between the two policies' success rates on an instance, -1 to 1
    source: str = ""  # origin of the figures, for display

    def variance(self, difference: float, tries: int) -> float:
        """Return the variance over instances of the paired difference between two means over `tries`."""
        rates = (self.success, min(1.0, max(0.0, self.success + difference)))
        kinds = [rate * (1 - rate) for rate in rates]
        between = [self.icc * kind for kind in kinds]
        within = [(1 - self.icc) * kind / tries for kind in kinds]
        return sum(between) + sum(within) - 2 * self.correlation * math.sqrt(between[0] * between[1])


def power_of(variance: float, difference: float, instances: int) -> float:
    """Return the power of a paired t test at 5 % for a true `difference` over so many instances."""
    from scipy.special import nctdtr

    if variance <= 0:
        return 1.0
    shift, critical = abs(difference) * math.sqrt(instances / variance), t_quantile(instances - 1)
    return float(1 - nctdtr(instances - 1, shift, critical) + nctdtr(instances - 1, shift, -critical))


def instances_for(spread: Spread, difference: float, tries: int, *, power: float = 0.8) -> int:
    """Return the least number of instances that detect `difference` with `power`. Raises InstanceError if too many."""
    if not 0 < abs(difference) <= 1 or not 0.05 < power < 1:
        raise InstanceError(
            f"difference must be within (0, 1] and power within (0.05, 1); got {difference} and {power}"
        )
    if not -1e-9 <= spread.success + difference <= 1 + 1e-9:
        raise InstanceError(
            f"a success of {spread.success:g} cannot differ by {difference:g}: their sum must be within [0, 1]; "
            "choose a smaller difference, or one of the other sign"
        )
    variance = spread.variance(difference, tries)
    low, high = 1, 2
    while power_of(variance, difference, high) < power:
        low, high = high, 2 * high
        if high > LARGEST:
            raise InstanceError(f"a difference of {difference:g} needs over {LARGEST:,} instances: choose a larger one")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(variance, difference, middle) >= power else (middle, high)
    return high


def spread_of(reports: Sequence[Report], *, icc: float, correlation: float) -> Spread:
    """Estimate the spread from one pilot run, or two on the same instances; `icc` and `correlation` are fallbacks.

    Success is that of the weaker run. The icc needs several tries per instance, the correlation two pilots.
    """
    for report in reports:
        if not report.played:
            raise InstanceError(f"the run on {report.task} {report.split} has no result to plan with")
    solved = [_solved(report)[0] for report in reports]
    weaker = min(solved, key=lambda means: float(means.mean()))
    shares = [share for share in map(_icc, reports) if share is not None]
    if shares:
        icc = float(np.mean(shares))
    estimated = ["success"] + ["icc"] * bool(shares)
    if len(reports) > 1 and (shared := _correlation(reports[0], reports[1], icc)) is not None:
        correlation, estimated = shared, [*estimated, "correlation"]
    source = f"{', '.join(estimated)} of the pilot, {len(weaker)} instances"
    return Spread(success=float(weaker.mean()), icc=icc, correlation=correlation, source=source)


def _solved(report: Report) -> tuple[Array, Array]:
    return by_instance([float(outcome.success) for outcome in report.played], report.instances)


def _icc(report: Report) -> float | None:
    """Estimate the icc by analysis of variance; None without second tries or without variance."""
    means, tries = _solved(report)
    count, total = len(means), float(tries.sum())
    if count < 2 or total <= count:
        return None
    rate = float((means * tries).sum() / total)
    between = float((tries * (means - rate) ** 2).sum()) / (count - 1)
    within = float((tries * means * (1 - means)).sum()) / (total - count)
    size = (total - float((tries**2).sum()) / total) / (count - 1)
    whole = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / whole)) if whole > 0 else None


def _correlation(before: Report, after: Report, icc: float) -> float | None:
    """Estimate the correlation: the covariance of means over the variance between instances; None without either."""
    means = []
    for report in (before, after):
        solved, _ = _solved(report)
        means.append(dict(zip(dict.fromkeys(report.instances), solved, strict=True)))
    common = sorted(means[0].keys() & means[1].keys(), key=repr)
    if len(common) < 2 or before.task != after.task:
        return None
    pairs = np.array([[side[index] for side in means] for index in common])
    rates = pairs.mean(0)
    between = icc * float(np.sqrt(np.prod(rates * (1 - rates))))
    return None if between <= 0 else min(1.0, max(-1.0, float(np.cov(pairs.T)[0, 1]) / between))
