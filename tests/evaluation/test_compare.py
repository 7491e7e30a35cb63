from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lmgym.errors import InstanceError
from lmgym.evaluation import pages
from lmgym.evaluation.compare import compare, compare_all, holm, page, permutation_test, sign_test
from lmgym.evaluation.stats import resolution
from tests.evaluation.reports import outcome, report


def test_common_instances_are_compared_and_voided_and_other_ones_counted():
    found = compare(report([[1], [0], [0], [1]]), report([[1], [1], [1]], first=2))
    assert (found.common, found.only) == (2, (2, 1))
    assert (found.success.before, found.success.after) == (0.5, 1.0)
    assert found.success.gain.mean == pytest.approx(0.5)
    broken = report([[1], [0]])
    broken = type(broken)(**{**vars(broken), "outcomes": (*broken.outcomes, outcome(2, voided=True))})
    found = compare(report([[1], [1], [1]]), broken)
    assert (found.common, found.only, found.voided) == (2, (1, 0), (0, 1))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"task": "lmgym/Wordle-v1"}, "task"),
        ({"options": {"words": 5}}, "options"),
        ({"first": 7}, "no instance in common"),
    ],
)
def test_other_tasks_options_and_instances_do_not_compare(other, message):
    with pytest.raises(InstanceError, match=message):
        compare(report([[1]]), report([[1]], **other))


def test_an_option_compared_across_may_differ_and_is_named_with_both_values():
    before, after = report([[1], [1]]), report([[0], [1]], options={"tool": "off"})
    found = compare(before, after, across=["tool"])
    assert (found.success.before, found.success.after) == (1.0, 0.5)
    assert found.settings == (("option tool", "default", '"off"'),)
    with pytest.raises(InstanceError, match="options"):
        compare(before, report([[0]], options={"tool": "off", "level": 2}), across=["tool"])


def test_settings_that_differ_are_named_with_both_values():
    settings = {"temperature": 1.0, "context": "full", "seats": {"user": "simulator-1"}, "instances": "0-9", "seed": 0}
    other = {**settings, "temperature": 0.0, "seats": {"user": "simulator-2", "rival": "x" * 80}, "instances": "0"}
    before = report([[1]], identity="a", settings=settings)
    found = compare_all([before], [report([[1]], identity="b", settings=other)])
    assert found.tasks[0].settings == (
        ("temperature", "1.0", "0.0"),
        ("seats.user", '"simulator-1"', '"simulator-2"'),
        ("seats.rival", "none", '"' + "x" * 56 + "..."),
    )
    shown = pages.as_markdown(page(found))
    assert "Settings that differ" in shown
    assert "simulator-2" in shown
    assert json.loads(json.dumps(found.state_dict()))["tasks"][0]["settings"][0] == ["temperature", "1.0", "0.0"]


def test_settings_differ_by_value_or_else_by_identity():
    one = report([[1]], identity="a", settings={"tries": 1, "instances": "0"})
    two = report([[1]], identity="b", settings={"tries": 1, "instances": "0-4"})
    assert compare(one, one).settings == compare(one, two).settings == ()
    assert "Settings that differ" not in pages.as_markdown(page(compare_all([one], [two])))
    found = compare(report([[1]], identity="a"), report([[1]]))
    assert found.settings == (("identity", "a", "not recorded"),)


def test_single_tries_are_tested_by_mcnemar_and_several_by_the_sign_of_an_instance():
    before = report([[0]] * 9 + [[1]] + [[1]] * 10)
    after = report([[1]] * 9 + [[0]] + [[1]] * 10)
    found = compare(before, after).success
    assert found.test == "mcnemar"
    assert (found.better, found.worse) == (9, 1)
    assert found.p == pytest.approx(22 / 1024)
    found = compare(report([[0, 0]] * 6), report([[1, 0]] * 6)).success
    assert found.test == "sign"
    assert found.p == pytest.approx(2 / 2**6)
    assert sign_test(np.zeros(5)) == permutation_test(np.zeros(5)) == 1.0


@pytest.mark.parametrize("count", [8, 40])
def test_the_permutation_test_is_scipys(count):
    values = np.random.default_rng(count).normal(0.25, 1.0, size=count)
    other = scipy_stats.permutation_test(
        (values, np.zeros(count)), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=20_000, rng=1
    )
    assert permutation_test(values) == pytest.approx(other.pvalue, abs=1e-12 if count == 8 else 0.02)


def test_the_permutation_test_never_returns_0():
    assert permutation_test(np.ones(60)) == pytest.approx(1 / 20_001)


def test_holm_by_hand():
    # sorted .01 .03 .04, times 3 2 1: .03 .06 .04, never falling: .03 .06 .06
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_the_smallest_difference_is_detected_in_80_percent_of_runs():
    noise = np.random.default_rng(0)
    differences = noise.normal(0, 0.3, size=(2000, 100))
    smallest = resolution(differences[0])
    shifted = differences + smallest * 0.3 / differences[0].std(ddof=1)
    found = [scipy_stats.ttest_1samp(row, 0).pvalue < 0.05 for row in shifted]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)


def test_tasks_are_matched_and_p_values_adjusted():
    before = [report([[0]] * 20, task="a"), report([[0], [1]] * 10, task="b"), report([[0]], task="c")]
    after = [report([[1]] * 20, task="a"), report([[1], [1]] * 10, task="b"), report([[0]], task="d")]
    found = compare_all(before, after)
    assert [one.task for one in found.tasks] == ["a", "b"]
    assert found.only == (("c test",), ("d test",))
    assert [one.holm for one in found.tasks] == pytest.approx([2 * 2 / 2**20, 2 / 2**10])
    assert found.overall["mean gain"].mean == pytest.approx(0.75)
    assert found.overall["probability of improvement"].mean == 1.0
    assert json.loads(json.dumps(found.state_dict(), allow_nan=False))["profiles"]["A"][0]["mean"] == 0.5


def test_p_values_of_scores_are_adjusted_separately():
    def scored(count: int, task: str, score: float):
        found = report([[0]] * count, task=task)
        return replace(found, outcomes=tuple(replace(each, score=score) for each in found.outcomes))

    found = compare_all([scored(10, "a", 0.0), scored(8, "b", 0.0)], [scored(10, "a", 0.5), scored(8, "b", 0.5)])
    # all of n signs alike: p = 2 / 2^n, of a 2/1024 times 2, of b 2/256 times 1; success differs nowhere
    assert [one.score.p for one in found.tasks] == pytest.approx([2 / 1024, 2 / 256])
    assert [one.holm_score for one in found.tasks] == pytest.approx([4 / 1024, 2 / 256])
    assert [one.holm for one in found.tasks] == [1.0, 1.0]
    text = pages.as_markdown(page(found))
    after = text.partition("## Score, adjusted for the number of tasks")[2]
    assert "| a test | 0.002 | 0.0039 |" in after.partition("##")[0]
    assert "| a test | 1 | 1 |" in text.partition("## Success, adjusted")[2].partition("##")[0]
    assert found.state_dict()["tasks"][0]["holm_score"] == pytest.approx(4 / 1024)


def test_two_runs_on_one_task_are_not_mixed_and_instances_left_out_are_counted():
    with pytest.raises(InstanceError, match="two runs on a test"):
        compare_all([report([[1]], task="a"), report([[1]], task="a")], [report([[1]], task="a")])
    text = pages.as_markdown(page(compare_all([report([[1], [1]])], [report([[1]])])))
    assert "| lmgym/Wordle-v0 test | 1 | 1 | 0 | 0 | 0 |" in text
