"""Inspect plays our tasks with its mock model; its scores, errors and intervals are those of our report."""

import pytest

from lmgym.env.registry import build
from lmgym.evaluation import report as reports
from lmgym.evaluation.runner import Outcome, Report

from .venvs import play
from .wordle import secrets

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
PLAYED = ("index", "attempt", "score", "success", "reward", "turns", "invalid", "truncated", "stop", "solved_at")


def replayed(sample):
    """An Inspect sample's answers played in our environment: what our runner would note of it."""
    env = build("wordle", split="test")
    observation, _ = env.reset(options={"index": sample["index"]})
    said = [text for role, text in sample["said"] if role == "assistant"]
    heard = [text for role, text in sample["said"] if role == "user"]
    steps = [env.step(word) for word in said]
    assert heard == [observation["text"], *(step[0]["text"] for step in steps)]
    *_, terminated, truncated, info = steps[-1]
    return Outcome(
        index=sample["index"],
        attempt=sample["epoch"] - 1,
        score=info["score"],
        success=info["success"],
        reward=sum(step[1] for step in steps),
        turns=len(steps),
        invalid=sum(not step[4]["valid"] for step in steps),
        truncated=truncated,
        stop="done" if terminated else "max_turns",
        solved_at=len(steps) if info["success"] else None,
    )


def report_of(found):
    outcomes = sorted(map(replayed, found["samples"]), key=lambda outcome: (outcome.index, outcome.attempt))
    return Report(task="lmgym/Wordle-v0", split="test", policy="mockllm/model", outcomes=tuple(outcomes))


@pytest.fixture(scope="module")
def tries():
    """Twelve instances, three tries of each; the mock model guesses among their words."""
    return play("inspect", "inspect_play.py", {"task": {"episodes": 12, "tries": 3}, "words": secrets(12)})


def test_outcomes_are_those_of_our_environment(tries):
    theirs = Report.from_state(tries["report"])
    ours = report_of(tries)
    assert len(theirs.outcomes) == theirs.planned == 36
    for mine, other in zip(ours.outcomes, theirs.outcomes, strict=True):
        assert [getattr(mine, name) for name in PLAYED] == [getattr(other, name) for name in PLAYED]
    assert 0 < sum(outcome.success for outcome in theirs.outcomes) < 36


def test_tokens_and_cuts_are_counted_and_mean_and_t_interval_are_ours(tries):
    outcome = Report.from_state(tries["report"]).outcomes[0]
    assert (outcome.tokens_in, outcome.tokens_out) == (10 * outcome.turns, 2 * outcome.turns)
    assert outcome.cut == (outcome.turns > 1)
    ours = reports.statistics(report_of(tries))["score"]
    figures = tries["figures"]
    assert figures["mean"] == pytest.approx(ours["mean"], abs=1e-12)
    assert [figures["lower"], figures["upper"]] == pytest.approx([ours["t"]["low"], ours["t"]["high"]], abs=1e-9)
    assert figures["stderr"] > 0


def test_wilson_interval_of_single_tries_is_ours():
    found = play("inspect", "inspect_play.py", {"task": {"episodes": 20}, "words": secrets(20)[:6]})
    ours, figures = reports.statistics(report_of(found))["success"], found["figures"]
    assert ours["method"] == "wilson"
    assert 0 < ours["mean"] < 1
    assert [figures["lower2"], figures["upper2"]] == pytest.approx([ours["low"], ours["high"]], abs=1e-9)


def test_limit_of_inspect_cuts_the_episode_and_scores_where_it_stands():
    job = {"task": {"episodes": 2, "prompt": "Play."}, "words": ["crane"], "eval": {"message_limit": 5}}
    found = play("inspect", "inspect_play.py", job)
    outcomes = Report.from_state(found["report"]).outcomes
    assert [(o.stop, o.truncated, o.score, o.turns) for o in outcomes] == [("message", True, 0.0, 2)] * 2
    assert found["samples"][0]["said"][0] == ["system", "Play."]


@pytest.mark.parametrize("kind", ["time", "working"])
def test_limit_of_time_is_named_and_the_cut_is_made_where_the_environment_lives(kind):
    job = {"task": {"episodes": 2}, "words": ["crane"], "wait": 3, "eval": {f"{kind}_limit": 2, "max_samples": 1}}
    found = play("inspect", "inspect_play.py", job)
    outcomes = Report.from_state(found["report"]).outcomes
    assert [(o.stop, o.truncated, o.score, o.voided) for o in outcomes] == [(kind, True, 0.0, False)] * 2
    assert [len(threads) for threads in found["threads"]] == [1, 1]


def test_broken_backend_is_an_error_of_the_sample_and_void_in_the_report():
    job = {"task": {"episodes": 3}, "words": ["crane"], "breaks": secrets(3)[1], "eval": {"fail_on_error": False}}
    found = play("inspect", "inspect_play.py", job)
    outcomes = Report.from_state(found["report"]).outcomes
    assert [outcome.voided for outcome in outcomes] == [False, True, False]
