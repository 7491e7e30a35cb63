"""The chat-completions dialect: a conversation as its request, and a reply as what was said."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints.calls import Raw, Said, Trouble
from lmgym.policy.endpoints.status import result_of, said_by_result, status_of
from lmgym.policy.tools import action_of_call, call_of_action, split_thinking, wrapped
from lmgym.types import Finish, Message

PICTURE = "picture"  # member of a part that stands for a picture by its digest, until it is sent
FINISHES: dict[str, Finish] = {"length": "length", "content_filter": "filter"}  # all others: stop
LONG = 10_000  # characters of a broken reply; who shows them strikes keys out first, and then cuts
MOST = 1 << 40  # tokens of one call; what is said to be more is no count
BROKEN = ("error", "abort", "aborted")  # reasons to finish that are the server's
Pictures = Mapping[str, bytes]  # PNG by digest


def messages_of(conversation: Conversation) -> list[dict[str, Any]]:
    """The messages; where tools are offered, calls among the answers and their results in native form."""
    asked: list[dict[str, Any]] = []
    waiting = ""  # id of the call whose result comes next
    for number, message in enumerate(conversation.messages):
        call = call_of_action(message.text) if conversation.tools and message.role == "assistant" else None
        if call is not None:
            waiting = f"call{number:05d}"
            asked.append(_calling(call, waiting))
        elif waiting and message.role == "user":
            asked.append({"role": "tool", "tool_call_id": waiting, "content": message.text})
            if message.images:
                asked.append({"role": "user", "content": _pictures(message)})
            waiting = ""
        else:
            asked.append({"role": message.role, "content": _content(message)})
    return asked


def tools_of(conversation: Conversation) -> dict[str, Any]:
    """The members of a request that offer tools."""
    if not conversation.tools:
        return {}
    return {"tools": wrapped(conversation.tools), "parallel_tool_calls": False}


def with_pictures(messages: Sequence[Mapping[str, Any]], pictures: Pictures) -> list[dict[str, Any]]:
    """Messages as they are sent: pictures as data URLs."""
    sent = []
    for message in messages:
        content = message.get("content")
        parts = [_sent(part, pictures) for part in content] if isinstance(content, list) else content
        sent.append({**message, "content": parts})
    return sent


def encoded(digest: str, pictures: Pictures) -> str:
    """The PNG of a picture in base64."""
    if digest not in pictures:
        raise PolicyError(f"the picture {digest} is not there: give the policy the engine's pictures")
    return base64.b64encode(pictures[digest]).decode()


def parse(content: bytes) -> Raw:
    """A reply's JSON object. Raises Trouble for what is none, and what an error in it means.

    Some routers answer 200 and write another status into the body.
    """
    raw = parse_object(content)
    fault = raw.get("error")
    if isinstance(fault, dict) and not raw.get("choices"):
        return result_of(status_of(fault), {}, json.dumps({"error": fault}))
    return raw


def parse_object(content: bytes) -> Raw:
    """A JSON object. Raises Trouble for what is none."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Trouble("broken", f"the reply is no JSON ({error}): {content[:LONG]!r}") from None
    if not isinstance(raw, dict):
        raise Trouble("broken", f"the reply is no JSON object: {content[:LONG]!r}")
    return raw


def read(raw: Raw) -> Said:
    """What a reply says. Raises Trouble where it is no whole reply."""
    result = said_by_result(raw)
    if result is not None:
        return result
    choice = _choice(raw)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise Trouble("broken", f"the reply has no message: {str(choice)[:LONG]}")
    reason = choice.get("finish_reason")
    if reason in BROKEN:
        raise Trouble("broken", f"the server broke off with {reason!r}: {str(choice)[:LONG]}")
    thinking, text = split_thinking(_text(message.get("content")))
    apart = message.get("reasoning_content") or message.get("reasoning") or ""
    called = _calls(message)
    if called:
        text = action_of_call(text, *called[0])
    elif not text and isinstance(message.get("refusal"), str):
        text = message["refusal"]
    return Said(
        text=whole(text),
        thinking=whole(apart if isinstance(apart, str) and apart else thinking),
        finish=FINISHES.get(str(reason), "stop"),
        usage={**_usage(raw.get("usage")), **({"calls_left_out": len(called) - 1} if len(called) > 1 else {})},
    )


def whole(text: str) -> str:
    """`text` without lone surrogates, which no server and no file takes."""
    return text.encode("utf-8", "replace").decode()


def tokens(usage: Mapping[str, Any], **names: str) -> dict[str, int]:
    """Those of the named figures that are numbers of tokens."""
    found = {ours: usage.get(theirs) for ours, theirs in names.items()}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST
    }


def _choice(raw: Raw) -> Mapping[str, Any]:
    choices = raw.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise Trouble("broken", f"the reply has no choices: {str(raw)[:LONG]}")
    return choices[0]


def _text(content: Any) -> str:
    """The text of a message: a string, nothing, or parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        return "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    raise Trouble("broken", f"the reply's content is no text: {str(content)[:LONG]}")


def _calls(message: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names and arguments of the calls; arguments may be anything, a call without a name is a broken reply."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise Trouble("broken", f"the reply's tool calls are no list: {str(calls)[:LONG]}")
    found = []
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise Trouble("broken", f"the reply calls a tool without a name: {str(call)[:LONG]}")
        found.append((function["name"], function.get("arguments")))
    return found


def _usage(usage: Any) -> dict[str, int]:
    """Tokens; what the server does not count is left out."""
    if not isinstance(usage, Mapping):
        return {}
    prompt, answer = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    return {
        **tokens(usage, **{"in": "prompt_tokens", "out": "completion_tokens"}),
        **(tokens(prompt, cached="cached_tokens") if isinstance(prompt, Mapping) else {}),
        **(tokens(answer, thinking="reasoning_tokens") if isinstance(answer, Mapping) else {}),
    }


def _calling(call: tuple[str, str, Mapping[str, Any]], name: str) -> dict[str, Any]:
    words, tool, arguments = call
    function = {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
    calls = [{"id": name, "type": "function", "function": function}]
    return {"role": "assistant", "content": words or None, "tool_calls": calls}


def _content(message: Message) -> str | list[dict[str, Any]]:
    if not message.images:
        return message.text
    return [{"type": "text", "text": message.text}, *_pictures(message)]


def _pictures(message: Message) -> list[dict[str, Any]]:
    return [{"type": "image_url", PICTURE: digest} for digest in message.images]


def _sent(part: Mapping[str, Any], pictures: Pictures) -> Mapping[str, Any]:
    if PICTURE not in part:
        return part
    url = f"data:image/png;base64,{encoded(part[PICTURE], pictures)}"
    return {"type": "image_url", "image_url": {"url": url}}
