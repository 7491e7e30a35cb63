"""Programs as policies: real ones, which answer out of order, die, hang and talk nonsense."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lmgym.policy.base import Conversation
from lmgym.policy.endpoints.calls import EndpointRefused, RequestOptions
from lmgym.policy.endpoints.command import JsonLines
from lmgym.policy.endpoints.pace import RetryLimits
from lmgym.policy.load import load_remote
from lmgym.types import Message

PLAYER = Path(__file__).with_name("players.py")
QUICK = RetryLimits(timeout=20.0, attempts=3, first_wait=0.01, longest_wait=0.02)


@pytest.fixture
def player():
    """Load `players.py` in a mood; closed after the test."""
    made = []

    def load(*words: object, retries: RetryLimits = QUICK, **more):
        made.append(load_remote(f"cmd:{sys.executable} {PLAYER} {' '.join(map(str, words))}", retries=retries, **more))
        return made[-1]

    yield load
    for policy in made:
        policy.close()


def calls(*texts: str, **more) -> list[Conversation]:
    messages = [(Message(role="user", text=text),) for text in texts]
    return [Conversation(messages=each, noise=(place,), **more) for place, each in enumerate(messages)]


def test_a_program_answers_with_thinking_and_its_own_costs(player):
    (answer,) = player("plain").act(calls("go"))
    assert (answer.text, answer.thinking) == ("go!", "hm")
    assert {name: answer.usage[name] for name in ("in", "out", "cost")} == {"in": 3, "out": 1, "cost": 0.5}


@pytest.mark.parametrize("usage", ['{"in": "many", "out": -1, "cost": "free"}', '{"cost": NaN, "in": 1.5}', "7"])
def test_figures_that_are_none_are_not_counted(usage):
    dialect = JsonLines(RequestOptions(), {})
    assert dialect.read({"text": "go", "usage": json.loads(usage)}).usage == {}


def test_answers_may_come_in_any_order(player):
    assert [answer.text for answer in player("backwards").act(calls("a", "b", "c", "d"))] == ["a!", "b!", "c!", "d!"]


@pytest.mark.parametrize(("mood", "ailment"), [("dies", 20.0), ("babbles", 20.0), ("hangs", 1.5)])
def test_a_program_that_breaks_once_is_started_again(player, tmp_path, mood, ailment):
    policy = player(mood, tmp_path / "flag", retries=RetryLimits(timeout=ailment, attempts=3, first_wait=0.01))
    assert [answer.text for answer in policy.act(calls("a", "b"))] == ["a!", "b!"]
    assert (tmp_path / "flag").exists()


def test_a_program_that_never_answers_is_given_up_with_its_last_words(player):
    with pytest.raises(EndpointRefused, match="ended 3 times without an answer; standard error: no such weights"):
        player("stillborn", retries=RetryLimits(attempts=9, first_wait=0.01)).act(calls("a"))


def test_a_program_that_is_not_there_is_refused_at_once():
    policy = load_remote("cmd:/no/such/program")
    with pytest.raises(EndpointRefused, match="cannot be started: No such file"):
        policy.act(calls("a"))
    policy.close()


@pytest.mark.parametrize(("mood", "words"), [("complains", "out of memory"), ("empty", "has no text")])
def test_an_answer_that_is_none_voids(player, mood, words):
    (answer,) = player(mood).act(calls("a"))
    assert answer.finish == "broken"
    assert words in answer.usage["fault"]


def test_a_program_may_call_tools(player):
    tool = {"type": "function", "function": {"name": "peek", "parameters": {}}}
    (answer,) = player("calls").act(calls("a", tools=(tool,)))
    assert answer.text == '{"name": "peek", "arguments": {"jar": 1}}'


def test_a_program_is_told_everything(player):
    tool = {"name": "peek", "parameters": {}}
    message = Message(role="user", text="look", images=("d1",))
    policy = player("shows", pictures={"d1": b"png"})
    (answer,) = policy.act([Conversation(messages=(message,), noise=(5, 2), tools=(tool,), max_tokens=9)])
    assert json.loads(answer.text) == {
        "id": 0,
        "messages": [{"role": "user", "content": "look", "images": ["cG5n"]}],
        "tools": [tool],
        "temperature": 1.0,
        "max_tokens": 9,
        "draw": [5, 2],
    }
