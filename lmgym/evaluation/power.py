"""How many instances and tries it takes to show a difference, before money is spent.

Success of a try varies between instances and between tries of one. More tries only shrink the second part; the
instances' own part is shared by two policies as far as they find the same instances hard.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmgym.errors import InstanceError
from lmgym.evaluation.runner import Report
from lmgym.evaluation.stats import Array, by_instance, t_quantile

LARGEST = 10_000_000  # instances; more is out of reach


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How success varies, for two policies on the same instances."""

    success: float  # of the first policy
    icc: float  # share of the variance that lies between instances, 0 to 1
    correlation: float  # of the two policies' chances on an instance, -1 to 1
    source: str = ""  # where the figures come from

    def variance(self, difference: float, tries: int) -> float:
        """Variance over instances of the paired difference of two means over `tries`."""
        rates = (self.success, min(1.0, max(0.0, self.success + difference)))
        kinds = [rate * (1 - rate) for rate in rates]
        between = [self.icc * kind for kind in kinds]
        within = [(1 - self.icc) * kind / tries for kind in kinds]
        return sum(between) + sum(within) - 2 * self.correlation * math.sqrt(between[0] * between[1])


def power_of(variance: float, difference: float, instances: int) -> float:
    """Chance that a paired t test at 5 % finds a true `difference` among so many instances."""
    from scipy.special import nctdtr

    if variance <= 0:
        return 1.0
    centre, edge = abs(difference) * math.sqrt(instances / variance), t_quantile(instances - 1)
    return float(1 - nctdtr(instances - 1, centre, edge) + nctdtr(instances - 1, centre, -edge))


def instances_for(spread: Spread, difference: float, tries: int, *, power: float = 0.8) -> int:
    """Instances that show `difference` with chance `power`. Raises InstanceError where none suffices."""
    if not 0 < abs(difference) <= 1 or not 0.05 < power < 1:
        raise InstanceError(f"a difference is within (0, 1], power within (0.05, 1); got {difference} and {power}")
    variance = spread.variance(difference, tries)
    low, high = 1, 2
    while power_of(variance, difference, high) < power:
        low, high = high, 2 * high
        if high > LARGEST:
            raise InstanceError(f"a difference of {difference:g} is out of reach: over {LARGEST:,} instances")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(variance, difference, middle) >= power else (middle, high)
    return high


def spread_of(reports: Sequence[Report], *, icc: float, correlation: float) -> Spread:
    """What one pilot run, or two on the same instances, tell; `icc` and `correlation` where they do not.

    A pilot without second tries cannot tell between and within instances apart, one alone nothing of correlation.
    """
    first = reports[0]
    means, tries = _solved(first)
    found = {"success": float(means.mean())} if len(means) else {}
    if not found:
        raise InstanceError(f"the run on {first.task} {first.split} has no result to plan with")
    shares = [share for share in map(_icc, reports) if share is not None]
    if shares:
        icc = float(np.mean(shares))
    known = ["success"] + ["icc"] * bool(shares)
    if len(reports) > 1 and (shared := _correlation(reports[0], reports[1], icc)) is not None:
        correlation, known = shared, [*known, "correlation"]
    source = f"{', '.join(known)} of the pilot, {len(means)} instances"
    return Spread(success=found["success"], icc=icc, correlation=correlation, source=source)


def _solved(report: Report) -> tuple[Array, Array]:
    return by_instance([float(outcome.success) for outcome in report.played], report.instances)


def _icc(report: Report) -> float | None:
    """Share of variance between instances, by analysis of variance; None without second tries or any variance."""
    means, tries = _solved(report)
    count, total = len(means), float(tries.sum())
    if count < 2 or total <= count:
        return None
    rate = float((means * tries).sum() / total)
    between = float((tries * (means - rate) ** 2).sum()) / (count - 1)
    within = float((tries * means * (1 - means)).sum()) / (total - count)
    usual = (total - float((tries**2).sum()) / total) / (count - 1)
    whole = between + (usual - 1) * within
    return min(1.0, max(0.0, (between - within) / whole)) if whole > 0 else None


def _correlation(before: Report, after: Report, icc: float) -> float | None:
    """Of the chances on an instance: the covariance of means over the variance that lies between instances."""
    means = []
    for report in (before, after):
        solved, _ = _solved(report)
        means.append(dict(zip(dict.fromkeys(report.instances), solved, strict=True)))
    common = sorted(means[0].keys() & means[1].keys(), key=repr)
    if len(common) < 2 or before.task != after.task:
        return None
    pairs = np.array([[found[index] for found in means] for index in common])
    rates = pairs.mean(0)
    between = icc * float(np.sqrt(np.prod(rates * (1 - rates))))
    return None if between <= 0 else min(1.0, max(-1.0, float(np.cov(pairs.T)[0, 1]) / between))
