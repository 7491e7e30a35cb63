"""Anthropic's messages dialect: conversations to requests, replies to parsed replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgym.policy.base import Conversation, functions
from lmgym.policy.endpoints.calls import ParsedReply, RawReply, RequestOptions
from lmgym.policy.endpoints.chat import (
    DIGEST,
    Pictures,
    broken,
    encoded,
    native_calls,
    reply_of,
    results_of,
    token_counts,
)
from lmgym.policy.endpoints.status import parsed_result
from lmgym.policy.tools import split_thinking
from lmgym.types import Finish, Message

# all others: stop
FINISHES: dict[str, Finish] = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "filter"}


@dataclass(frozen=True)
class AnthropicMessages:
    """Requests and replies of Anthropic's API."""

    model: str
    options: RequestOptions
    pictures: Pictures

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """Return the complete request, with pictures by their digests."""
        system = "\n\n".join(message.text for message in conversation.messages if message.role == "system")
        tools = [
            {
                "name": schema["name"],
                "description": schema.get("description", ""),
                "input_schema": schema.get("parameters", {"type": "object"}),
            }
            for schema in functions(conversation.tools)
        ]
        return self.options.body(
            {
                "model": self.model,
                "max_tokens": conversation.max_tokens or self.options.max_tokens,
                "temperature": self.options.temperature,
                "system": system or None,
                "messages": _turns(conversation),
                "tools": tools or None,
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": not conversation.parallel_calls}
                if tools
                else None,
            }
        )

    def outgoing(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request with the pictures in base64."""
        messages = [{**message, "content": self._outgoing_parts(message["content"])} for message in body["messages"]]
        return {**body, "messages": messages}

    def read(self, raw: RawReply) -> ParsedReply:
        """Parse a reply; raise TransientError unless it is complete."""
        result = parsed_result(raw)
        if result is not None:
            return result
        parts = raw.get("content")
        if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
            raise broken("the reply has no content", raw)
        by_type = {kind: [part for part in parts if part.get("type") == kind] for kind in ("text", "thinking")}
        thinking, text = split_thinking("".join(str(part.get("text", "")) for part in by_type["text"]))
        separate = "\n".join(str(part.get("thinking", "")) for part in by_type["thinking"])
        return reply_of(
            text,
            separate or thinking,
            [(part.get("name"), part.get("input")) for part in parts if part.get("type") == "tool_use"],
            finish=FINISHES.get(str(raw.get("stop_reason")), "stop"),
            usage=_usage(raw.get("usage")),
        )

    def _outgoing_parts(self, parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return parts as they are sent; the result of a tool has parts of its own."""
        sent: list[Mapping[str, Any]] = []
        for part in parts:
            if part.get("type") == "tool_result":
                part = {**part, "content": self._outgoing_parts(part["content"])}
            elif DIGEST in part:
                data = encoded(part[DIGEST], self.pictures)
                part = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
            sent.append(part)
        return sent


def _usage(usage: Any) -> dict[str, int]:
    """Return the numbers of tokens; the API counts new, cached and newly cached prompt tokens apart."""
    counts = token_counts(
        usage,
        **{"in": "input_tokens", "out": "output_tokens", "cached": "cache_read_input_tokens"},
        written="cache_creation_input_tokens",
    )
    if "in" in counts:
        counts["in"] += counts.get("cached", 0) + counts.pop("written", 0)
    return counts


def _turns(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the messages as alternating turns, which the API demands."""
    turns: list[dict[str, Any]] = []
    pending: list[str] = []  # ids of the calls whose result comes next
    for number, message in enumerate(conversation.messages):
        if message.role == "system":
            continue
        words, calls = native_calls(conversation, number)
        if calls:
            pending = [name for name, _, _ in calls]
            uses = ({"type": "tool_use", "id": name, "name": tool, "input": given} for name, tool, given in calls)
            parts = [*_text(words), *uses]
        elif pending and message.role == "user":
            *others, last = results_of(pending, "")
            parts = [{"type": "tool_result", "tool_use_id": name, "content": _text(text)} for name, text in others]
            parts.append({"type": "tool_result", "tool_use_id": last[0], "content": _content(message)})
            pending = []
        else:
            parts = _content(message) or [{"type": "text", "text": "(nothing)"}]  # the API rejects empty turns
        if turns and turns[-1]["role"] == message.role:
            turns[-1]["content"] += parts
        else:
            turns.append({"role": message.role, "content": parts})
    return turns


def _content(message: Message) -> list[dict[str, Any]]:
    return [*_text(message.text), *({"type": "image", DIGEST: digest} for digest in message.images)]


def _text(words: str) -> list[dict[str, Any]]:
    """Return one text part, or none for blank text, which the API rejects."""
    return [{"type": "text", "text": words}] if words.strip() else []
