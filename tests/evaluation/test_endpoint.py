"""Endpoints on loopback: errors that stop a run or void an episode, results, bounds and budgets."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest

from lmgym.env.actions import parse_json_calls
from lmgym.errors import BackendError, PolicyError
from lmgym.evaluation import runner
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.cache import Calls
from lmgym.evaluation.record import CALLS, PICTURES, Record
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints.calls import MAX_REPLY_BYTES, EndpointRefused, RequestOptions
from lmgym.policy.endpoints.pace import RetryLimits
from lmgym.policy.load import load_policy, load_remote
from lmgym.rollout import episodes
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig
from lmgym.types import Completion, Message

from .server import any_fault, bisect, peek, reply, serving
from .test_faults import QUICK, play

FULL = "This model's maximum context length is 64 tokens. However, your messages resulted in 90 tokens."
PROMPT = Message(role="user", text="I think of a whole number from 1 to 8. Guess.")


def error(status: int, message: str = "no"):
    return {"status": status, "error": {"message": message}}


def game(body) -> int:
    """Return the number of the Jars game that a request belongs to."""
    return int(body["messages"][0]["content"].partition(":")[0].split()[1])


REFUSALS = {
    **{f"HTTP {status}": error(status) for status in (401, 403, 404)},
    "code in 200": {"raw": b'{"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}}'},
    "type in 200": {"raw": b'{"type": "error", "error": {"type": "authentication_error", "message": "no"}}'},
    "digits in 200": {"raw": b'{"error": {"code": "401", "message": "no"}}'},
    "no credit in 200": {"raw": b'{"error": {"code": "insufficient_quota", "message": "no"}}'},
    "code in 400": {"status": 400, "error": {"message": "no", "code": "invalid_api_key"}},
    "reason in 400": {"status": 400, "error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}},
    "code in 500": {"status": 500, "error": {"message": "no", "code": "invalid_api_key"}},
}


@pytest.mark.parametrize("name", REFUSALS)
def test_an_error_that_every_call_meets_stops_the_run_at_once_whatever_its_status(tmp_path, name):
    with serving(lambda body: dict(REFUSALS[name])) as server:
        report, account, session = play(tmp_path, server, "guess_number", 50, concurrency=4)
    assert server.requests <= 4
    assert isinstance(session.error, EndpointRefused)
    assert report.outcomes == ()
    assert name in report.stopped or not name.startswith("HTTP")
    assert account["by_outcome"] == {"refused": server.requests}


def test_a_server_that_quotes_a_code_back_refuses_one_request_alone(tmp_path):
    """The text of a game quoted in a rejected request does not concern the key."""
    quoted = {"status": 400, "error": {"message": "cannot take 'invalid_api_key' in messages", "code": "bad_request"}}
    answers = iter([quoted])
    with serving(lambda body: next(answers, None) or bisect(body)) as server:
        report, account, session = play(tmp_path, server, "guess_number", 3, concurrency=1)
    assert session.error is None
    assert len(report.played) == 3
    assert account["by_outcome"]["rejected"] == 1


def test_what_a_server_says_cannot_command_a_terminal(tmp_path):
    with serving(lambda body: error(403, "no\x1b]0;title\x07 \x1b[2Jscreen\r\n")) as server:
        report, _, session = play(tmp_path, server, "guess_number", 2)
    assert report.stopped.isprintable()
    assert str(session.error).isprintable()
    assert b"\x1b[" not in (tmp_path / "calls.sqlite").read_bytes()


def test_a_run_that_was_refused_goes_on_when_it_is_resumed(tmp_path):
    with serving(lambda body: error(401) if len(body["messages"]) > 3 else bisect(body)) as server:
        report, first, _ = play(tmp_path, server, "guess_number", 20, concurrency=4)
        assert "HTTP 401" in report.stopped
        server.speaker = bisect
        report, account, session = play(tmp_path, server, "guess_number", 20, concurrency=4, resume=True)
    assert session.error is None
    assert len(report.outcomes) == report.planned == 20
    assert report.stopped == ""
    assert account["replies"] == sum(outcome.turns for outcome in report.outcomes)
    assert account["by_outcome"]["refused"] == first["by_outcome"]["refused"]


@pytest.mark.parametrize(("status", "ailment", "tries"), [(400, "rejected", 1), (500, "server", 2)])
def test_a_call_that_nothing_comes_of_voids_its_episode_alone(tmp_path, status, ailment, tries):
    last = runner.episodes("test/Jars-v0", split="test", size=200, count=40, options={})[-1].index
    with serving(lambda body: error(status, "no") if game(body) == last else peek(body)) as server:
        retries = replace(QUICK, attempts=2)
        report, account, session = play(tmp_path, server, "test/Jars-v0", 40, concurrency=5, retries=retries)
    assert session.error is None
    assert [(outcome.index, outcome.stop) for outcome in report.outcomes if outcome.voided] == [(last, "void")]
    assert len(report.played) == 39
    assert account["by_outcome"][ailment] == 3 * tries  # a void episode is played three times


def test_a_server_that_answers_nobody_ends_the_run(tmp_path):
    with serving(lambda body: error(500)) as server:
        retries = replace(QUICK, attempts=2)
        report, account, session = play(tmp_path, server, "test/Jars-v0", 40, concurrency=5, retries=retries)
    assert isinstance(session.error, BackendError)
    assert "20 faults in 20 episodes; the last: HTTP 500" in report.stopped
    assert report.outcomes == ()
    assert set(account["by_outcome"]) == {"server"}


def test_a_conversation_that_no_longer_fits_is_cut_and_scored(tmp_path):
    with serving(lambda body: error(400, FULL) if len(body["messages"]) > 5 else bisect(body)) as s:
        report, account, session = play(tmp_path, s, "guess_number", 30)
    stops = Counter(outcome.stop for outcome in report.outcomes)
    assert session.error is None
    assert set(stops) == {"context", "done"}
    assert all(outcome.turns == 3 and outcome.truncated for outcome in report.outcomes if outcome.stop == "context")
    assert account["exchanges"] == s.requests == account["replies"]


def test_answers_cut_short_or_filtered_are_the_models(tmp_path):
    def speaker(body):
        turns = len(body["messages"]) // 2
        if turns == 0:
            return reply({"content": "<think>it may be"}, "length")
        return reply({"content": None}, "content_filter") if turns == 1 else {"content": "7", "reasoning_content": "!"}

    with serving(speaker) as server:
        report, _, _ = play(tmp_path, server, "guess_number", 5)
    (trajectory, *_) = episodes.read(tmp_path / "episodes.jsonl")
    first, second, third = (turn.completion for turn in trajectory.turns[:3])
    assert (first.text, first.thinking, first.finish) == ("", "it may be", "length")
    assert (second.text, second.finish) == ("", "filter")
    assert (third.text, third.thinking, trajectory.turns[2].action) == ("7", "!", "7")
    assert [(outcome.cut, outcome.filtered, outcome.invalid) for outcome in report.outcomes] == [(1, 1, 2)] * 5
    assert all("it may be" not in json.dumps(body["messages"]) for body in server.bodies)


def test_tries_are_calls_of_their_own_and_repeats_are_not():
    with serving() as server, closing(load_remote(server.model)) as policy:
        calls = [Conversation(messages=(PROMPT,), noise=(1, attempt, 0, 0)) for attempt in (0, 1, 2, 1)]
        answers = policy.act(calls)
        policy.act(calls)
    assert server.requests == 3
    assert [answer.text for answer in answers] == ["4"] * 4


def test_what_is_asked_for_is_in_the_request():
    with serving() as server:
        extra = {"top_p": 0.5, "parallel_tool_calls": None}
        options = RequestOptions(temperature=0.3, max_tokens=77, extra=extra)
        with closing(load_remote(server.model, request=options)) as policy:
            policy.act([Conversation(messages=(PROMPT,)), Conversation(messages=(PROMPT,), max_tokens=5, noise=(1,))])
    first, second = sorted(server.bodies, key=lambda body: -body["max_tokens"])
    assert first == {
        "model": "fake",
        "messages": [{"role": "user", "content": PROMPT.text}],
        "temperature": 0.3,
        "max_tokens": 77,
        "top_p": 0.5,
    }
    assert second["max_tokens"] == 5


def test_tools_in_words_reach_an_endpoint_that_has_none(tmp_path):
    def speaker(body):
        assert "tools" not in body
        assert body["messages"][0]["role"] == "system"
        return {"content": 'I try.\n{"name": "answer", "arguments": {"jar": 1}}'}

    with serving(speaker) as server, closing(load_remote(server.model)) as policy:
        jobs = runner.episodes("test/Jars-v0", split="test", size=200, count=20, options={})
        report = runner.evaluate(policy, jobs, engine=Engine(seats={"agent": SeatConfig(tools="text")}))
    assert 0 < report.success.mean < 1
    assert all(outcome.invalid == 0 and outcome.turns == 1 for outcome in report.outcomes)


def test_several_calls_reach_a_task_that_takes_several():
    names = ["peek", "answer"]
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
    tools = tuple({"name": name} for name in names)
    message = {"content": "Both.", "tool_calls": calls}
    with serving(lambda body: message) as server, closing(load_remote(server.model)) as policy:
        one, several = (
            policy.act([Conversation(messages=(PROMPT,), tools=tools, parallel_calls=parallel)])[0]
            for parallel in (False, True)
        )
    assert [body["parallel_tool_calls"] for body in server.bodies] == [False, True]
    assert (one.text.count("\n"), one.usage["calls_left_out"]) == (1, 1)
    assert [call.name for call in parse_json_calls(several.text)] == names
    assert (several.text.partition("\n")[0], "calls_left_out" in several.usage) == ("Both.", False)


def test_a_policy_that_is_closed_says_so_and_closes_twice():
    with serving() as server:
        policy = load_policy(server.model)
        policy.close()
        policy.close()
        with pytest.raises(PolicyError, match="is closed"):
            policy.act([Conversation(messages=(PROMPT,))])


def ask_once(server, retries=None) -> Completion:
    """The answer to one call, attempted once unless `retries` say otherwise."""
    with closing(load_remote(server.model, retries=retries or replace(QUICK, attempts=1))) as policy:
        return policy.act([Conversation(messages=(PROMPT,))])[0]


def test_an_endless_reply_is_cut_off_and_asked_for_again():
    with serving(plan=lambda number: "endless" if number == 0 else "") as server:
        assert ask_once(server, QUICK).text == "4"
    assert server.requests == 2
    assert server.padding < 8 * MAX_REPLY_BYTES  # buffers of the connection included


@pytest.mark.parametrize(
    ("count", "message"),
    [(1_000_000, f"the reply is longer than {MAX_REPLY_BYTES} bytes"), (100_000, "the reply has 100000 tool calls")],
)
def test_a_reply_with_a_million_tool_calls_is_broken(count, message):
    calls = [{"function": {"name": "peek", "arguments": "{}"}}] * count
    with serving(lambda body: {"content": None, "tool_calls": calls}) as server:
        answer = ask_once(server)
    assert answer.finish == "broken"
    assert message in answer.usage["fault"]


@pytest.mark.parametrize("after", ["-1", "nan", "inf", "1e12", "0"])
def test_no_retry_after_makes_requests_come_fast_or_stop(after):
    with serving(lambda body: {"status": 429, "headers": {"Retry-After": after}}) as server:
        answer = ask_once(server, RetryLimits(first_wait=0.05, longest_wait=0.4, total=2.0))
    assert answer.finish == "broken"
    assert 3 < server.requests <= 50  # waits of 0.04 s at least, once the bound is reached


def test_a_compressed_reply_is_refused():
    content = gzip.compress(json.dumps(reply({"content": "4"})).encode())
    with serving(lambda body: {"raw": content, "headers": {"Content-Encoding": "gzip"}}) as server:
        assert "compressed (gzip)" in ask_once(server).usage["fault"]
    assert server.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("budget", "why"),
    [({"episodes": 7}, "7 episodes"), ({"tokens": 12 * 40}, "480 tokens"), ({"seconds": 1e-9}, "1e-09 seconds")],
)
def test_a_budget_ends_a_run_cleanly_and_more_of_it_goes_on(tmp_path, budget, why):
    with serving() as server:
        report, account, session = play(tmp_path, server, "guess_number", 20, concurrency=3, budget=budget)
        assert why in report.stopped
        assert session.error is None
        assert len(report.outcomes) < report.planned == 20
        assert account["possibly_paid_twice"] == []
        used = account["tokens_in"] + account["tokens_out"]
        assert used <= budget.get("tokens", used)
        assert len(report.outcomes) == 7 or "episodes" not in budget
        report, account, _ = play(tmp_path, server, "guess_number", 20, concurrency=3, resume=True)
    assert (report.stopped, len(report.outcomes)) == ("", 20)
    assert account["exchanges"] == account["replies"] == server.requests == sum(o.turns for o in report.outcomes)


def test_replies_on_their_way_are_kept_when_a_run_ends_early(tmp_path):
    def speaker(body):
        return error(401) if server.requests >= 30 else bisect(body)

    with serving(speaker, pause=0.05) as server:
        _, account, session = play(tmp_path, server, "guess_number", 60, concurrency=12)
    assert isinstance(session.error, EndpointRefused)
    assert account["possibly_paid_twice"] == []
    assert account["replies"] == sum(server.replies.values())


def test_pictures_reach_an_endpoint_as_data_and_the_folder_as_files(tmp_path):
    with serving(lambda body: {"content": "next"}) as server:
        record = Record(tmp_path, {}, resume=False)
        policy = load_remote(server.model)  # the engine gives it the pictures
        jobs = runner.episodes("test/Pictures-v0", split="test", size=10, count=1, options={})
        engine = Engine(pictures=record.pictures)
        runner.evaluate(policy, jobs, engine=engine, keep=lambda trajectory: record.keep([trajectory]))
        policy.close()
        record.close()
    (trajectory,) = record.played()
    digests = [digest for turn in trajectory.turns for digest in turn.observation.images]
    parts = [part for body in server.bodies for part in body["messages"][-1]["content"] if isinstance(part, dict)]
    sent = [part["image_url"]["url"].partition(",")[2] for part in parts if part["type"] == "image_url"]
    assert len(digests) == len(sent) > 0
    assert [base64.b64decode(data) for data in sent] == [record.pictures[digest] for digest in digests]
    assert {path.stem for path in (tmp_path / PICTURES).iterdir()} >= set(digests)


def test_a_server_that_is_full_is_asked_less_and_then_more_again(tmp_path):
    with serving(plan=any_fault(0.0, storm=range(10, 40)), pause=0.01) as server:
        calls = Calls(tmp_path / CALLS, Budget())
        policy = load_remote(server.model, retries=QUICK, concurrency=16, ledger=calls)
        lowest: list[float] = []
        jobs = runner.episodes("guess_number", split="test", size=1000, count=40, options={})
        seen = lambda _: lowest.append(policy.throttle.limit)  # noqa: E731
        runner.evaluate(policy, jobs, engine=Engine(concurrency=16), keep=seen)
        assert policy.throttle.halvings > 0
        assert min(lowest) < policy.throttle.limit <= 16
        policy.close()
        assert calls.account()["by_outcome"] == {"rate": 30, "reply": server.requests - 30}
        calls.close()


def test_an_anthropic_model_plays(tmp_path, monkeypatch):
    def speaker(body):
        assert "system" not in body
        assert [tool["name"] for tool in body["tools"]] == ["peek", "answer"]
        call = {"type": "tool_use", "id": "x", "name": "answer", "input": {"jar": 2}}
        parts = [{"type": "thinking", "thinking": "the second"}, call]
        return {"raw": {"content": parts, "stop_reason": "tool_use", "usage": {"input_tokens": 4, "output_tokens": 3}}}

    plan = lambda number: "429 seconds" if number == 1 else "half a JSON" if number == 2 else ""  # noqa: E731
    with serving(speaker, plan=plan) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url.removesuffix("/v1"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-planted-key")
        policy = load_remote("anthropic:claude-test", retries=RetryLimits(first_wait=0.01))
        jobs = runner.episodes("test/Jars-v0", split="test", size=200, count=12, options={})
        report = runner.evaluate(policy, jobs, engine=Engine())
        policy.close()
    assert server.requests == 14
    assert all("sk-ant-planted-key" in str(headers) for headers in server.headers)
    assert 0 < report.success.mean < 1
    assert all((o.invalid, o.tokens_in, o.tokens_out) == (0, 4, 3) for o in report.outcomes)
