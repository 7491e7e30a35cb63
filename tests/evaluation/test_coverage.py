"""Coverage of the stated intervals in 2,000 simulated evaluations of clustered tries: about 95 %."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from lmgym.evaluation.stats import paired_interval, student
from tests.evaluation.coverage import EVALUATIONS, coverage, share


@pytest.mark.parametrize("instances", [50, 200])
@pytest.mark.parametrize("success", [0.2, 0.5, 0.8])
def test_stated_intervals_cover_and_unclustered_ones_do_not(instances, success):
    found = coverage(instances, success)
    assert 0.75 <= found["unclustered"] <= 0.88
    for kind in ("stated", "t", "bootstrap"):
        assert 0.93 <= found[kind] <= 0.97, (kind, found)


@pytest.mark.parametrize("instances", [50, 200])
def test_rare_success_is_covered_better_than_by_t(instances):
    found = coverage(instances, 0.05)
    assert found["t"] < 0.94
    assert 0.94 <= found["stated"] <= 0.98  # rather too wide than too narrow


@pytest.mark.parametrize("success", [0.02, 0.05])
def test_rare_success_is_covered_with_few_informative_instances(success):
    found = coverage(50, success, tries=8, icc=0.6)
    assert found["t"] < 0.9
    assert 0.94 <= found["stated"] <= 0.98


def test_a_single_try_is_covered_too():
    assert 0.93 <= coverage(50, 0.3, tries=1)["stated"] <= 0.97


def test_paired_differences_cover_with_few_discordant_pairs():
    noise = np.random.default_rng(3)
    chance = noise.beta(1.94, 0.06, size=(EVALUATIONS, 50))
    pairs = noise.random((2, EVALUATIONS, 50)) < chance  # equal chances: the true difference is 0
    differences = pairs[1].astype(float) - pairs[0]
    discordant = differences[(differences != 0).any(1)]  # t says nothing at all without one
    assert share([student(found, bounds=(-1.0, 1.0)) for found in discordant], 0.0) < share(
        [paired_interval(found) for found in discordant], 0.0
    )
    assert share([paired_interval(found) for found in differences], 0.0) >= 0.95


def test_paired_differences_over_tries_cover():
    noise = np.random.default_rng(4)
    chance = noise.beta(1.5, 1.5, size=(EVALUATIONS, 60))
    better = expit(logit(chance) + 0.5)
    truth = float(np.mean(better - chance))
    differences = (noise.binomial(4, better) - noise.binomial(4, chance)) / 4
    assert 0.93 <= share([paired_interval(found) for found in differences], truth) <= 0.97
