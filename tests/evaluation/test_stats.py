from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lmgym.evaluation.stats import (
    bootstrap,
    bootstraps,
    by_instance,
    clopper_pearson,
    clustered,
    constant,
    paired,
    paired_interval,
    ratio,
    resolution,
    student,
    unit,
    wilson,
)


def repeated(values, tries):
    """The same outcome at every try: `tries` of each instance tell no more than one."""
    return [value for value in values for _ in range(tries)], [n for n in range(len(values)) for _ in range(tries)]


@pytest.mark.parametrize(("solved", "count"), [(0, 10), (3, 10), (10, 10), (57, 134), (1, 1)])
def test_wilson_and_clopper_pearson_are_scipys(solved, count):
    for mine, method in ((wilson(solved, count), "wilson"), (clopper_pearson(solved, count), "exact")):
        other = scipy_stats.binomtest(solved, count).proportion_ci(method=method)
        assert (mine.low, mine.high) == pytest.approx((other.low, other.high), abs=1e-12)
        assert mine.mean == solved / count


def test_no_trials_have_the_widest_interval():
    for interval in (wilson(0, 0), clopper_pearson(0, 0), unit([], [])):
        assert math.isnan(interval.mean)
        assert (interval.low, interval.high) == (0.0, 1.0)


@pytest.mark.parametrize("tries", [1, 2, 5, 40])
@pytest.mark.parametrize("success", [0.0, 1.0])
def test_0_of_50_and_50_of_50_have_a_width_with_any_number_of_tries(tries, success):
    interval = unit(*repeated([success] * 50, tries))
    assert interval.mean == success
    # Wilson's bound of 0 of 50: z² / (50 + z²) = 3.8415 / 53.8415
    assert interval.high - interval.low == pytest.approx(0.07135, abs=1e-5)


