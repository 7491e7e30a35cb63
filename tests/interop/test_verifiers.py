"""verifiers plays our tasks against an endpoint; its traces, rewards and limits are what our environment says."""

import pytest

from lmgym.env.registry import build
from lmgym.evaluation.runner import Report

from .venvs import play
from .wordle import jobs, secrets

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def found():
    """Six instances, two tries of each; the endpoint guesses among their words."""
    return play("verifiers", "verifiers_play.py", {"task": {"episodes": 6, "tries": 2}, "words": secrets(6)})


def test_traces_hold_the_episodes_of_our_environment(found):
    assert sorted(trace["index"] for trace in found["traces"]) == sorted(2 * [job.index for job in jobs(6)])
    for trace in found["traces"]:
        env = build("wordle", split="test")
        heard = [env.reset(options={"index": trace["index"]})[0]["text"]]
        said = [text for role, text in trace["said"] if role == "assistant"]
        steps = [env.step(word) for word in said]
        heard += [step[0]["text"] for step in steps[:-1]]  # what ends an episode is answered by nobody
        assert [text for role, text in trace["said"] if role == "user"] == heard
        assert trace["ok"]
        assert trace["reward"] == steps[-1][4]["score"]
        assert trace["metrics"]["reward"] == sum(step[1] for step in steps)
        assert trace["turns"] == trace["metrics"]["turns"] == len(steps)


def test_report_has_the_rewards_of_verifiers(found):
    report = Report.from_state(found["report"])
    assert sorted((o.index, o.score) for o in report.outcomes) == sorted(
        (trace["index"], trace["reward"]) for trace in found["traces"]
    )
    assert 0 < report.score.mean < 1
    assert [(o.index, o.attempt) for o in report.outcomes] == [(job.index, t) for job in jobs(6) for t in (0, 1)]
    assert all((o.tokens_in, o.tokens_out) == (10 * o.turns, 2 * o.turns) for o in report.outcomes)


def test_only_the_endpoint_is_asked_and_nothing_is_uploaded(found):
    assert found["pushed"] is False
    assert {(path, model) for path, model, _ in found["heard"]} == {("/v1/chat/completions", "guesser")}
    assert len(found["heard"]) == sum(trace["turns"] for trace in found["traces"])


def test_limit_of_verifiers_cuts_the_episode_and_scores_where_it_stands():
    job = {"task": {"episodes": 2, "prompt": "Play.", "agent": {"max_turns": 2}}, "words": ["crane"]}
    found = play("verifiers", "verifiers_play.py", job)
    outcomes = Report.from_state(found["report"]).outcomes
    assert [(o.stop, o.truncated, o.score, o.turns) for o in outcomes] == [("max_turns", True, 0.0, 2)] * 2
    assert all(messages[0] == {"role": "system", "content": "Play."} for *_, messages in found["heard"])


def test_limit_of_time_cuts_the_episode_and_scores_where_it_stands():
    job = {"task": {"episodes": 2, "agent": {"timeout": {"rollout": 3}}}, "words": ["crane"], "wait": 6}
    found = play("verifiers", "verifiers_play.py", job)
    outcomes = Report.from_state(found["report"]).outcomes
    assert [(o.stop, o.truncated, o.score, o.voided) for o in outcomes] == [("timeout", True, 0.0, False)] * 2
    assert all(trace["reward"] == 0.0 for trace in found["traces"])


def test_limit_of_time_before_an_episode_begins_leaves_nothing_to_score():
    job = {"task": {"episodes": 2, "agent": {"timeout": {"rollout": 1e-6}}}, "words": ["crane"]}
    found = play("verifiers", "verifiers_play.py", job)
    assert [outcome.voided for outcome in Report.from_state(found["report"]).outcomes] == [True, True]
    assert all("ended before its episode began" in trace["error"] for trace in found["traces"])


def test_broken_backend_is_an_error_of_the_trace_and_void_in_the_report():
    job = {"task": {"episodes": 3}, "words": ["crane"], "breaks": secrets(3)[1]}
    found = play("verifiers", "verifiers_play.py", job)
    broken = [trace for trace in found["traces"] if not trace["ok"]]
    assert len(broken) == 1
    assert "the engine is gone" in broken[0]["error"]
    assert [outcome.voided for outcome in Report.from_state(found["report"]).outcomes] == [False, True, False]
