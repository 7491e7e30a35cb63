from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, trim_mean

from lmgym.evaluation.aggregate import aggregate, improvement, interquartile_mean, profile


def runs(*means):
    """Runs whose instances all score alike."""
    return [np.full(5, mean) for mean in means]


def test_the_interquartile_mean_drops_a_quarter_at_each_end():
    # 0 0 | .2 .4 .6 .8 | 1 1: mean of the middle four is .5
    samples = [runs(0.0, 0.2, 0.6, 1.0), runs(0.0, 0.4, 0.8, 1.0)]
    assert aggregate(samples, interquartile_mean).mean == pytest.approx(0.5)


@pytest.mark.parametrize("count", [4, 5, 11, 30])
def test_the_interquartile_mean_is_scipys_trimmed_mean(count):
    scores = np.random.default_rng(count).random((3, count))
    assert interquartile_mean(scores).tolist() == [trim_mean(row, 0.25) for row in scores]


def test_probability_of_improvement_is_mann_whitneys_u():
    before, after = [runs(0.1, 0.5), runs(0.9, 0.8)], [runs(0.5, 0.7), runs(0.1, 0.2)]
    assert improvement(before, after).mean == pytest.approx((3.5 / 4 + 0) / 2)
    noise = np.random.default_rng(0)
    old, new = noise.random(9), noise.random(9) + 0.2
    found = improvement([runs(*old)], [runs(*new)])
    assert found.mean == pytest.approx(mannwhitneyu(new, old).statistic / 81)
    assert found.low < found.mean < found.high


def test_a_profile_falls_from_one_to_none():
    samples = [runs(0.1, 0.5), runs(0.6, 0.9)]
    assert [point.mean for point in profile(samples, (0.0, 0.1, 0.5, 0.9))] == [1.0, 0.75, 0.5, 0.0]


def test_runs_are_drawn_again_within_their_task_and_a_single_one_by_instance():
    samples = [runs(*[0.1] * 4), runs(*[0.9] * 4)]  # no spread within a task: none in the mean, whatever lies between
    found = aggregate(samples, lambda scores: scores.mean(-1))
    assert (found.low, found.high) == pytest.approx((0.5, 0.5))
    scores = np.random.default_rng(1).random(400)
    found = aggregate([[scores], [scores]], lambda means: means.mean(-1))
    error = scores.std() / np.sqrt(400) / np.sqrt(2)  # of two tasks drawn apart
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    with pytest.raises(ValueError, match="the same number of runs"):
        aggregate([runs(0.1, 0.2), runs(0.3)], interquartile_mean)
