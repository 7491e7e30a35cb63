from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lmgym.errors import InstanceError
from lmgym.evaluation.power import Spread, instances_for, power_of, spread_of
from tests.evaluation.coverage import solved
from tests.evaluation.reports import report

FIRST = Spread(success=0.4, icc=0.4, correlation=0.5)


def test_more_tries_need_fewer_instances_and_the_number_is_the_smallest_with_the_power():
    needed = [instances_for(FIRST, 0.05, tries) for tries in (1, 2, 4, 8)]
    assert needed == sorted(needed, reverse=True)
    episodes = [tries * count for tries, count in zip((1, 2, 4, 8), needed, strict=True)]
    assert episodes == sorted(episodes)
    # p .5 and .5: between .4 * .25 = .1, within .15 / 3 = .05 each; 2 * .1 + 2 * .05 - 2 * .5 * .1 = .2
    assert Spread(success=0.5, icc=0.4, correlation=0.5).variance(0.0, 3) == pytest.approx(0.2)
    count = instances_for(FIRST, 0.1, 2)
    variance = FIRST.variance(0.1, 2)
    assert power_of(variance, 0.1, count) >= 0.8 > power_of(variance, 0.1, count - 1)


def test_planned_runs_detect_the_difference_in_80_percent_of_cases():
    variance, difference = FIRST.variance(0.1, 2), 0.1
    count = instances_for(FIRST, difference, 2)
    noise = np.random.default_rng(0).normal(difference, np.sqrt(variance), size=(3000, count))
    assert (scipy_stats.ttest_1samp(noise, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.025)


@pytest.mark.parametrize("icc", [0.2, 0.6])
def test_a_pilot_estimates_success_and_icc(icc):
    outcomes = solved(200, 0.4, icc=icc)[0]
    spread = spread_of([report(outcomes)], icc=0.9, correlation=0.3)
    assert spread.success == pytest.approx(outcomes.mean())
    assert spread.icc == pytest.approx(icc, abs=0.1)
    assert spread.correlation == 0.3
    assert "200 instances" in spread.source


def test_two_pilots_estimate_the_correlation():
    noise = np.random.default_rng(0)
    chance = noise.beta(1, 1, size=(400, 1))
    same = [report(noise.random((400, 4)) < chance) for _ in range(2)]
    other = [same[0], report(noise.random((400, 4)) < noise.permutation(chance))]
    assert spread_of(same, icc=0.5, correlation=0.0).correlation == pytest.approx(1.0, abs=0.15)
    assert spread_of(other, icc=0.5, correlation=0.9).correlation == pytest.approx(0.0, abs=0.15)


def test_success_is_that_of_the_weaker_pilot():
    strong, weak = report([[1], [1], [0], [1]]), report([[1], [0], [0], [0]])
    for pair in ([strong, weak], [weak, strong]):
        assert spread_of(pair, icc=0.5, correlation=0.5).success == 0.25


def test_a_pilot_of_single_tries_estimates_success_only():
    spread = spread_of([report([[1], [0], [1]])], icc=0.7, correlation=0.2)
    assert (spread.icc, spread.correlation) == (0.7, 0.2)
    assert spread.source.startswith("success of")


@pytest.mark.parametrize("difference", [0.0, 1e-5, 2.0])
def test_a_difference_out_of_reach_is_refused(difference):
    with pytest.raises(InstanceError):
        instances_for(FIRST, difference, 1)


def test_a_difference_beyond_certain_success_is_refused():
    certain = Spread(success=1.0, icc=0.5, correlation=0.5)
    with pytest.raises(InstanceError, match="a success of 1 cannot differ by 0.05: .* one of the other sign"):
        instances_for(certain, 0.05, 1)
    assert instances_for(certain, -0.05, 1) > 20