def test_tries_count_between_one_and_all_by_how_they_depend():
    values = [1.0] * 17 + [0.0] * 33
    assert unit(values, range(50)) == wilson(17, 50)
    alike = unit(*repeated([1.0] * 17 + [0.0] * 33, 8))
    assert (alike.low, alike.high) == pytest.approx((wilson(17, 50).low, wilson(17, 50).high), abs=0.01)
    clock = random.Random(1)
    outcomes = [float(clock.random() < 0.5) for _ in range(800)]
    width = {tries: unit(outcomes, [n // tries for n in range(800)]) for tries in (1, 4)}
    assert width[4].high - width[4].low == pytest.approx(width[1].high - width[1].low, rel=0.1)
    interval = unit([1.0, 0.0, 1.0, 0.0] * 25, [0] * 100)
    assert interval.high - interval.low > 0.8


def test_scores_have_an_interval_within_their_bounds_also_without_variance_and_the_t_interval_beyond_them():
    interval = unit([0.0] * 48 + [0.1, 0.9], range(50))
    assert 0.0 < interval.low < 0.02 < interval.high < 0.2
    interval = unit([0.5] * 50, range(50))
    rest = 1 - 0.025 ** (1 / 50)
    assert (interval.low, interval.high) == pytest.approx((0.5 - rest / 2, 0.5 + rest / 2))
    assert unit([3.0, 5.0, 4.0], range(3)).method == "t"


def test_tries_are_averaged_by_instance_as_many_as_there_are_values():
    means, tries = by_instance([1.0, 0.0, 1.0, 0.5], ["b", "a", "b", "b"])
    assert means.tolist() == pytest.approx([2.5 / 3, 0.0])
    assert tries.tolist() == [3, 1]
    with pytest.raises(ValueError, match="2 values of 1 instances"):
        by_instance([1.0, 2.0], [0])


def test_student_is_scipys():
    values = [0.1, 0.4, 0.35, 0.8, 0.2]
    low, high = scipy_stats.t.interval(0.95, 4, loc=np.mean(values), scale=scipy_stats.sem(values))
    interval = student(values)
    assert (interval.low, interval.high) == pytest.approx((low, high))
    bounded = student([0.0, 0.0, 0.1], bounds=(0.0, 1.0))
    assert bounded.low == 0.0


def test_a_constant_has_clopper_and_pearsons_interval_at_its_bound_and_none_without():
    assert constant(0.0, 50, bounds=(0.0, 1.0)).high == pytest.approx(clopper_pearson(0, 50).high)
    for interval in (student([4.0, 4.0]), bootstrap([4.0, 4.0])):
        assert interval.mean == 4.0
        assert math.isnan(interval.low)


def test_a_ratio_weights_instances_by_their_size():
    interval = ratio(np.array([1.0, 0.0, 2.0]), np.array([2.0, 4.0, 4.0]))
    # r = 3/10; residuals (1 - .6, -1.2, 2 - 1.2) = (.4, -1.2, .8), over the mean size 10/3: sd = .3 * 1.0583
    half = scipy_stats.t.ppf(0.975, 2) * 0.3 * math.sqrt((0.16 + 1.44 + 0.64) / 2) / math.sqrt(3)
    assert interval.mean == pytest.approx(0.3)
    assert interval.high == pytest.approx(min(1.0, 0.3 + half))


def test_the_detectable_difference_of_few_instances_is_not_that_of_a_cut_interval():
    # 0.9 and 0.1: standard deviation 0.8 / sqrt 2, standard error 0.4; the t interval would reach beyond [-1, 1]
    assert resolution(np.array([0.9, 0.1])) == pytest.approx((1.959964 + 0.841621) * 0.4)
    assert math.isnan(resolution(np.array([0.5])))
    assert resolution(np.full(50, 0.5)) > 0  # no variance is no certainty


def test_a_paired_difference_is_sharper_than_two_intervals():
    before = [float(n % 2) for n in range(100)]
    after = [1.0 if n % 10 == 0 else value for n, value in enumerate(before)]
    found = paired(before, after, range(100))
    assert found.mean == pytest.approx(0.1)
    assert found.low > 0
    assert wilson(60, 100).low < wilson(50, 100).high


def test_half_a_pair_is_added_to_each_cell_so_that_no_discordant_pair_is_no_certainty():
    found = paired_interval([0.0] * 50)
    assert found.low < -0.03 < 0.03 < found.high
    # 10 pairs, 3 better, 1 worse: centre 2/12, variance (4 + 1)/12 - (2/12)², error sqrt of that over 12
    error = math.sqrt((5 / 12 - (2 / 12) ** 2) / 12)
    found = paired_interval([1.0, 1.0, 1.0, -1.0] + [0.0] * 6)
    assert found.mean == pytest.approx(0.2)
    assert found.high == pytest.approx(2 / 12 + scipy_stats.t.ppf(0.975, 9) * error)
    assert resolution(np.array([1.0, 1.0, 1.0, -1.0] + [0.0] * 6)) == pytest.approx((1.959964 + 0.841621) * error)


def test_the_bootstrap_is_scipys_bca():
    clock = np.random.default_rng(5)
    values = clock.exponential(size=60)
    other = scipy_stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=clock).confidence_interval
    interval = bootstrap(values)
    assert interval == bootstrap(values)
    width = other.high - other.low
    assert (interval.low, interval.high) == pytest.approx((other.low, other.high), abs=0.05 * width)
    assert interval.high - values.mean() > values.mean() - interval.low  # skewed to the right, as the values are


def test_samples_are_of_columns_alike_of_all_tries_and_in_blocks():
    values = np.random.default_rng(2).random((3000, 2))
    for column, interval in enumerate(bootstraps(values)):
        alone = bootstrap(values[:, column])
        assert (interval.low, interval.high) == pytest.approx((alone.low, alone.high), abs=1e-12)
    assert bootstrap(values[:, 0]).low == pytest.approx(values[:, 0].mean() - 1.96 * 0.2887 / math.sqrt(3000), abs=2e-3)
    narrow = bootstrap([0.0, 1.0] * 50)
    wide = clustered([0.0] * 50 + [1.0] * 50, [n // 10 for n in range(100)])
    assert wide.mean == narrow.mean
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
