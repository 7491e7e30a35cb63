"""`anthropic:MODEL`, by the anthropic package: the messages dialect."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.errors import MissingExtra
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints import chat
from lmgym.policy.endpoints.calls import Raw, Said, Trouble
from lmgym.policy.endpoints.openai import Asking, shown
from lmgym.policy.endpoints.secrets import HOSTS
from lmgym.policy.endpoints.status import result_of, said_by_result
from lmgym.policy.tools import action_of_call, call_of_action, functions, split_thinking
from lmgym.types import Finish, Message

FINISHES: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filter",
}  # all others: stop


class Anthropic:
    """A model of Anthropic's."""

    def __init__(self, model: str, *, asking: Asking, pictures: chat.Pictures, timeout: float) -> None:
        """`timeout` is of one exchange, in seconds."""
        try:
            import anthropic
        except ModuleNotFoundError as error:
            raise MissingExtra(f"anthropic:{model} needs: pip install 'lmgym[anthropic]' ({error})") from error
        self.name = f"anthropic:{model}"
        self._model = model
        self._asking = asking
        self._pictures = pictures
        self._sdk = anthropic
        self._client = anthropic.AsyncAnthropic(
            api_key=os.environ.get(asking.key or HOSTS["api.anthropic.com"]) or "none",
            max_retries=0,
            timeout=timeout,
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """The request in full; pictures by their digests."""
        system = "\n\n".join(message.text for message in conversation.messages if message.role == "system")
        tools = [
            {
                "name": schema["name"],
                "description": schema.get("description", ""),
                "input_schema": schema.get("parameters", {"type": "object"}),
            }
            for schema in functions(conversation.tools)
        ]
        return self._asking.body(
            {
                "model": self._model,
                "max_tokens": conversation.max_tokens or self._asking.max_tokens,
                "temperature": self._asking.temperature,
                "system": system or None,
                "messages": _messages(conversation),
                "tools": tools or None,
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": True} if tools else None,
            }
        )

    async def send(self, body: Mapping[str, Any]) -> Raw:
        """Make one exchange."""
        sdk = self._sdk
        sent = {**body, "messages": [_sent(message, self._pictures) for message in body["messages"]]}
        try:  # all goes into extra_body, as in endpoint.py
            reply = await self._client.messages.with_raw_response.create(
                model=self._model, max_tokens=body["max_tokens"], messages=(), extra_body=sent
            )
        except sdk.APIStatusError as error:
            return result_of(error.status_code, error.response.headers, shown(error.response.content))
        except sdk.APITimeoutError:
            raise Trouble("timeout", "the server took too long") from None
        except sdk.APIConnectionError as error:
            raise Trouble("connection", f"the connection failed: {error.__cause__ or error}") from None
        except sdk.AnthropicError as error:
            raise Trouble("broken", str(error)) from None
        return chat.parse(reply.http_response.content)

    def read(self, raw: Raw) -> Said:
        """What a reply says."""
        return read(raw)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def read(raw: Raw) -> Said:
    """What a reply says. Raises Trouble where it is no whole reply."""
    result = said_by_result(raw)
    if result is not None:
        return result
    parts = raw.get("content")
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise Trouble("broken", f"the reply has no content: {str(raw)[: chat.LONG]}")
    thinking, text = split_thinking("".join(str(part.get("text", "")) for part in parts if part.get("type") == "text"))
    apart = "\n".join(str(part.get("thinking", "")) for part in parts if part.get("type") == "thinking")
    called = [part for part in parts if part.get("type") == "tool_use"]
    if called:
        if not isinstance(called[0].get("name"), str):
            raise Trouble("broken", f"the reply calls a tool without a name: {str(called[0])[: chat.LONG]}")
        text = action_of_call(text, called[0]["name"], called[0].get("input"))
    return Said(
        text=chat.whole(text),
        thinking=chat.whole(apart or thinking),
        finish=FINISHES.get(str(raw.get("stop_reason")), "stop"),
        usage={**_usage(raw.get("usage")), **({"calls_left_out": len(called) - 1} if len(called) > 1 else {})},
    )


def _usage(usage: Any) -> dict[str, int]:
    """Tokens; prompts are counted in parts there: new, written to the cache, read from it."""
    if not isinstance(usage, Mapping):
        return {}
    found = chat.tokens(
        usage,
        **{"in": "input_tokens", "out": "output_tokens", "cached": "cache_read_input_tokens"},
        written="cache_creation_input_tokens",
    )
    if "in" in found:
        found["in"] += found.get("cached", 0) + found.pop("written", 0)
    return found


def _messages(conversation: Conversation) -> list[dict[str, Any]]:
    """The messages in turns of one role, as the dialect wants them."""
    turns: list[dict[str, Any]] = []
    waiting = ""  # id of the call whose result comes next
    for number, message in enumerate(conversation.messages):
        call = call_of_action(message.text) if conversation.tools and message.role == "assistant" else None
        if message.role == "system":
            continue
        if call is not None:
            waiting = f"call{number:05d}"
            words, tool, arguments = call
            parts = [*_text(words), {"type": "tool_use", "id": waiting, "name": tool, "input": arguments}]
        elif waiting and message.role == "user":
            parts = [{"type": "tool_result", "tool_use_id": waiting, "content": _content(message)}]
            waiting = ""
        else:
            parts = _content(message) or [{"type": "text", "text": "(nothing)"}]  # an empty turn is refused
        if turns and turns[-1]["role"] == message.role:
            turns[-1]["content"] += parts
        else:
            turns.append({"role": message.role, "content": parts})
    return turns


def _content(message: Message) -> list[dict[str, Any]]:
    return [*_text(message.text), *({"type": "image", chat.PICTURE: digest} for digest in message.images)]


def _text(words: str) -> list[dict[str, Any]]:
    """A part with these words; none without, for empty ones are refused."""
    return [{"type": "text", "text": words}] if words.strip() else []


def _sent(message: Mapping[str, Any], pictures: chat.Pictures) -> dict[str, Any]:
    return {**message, "content": _with_pictures(message["content"], pictures)}


def _with_pictures(parts: Sequence[Mapping[str, Any]], pictures: chat.Pictures) -> list[Mapping[str, Any]]:
    """Parts as they are sent; a tool's result has parts of its own."""
    sent: list[Mapping[str, Any]] = []
    for part in parts:
        if part.get("type") == "tool_result":
            part = {**part, "content": _with_pictures(part["content"], pictures)}
        elif chat.PICTURE in part:
            content = chat.encoded(part[chat.PICTURE], pictures)
            part = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": content}}
        sent.append(part)
    return sent
