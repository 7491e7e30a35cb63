from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from lmgym.errors import InstanceError
from lmgym.evaluation.passes import all_of, any_of, passes
from lmgym.evaluation.report import pass_k, statistics
from tests.evaluation.reports import outcome, report


@pytest.mark.parametrize("solved", range(6))
@pytest.mark.parametrize("k", range(1, 6))
def test_both_are_the_mean_over_all_choices_of_k_of_five_tries(solved, k):
    tries = [True] * solved + [False] * (5 - solved)
    drawn = list(combinations(tries, k))
    arguments = (np.array([float(solved)]), np.array([5.0]), k)
    assert any_of(*arguments)[0] == pytest.approx(np.mean([any(chosen) for chosen in drawn]))
    assert all_of(*arguments)[0] == pytest.approx(np.mean([all(chosen) for chosen in drawn]))


def test_they_are_unbiased_and_have_the_figures_worked_by_hand():
    found = passes(np.array([2.0, 4.0, 0.0]), np.array([4.0, 4.0, 4.0]), [2])[0]
    assert found[0].mean == pytest.approx((5 / 6 + 1) / 3)
    assert found[1].mean == pytest.approx((1 / 6 + 1) / 3)
    assert found[0].low < found[0].mean < found[0].high
    noise = np.random.default_rng(0)
    solved = noise.binomial(5, 0.3, size=200_000).astype(float)
    tries = np.full(len(solved), 5.0)
    assert any_of(solved, tries, 3).mean() == pytest.approx(1 - 0.7**3, abs=3e-3)
    assert all_of(solved, tries, 3).mean() == pytest.approx(0.3**3, abs=3e-3)


def test_more_than_the_tries_is_refused():
    with pytest.raises(ValueError, match="k must be from 1"):
        all_of(np.array([1.0]), np.array([2.0]), 3)
    with pytest.raises(InstanceError, match="--tries 3"):
        pass_k(report([[1, 0], [1, 1]]), 3)
    with pytest.raises(InstanceError):
        pass_k(report([[1, 0], [1, 1]]), 0)


def test_instances_that_never_or_always_succeed_are_not_certain():
    never, always = passes(np.zeros(50), np.full(50, 4.0), [4])[0], passes(np.full(50, 4.0), np.full(50, 4.0), [4])[0]
    assert never[0].high > 0.05
    assert always[1].low < 0.95


def test_an_instance_that_lost_a_try_is_left_out_of_that_k():
    whole = report([[1, 0], [1, 1], [0, 0]])
    lost = report([[1, 0], [1, 1], [0, 0]], planned=6)
    broken = outcome(2, 1, voided=True, stop="void")
    lost = type(lost)(**{**vars(lost), "outcomes": (*lost.outcomes[:-1], broken)})
    assert [row["instances"] for row in statistics(whole)["passes"]] == [3, 3]
    assert [row["instances"] for row in statistics(lost)["passes"]] == [3, 2]
    assert statistics(lost)["passes"][1]["all"]["mean"] == pytest.approx(0.5)
