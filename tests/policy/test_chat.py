"""Requests and replies in the dialects of endpoints, and what their errors mean."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints import chat, status
from lmgym.policy.endpoints.anthropic import AnthropicMessages
from lmgym.policy.endpoints.calls import (
    CallError,
    EndpointRefused,
    RequestOptions,
    RequestRejected,
    TransientError,
    call_key,
)
from lmgym.policy.tools import action_of_call
from lmgym.types import Message

TOOLS = ({"name": "peek", "description": "Look.", "parameters": {"type": "object"}},)
CALL = action_of_call("I look.", "peek", {"jar": 1})
RULES, QUESTION = Message(role="system", text="rules"), Message(role="user", text="where?")
PNG = {"d1": b"\x89PNG one", "d2": b"\x89PNG two"}
CHAT = chat.ChatCompletions("fake", RequestOptions(), PNG)
ANTHROPIC = AnthropicMessages("fake", RequestOptions(), PNG)


def model(text: str) -> Message:
    return Message(role="assistant", text=text)


def user(text: str, *images: str) -> Message:
    return Message(role="user", text=text, images=images)


def answer(finish: object = "stop", usage: object = None, **message: object) -> dict[str, object]:
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def tool_call(name: str, arguments: object) -> dict[str, object]:
    return {"function": {"name": name, "arguments": arguments}}


def test_messages_without_tools_are_as_they_are():
    messages = (RULES, QUESTION, model(CALL), user("empty"))
    assert chat.messages_of(Conversation(messages=messages)) == [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "where?"},
        {"role": "assistant", "content": CALL},
        {"role": "user", "content": "empty"},
    ]


def test_calls_and_results_are_native_where_tools_are_offered():
    messages = (QUESTION, model(CALL), user("empty"), model("the third?"), user("use a tool"), model("no call\n{}"))
    first, call, result, words, complaint, last = chat.messages_of(Conversation(messages=messages, tools=TOOLS))
    assert call["content"] == "I look."
    assert call["tool_calls"][0]["function"] == {"name": "peek", "arguments": '{"jar": 1}'}
    assert result == {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "empty"}
    assert [m["role"] for m in (first, words, complaint, last)] == ["user", "assistant", "user", "assistant"]
    assert CHAT.body(Conversation(messages=(), tools=TOOLS))["tools"][0]["function"]["name"] == "peek"
    assert "tools" not in CHAT.body(Conversation(messages=messages))


def test_pictures_are_digests_until_they_are_sent_and_a_tools_result_shows_them_by_the_user():
    body = CHAT.body(Conversation(messages=(user("look", "d1", "d2"),)))
    assert "PNG" not in json.dumps(body)
    sent = CHAT.outgoing(body)["messages"][0]["content"]
    assert sent[0] == {"type": "text", "text": "look"}
    assert sent[1] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(PNG["d1"]).decode()},
    }
    with pytest.raises(PolicyError, match="picture d1 is missing"):
        chat.ChatCompletions("fake", RequestOptions(), {}).outgoing(body)
    messages = (QUESTION, model(CALL), user("a picture", "d1"))
    result, picture = chat.messages_of(Conversation(messages=messages, tools=TOOLS))[2:]
    assert (result["role"], result["content"]) == ("tool", "a picture")
    assert (picture["role"], picture["content"][0]["type"]) == ("user", "image_url")


@pytest.mark.parametrize(
    ("reply", "text", "thinking", "finish"),
    [
        (answer(content="go"), "go", "", "stop"),
        (answer(content=None), "", "", "stop"),
        (answer(content="go", reasoning_content="why"), "go", "why", "stop"),
        (answer(content="go", reasoning="why"), "go", "why", "stop"),
        (answer(content="<think>why</think>go"), "go", "why", "stop"),
        (answer(content="<think>wh", finish="length"), "", "wh", "length"),
        (answer(content="go nor", finish="length"), "go nor", "", "length"),
        (answer(content="", finish="content_filter"), "", "", "filter"),
        (answer(content=None, refusal="I will not"), "I will not", "", "stop"),
        (answer(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab", "", "stop"),
        (answer(content="x\ud800y"), "x?y", "", "stop"),
        (answer(finish=None, content="go"), "go", "", "stop"),
        (answer(content="I look.", tool_calls=[tool_call("peek", '{"jar": 1}')]), CALL, "", "stop"),
        (answer(tool_calls=[tool_call("a", {"b": 1})]), '{"name": "a", "arguments": {"b": 1}}', "", "stop"),
    ],
)
def test_a_reply_is_read(reply, text, thinking, finish):
    parsed = chat.read_reply(reply)
    assert (parsed.text, parsed.thinking, parsed.finish) == (text, thinking, finish)


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"choices": []},
        {"choices": [7]},
        {status.RESULT: ["context"]},
        {"choices": [{"finish_reason": "stop"}]},
        answer(content=7),
        answer(content="half", finish="error"),
        answer(content=None, tool_calls=[{"function": {"arguments": "{}"}}]),
        answer(content=None, tool_calls=["peek"]),
    ],
)
def test_a_broken_reply_is_nobodys_answer(reply):
    with pytest.raises(TransientError) as error:
        chat.read_reply(reply)
    assert error.value.kind == "broken"


MEMBERS = (
    *("choices", "message", "content", "tool_calls", "function", "name", "arguments", "usage", "finish_reason"),
    *("type", "text", "thinking", "input", "stop_reason", "prompt_tokens", "reasoning_content", "refusal"),
)
HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(HOSTILE)
def test_whatever_a_server_says_is_an_answer_or_trouble(value):
    for read, raw in (
        (chat.read_reply, value),
        (chat.read_reply, {"choices": [{"message": value}]}),
        (ANTHROPIC.read, value),
    ):
        if isinstance(raw, dict):
            try:
                parsed = read(raw)
            except TransientError:
                continue
            assert isinstance(parsed.text, str)
            parsed.text.encode()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"7", b"<html>", b"\xff\xfe", b"[" * 200_000, b'{"a": ' * 200_000]
)
def test_what_is_no_json_object_is_trouble(content):
    with pytest.raises(TransientError, match="the reply is not"):
        chat.parse_reply(content)


RATE_LIMITS = (429, "rate_limit_exceeded", "rate_limit_error")
STRANGE = (None, True, [], {}, "no such code", 9999, "12345678901234567890")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(401, "refused"), *((code, "rate") for code in RATE_LIMITS), *((code, "server") for code in STRANGE)],
)
def test_an_error_in_a_body_of_200_is_the_error_it_says(code, outcome):
    with pytest.raises(CallError) as error:
        chat.parse_reply(json.dumps({"error": {"code": code, "message": "?"}}).encode())
    assert error.value.outcome == outcome
    assert chat.parse_reply(b'{"error": {"code": "context_length_exceeded"}}')[status.RESULT] == "context"


@pytest.mark.parametrize("dialect", [CHAT, ANTHROPIC])
def test_a_reply_with_too_many_tool_calls_is_broken(dialect):
    calls = [{"type": "tool_use", "name": "peek", "function": {"name": "peek"}}] * 129
    with pytest.raises(TransientError, match="129 tool calls; at most 128"):
        dialect.read({"content": calls, "choices": [{"message": {"tool_calls": calls}}]})
    assert dialect.read({"content": calls[1:], "choices": [{"message": {"tool_calls": calls[1:]}}]}).text


def test_usage_counts_what_the_server_counts():
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert chat.read_reply(answer(content="go", usage=usage)).usage == {"in": 9, "out": 5, "cached": 4, "thinking": 3}
    assert chat.read_reply(answer(content="go", usage={"prompt_tokens": "9"})).usage == {}
    assert chat.read_reply(answer(content="go", usage={"prompt_tokens": -9, "completion_tokens": 10**30})).usage == {}
    two = [tool_call(name, "{}") for name in "ab"]
    assert chat.read_reply(answer(content=None, tool_calls=two)).more == ('{"name": "b", "arguments": {}}',)


def test_several_calls_and_their_results_are_native_where_a_task_takes_several():
    messages = (QUESTION, model(f"{CALL}\n{CALL.splitlines()[-1]}"), user("empty, and empty"))
    offered = Conversation(messages=messages, tools=TOOLS, parallel_calls=True)
    call, first, last = chat.messages_of(offered)[1:]
    assert call["content"] == "I look."
    assert [each["id"] for each in call["tool_calls"]] == [first["tool_call_id"], last["tool_call_id"]]
    assert [first["role"], last["role"], last["content"]] == ["tool", "tool", "empty, and empty"]
    assert CHAT.body(offered)["parallel_tool_calls"]
    uses, results = ANTHROPIC.body(offered)["messages"][1:]
    assert [part["id"] for part in uses["content"][1:]] == [part["tool_use_id"] for part in results["content"]]
    assert ANTHROPIC.body(offered)["tool_choice"]["disable_parallel_tool_use"] is False


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (429, "slow down", "rate"),
        (500, "oops", "server"),
        (503, "busy", "server"),
        (529, "overloaded", "server"),
        (408, "late", "server"),
        (400, "unknown field", RequestRejected),
        (422, "image too large", RequestRejected),
        (401, "bad key", EndpointRefused),
        (403, "not yours", EndpointRefused),
        (404, "no such model", EndpointRefused),
        (302, "moved", EndpointRefused),
        (402, "pay", EndpointRefused),
        (429, "insufficient_quota: check your plan and billing", EndpointRefused),
        (429, '{"error": {"code": "billing_hard_limit_reached"}}', EndpointRefused),
        (429, "rate limit reached; raise it on the billing page, or see your credit balance there", "rate"),
        (400, "temperature is not supported with this context window", RequestRejected),
        (400, "unknown field; the maximum context length is 4096 tokens", RequestRejected),
        (400, "set the context size when the server starts", RequestRejected),
        (400, "max_new_tokens must be positive", RequestRejected),
        (400, "unknown field: moderation", RequestRejected),
        (403, "no right to the moderation endpoint", EndpointRefused),
        (403, "input was flagged by moderation", EndpointRefused),
    ],
)
def test_what_an_http_error_means(code, text, kind):
    with pytest.raises(TransientError if isinstance(kind, str) else kind) as error:
        status.result_of(code, {"retry-after": "2"}, text)
    if isinstance(kind, str):
        assert (error.value.kind, error.value.after) == (kind, 2.0)


@pytest.mark.parametrize(
    ("code", "text", "finish"),
    [
        (400, "maximum context length is 4097 tokens. However, your messages resulted in 5000 tokens", "context"),
        (400, "This model's maximum context length is 4096 tokens and your request has 5000 input tokens", "context"),
        (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", "context"),
        (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", "context"),
        (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", "context"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", "context"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)", "context"),
        (400, "Context size has been exceeded.", "context"),
        (400, "Please reduce the length of the messages or completion.", "context"),
        (400, '{"error": {"code": "context_length_exceeded"}}', "context"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "context"),
        (400, "the request exceeds the available context size", "context"),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096", "context"),
        (400, "The response was filtered: content_filter", "filter"),
        (400, "input was flagged by moderation", "filter"),
        (403, '{"error": {"code": "content_policy_violation"}}', "filter"),
    ],
)
def test_no_room_and_filters_are_results(code, text, finish):
    parsed = chat.read_reply(status.result_of(code, {}, text))
    assert (parsed.text, parsed.finish) == ("", finish)


def test_a_call_has_a_key_of_all_that_matters():
    keys = {
        call_key("a", {"x": 1}, (1, 0)),
        call_key("b", {"x": 1}, (1, 0)),
        call_key("a", {"x": 2}, (1, 0)),
        call_key("a", {"x": 1}, (1, 1)),  # another try
    }
    assert len(keys) == 4
    assert call_key("a", {"x": 1, "y": 2}, (1,)) == call_key("a", {"y": 2, "x": 1}, (1,))


def test_messages_in_anthropics_dialect():
    messages = (RULES, QUESTION, model(CALL), user("a picture", "d1"), model(""), user("next"), user("and next"))
    body = ANTHROPIC.body(Conversation(messages=messages, tools=TOOLS))
    turns = body["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant", "user"]
    assert turns[1]["content"][1] == {"type": "tool_use", "id": "call00002", "name": "peek", "input": {"jar": 1}}
    result = turns[2]["content"][0]
    assert (result["type"], result["tool_use_id"], len(result["content"])) == ("tool_result", "call00002", 2)
    assert turns[3]["content"] == [{"type": "text", "text": "(nothing)"}]
    assert len(turns[4]["content"]) == 2
    sent = ANTHROPIC.outgoing(body)["messages"][2]["content"][0]["content"][1]["source"]
    assert base64.b64decode(sent["data"]) == PNG["d1"]


def test_a_reply_in_anthropics_dialect():
    usage = {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5, "output_tokens": 2}
    raw = {
        "content": [
            {"type": "thinking", "thinking": "why"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t", "name": "peek", "input": {"jar": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": usage,
    }
    parsed = ANTHROPIC.read(raw)
    assert (parsed.text, parsed.thinking, parsed.finish) == (CALL, "why", "stop")
    assert parsed.usage == {"in": 18, "out": 2, "cached": 10}
    assert ANTHROPIC.read({**raw, "stop_reason": "max_tokens"}).finish == "length"
    with pytest.raises(TransientError):
        ANTHROPIC.read({"content": "words"})
