from __future__ import annotations

import math
import random

import pytest
from scipy.stats import binomtest

from lmgym.evaluation.stats import bootstrap, clustered, paired, wilson


@pytest.mark.parametrize(("solved", "count"), [(0, 10), (3, 10), (10, 10), (57, 134), (1, 1)])
def test_wilson_is_scipys(solved, count):
    interval = wilson(solved, count)
    other = binomtest(solved, count).proportion_ci(method="wilson")
    assert (interval.low, interval.high) == pytest.approx((other.low, other.high), abs=1e-12)
    assert interval.mean == solved / count


def test_no_trials_say_nothing():
    interval = wilson(0, 0)
    assert math.isnan(interval.mean)
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_the_bootstrap_of_a_mean_is_near_the_normal_interval():
    clock = random.Random(0)
    values = [clock.gauss(2, 3) for _ in range(400)]
    interval = bootstrap(values)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * 3 / 20, rel=0.15)
    assert interval == bootstrap(values)


def test_tries_of_an_instance_are_one_sample():
    narrow = bootstrap([0.0, 1.0] * 50)
    wide = clustered([0.0] * 50 + [1.0] * 50, [n // 10 for n in range(100)])
    assert wide.mean == narrow.mean
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_a_paired_difference_is_sharper_than_two_intervals():
    before = [float(n % 2) for n in range(100)]
    after = [1.0 if n % 10 == 0 else value for n, value in enumerate(before)]
    gain = paired(before, after, range(100))
    assert gain.mean == pytest.approx(0.1)
    assert gain.low > 0
    assert wilson(60, 100).low < wilson(50, 100).high
