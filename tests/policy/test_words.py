"""Thinking and tool calls: what is an action and what stands around it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgym.env.actions import parse_json_call
from lmgym.policy.base import Conversation, offered, with_tools_in_prompt
from lmgym.policy.load import load_local
from lmgym.policy.tools import (
    action_of_call,
    call_of_action,
    calls_of_action,
    split_thinking,
)
from lmgym.types import Message

PEEK = {"name": "peek", "description": "Look.", "parameters": {"type": "object"}}
QUESTION = Message(role="user", text="where?")


@pytest.mark.parametrize(
    ("text", "thinking", "words"),
    [
        ("<think>why</think>go", "why", "go"),
        ("  <think>\nwhy\n</think>\n\ngo north", "why", "go north"),
        ("opened by the template</think>go", "opened by the template", "go"),
        ("<think>cut off at the lim", "cut off at the lim", ""),
        ("<think></think>go", "", "go"),
        ("go", "", "go"),
        ("say <think>x</think>", "", "say <think>x</think>"),
        ("", "", ""),
    ],
)
def test_thinking_is_what_stands_before_the_words(text, thinking, words):
    assert split_thinking(text) == (thinking, words)


@given(st.text())
def test_no_text_without_marks_is_thinking(text):
    if "think>" not in text:
        assert split_thinking(text) == ("", text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["", "I look.", "two\nlines", '{"a": 1}']), st.text(min_size=1), st.dictionaries(st.text(), JSON)
)
def test_a_native_call_and_its_action_are_the_same_call(words, name, arguments):
    name, arguments = json.loads(json.dumps([name, arguments]).encode("utf-8", "replace"))
    action = action_of_call(words, name, json.dumps(arguments))
    assert call_of_action(action) == (words.strip(), name, arguments)
    if words != '{"a": 1}':
        call = parse_json_call(action)
        assert call is not None
        assert (call.name, call.arguments) == (name, arguments)


@pytest.mark.parametrize("arguments", ['{"jar": ', "[1]", "7", "nothing", "[" * 100_000])
def test_arguments_that_are_no_object_are_the_models_mistake_and_no_call(arguments):
    action = action_of_call("", "peek", arguments)
    assert parse_json_call(action) is None
    assert call_of_action(action) is None


def test_an_action_without_arguments_is_a_call():
    assert action_of_call("", "look", None) == action_of_call("", "look", "") == '{"name": "look", "arguments": {}}'


def test_tools_told_in_words_stand_in_the_system_prompt():
    conversation = Conversation(messages=(Message(role="system", text="Be brief."), QUESTION), tools=(PEEK,))
    in_words = with_tools_in_prompt(conversation)
    assert in_words.tools == ()
    assert in_words.messages[0].text.startswith("Be brief.\n\nYou act by calling tools.")
    assert json.dumps(PEEK) in in_words.messages[0].text
    assert with_tools_in_prompt(Conversation(messages=(QUESTION,), tools=(PEEK,))).messages[0].role == "system"
    assert with_tools_in_prompt(Conversation(messages=(QUESTION,))).messages == (QUESTION,)


def test_a_local_answer_keeps_its_ids_without_its_thinking_and_has_tools_in_words(monkeypatch):
    """The rendering is that of `--tools text`, whoever asks for it: a session, an evaluation or an encoding."""
    policy = load_local("tiny")
    offered = Conversation(messages=(QUESTION,), tools=(PEEK,))
    assert policy.prompt(offered) == policy.prompt(with_tools_in_prompt(offered))
    assert policy.prompt(offered) != policy.prompt(Conversation(messages=(QUESTION,)))
    (answer,) = policy.act([offered])
    assert list(answer.prompt_ids) == policy.prompt(offered)[0]
    monkeypatch.setattr(policy, "text", lambda answer: "<think>why</think>go")
    (answer,) = policy.act([Conversation(messages=(QUESTION,), max_tokens=3)])
    assert (answer.text, answer.thinking) == ("go", "why")
    assert 0 < len(answer.ids) == len(answer.logprobs) <= 3


def test_tools_are_left_out_where_none_are_offered():
    conversation = Conversation(messages=(QUESTION,), tools=(PEEK,))
    assert offered(conversation, "none") == Conversation(messages=(QUESTION,))
    assert offered(conversation, "native") == conversation


def test_an_action_may_hold_several_calls():
    two = "\n".join(action_of_call("", name, {"jar": number}) for number, name in enumerate(("peek", "answer")))
    assert calls_of_action(f"Look.\n{two}") == ("Look.", [("peek", {"jar": 0}), ("answer", {"jar": 1})])
    assert calls_of_action("go") == ("go", [])
