"""The chat-completions dialect: conversations to requests, replies to parsed replies."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints.calls import MAX_TOOL_CALLS, ParsedReply, RawReply, RequestOptions, TransientError
from lmgym.policy.endpoints.status import parsed_result, result_of, status_of
from lmgym.policy.tools import action_of_call, call_of_action, calls_of_action, split_thinking, wrapped
from lmgym.types import Finish

DIGEST = "picture"  # member of a part that names a picture by its digest until it is sent
Pictures = Mapping[str, bytes]  # PNG by digest
FINISHES: dict[str, Finish] = {"length": "length", "content_filter": "filter"}  # all others: stop
SERVER_FAULTS = ("error", "abort", "aborted")  # finish reasons that are the server's failures
MAX_QUOTE = 10_000  # characters of a broken reply in an error, before keys are struck out and the text is cut
MAX_COUNT = 1 << 40  # tokens of one call; larger figures are ignored


@dataclass(frozen=True)
class ChatCompletions:
    """Requests and replies of an OpenAI-compatible endpoint."""

    model: str
    options: RequestOptions
    pictures: Pictures
    limit: str = "max_tokens"  # member that limits the answer's tokens

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """Return the complete request, with pictures by their digests."""
        parallel = conversation.parallel_calls
        tools = {"tools": wrapped(conversation.tools), "parallel_tool_calls": parallel} if conversation.tools else {}
        return self.options.body(
            {
                "model": self.model,
                "messages": messages_of(conversation),
                "temperature": self.options.temperature,
                self.limit: conversation.max_tokens or self.options.max_tokens,
                **tools,
            }
        )

    def outgoing(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request with pictures as data URLs."""
        messages = []
        for message in body["messages"]:
            content = message.get("content")
            parts = [self._outgoing_part(part) for part in content] if isinstance(content, list) else content
            messages.append({**message, "content": parts})
        return {**body, "messages": messages}

    def read(self, raw: RawReply) -> ParsedReply:
        """Parse a reply; raise TransientError unless it is complete."""
        return read_reply(raw)

    def _outgoing_part(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        if DIGEST not in part:
            return part
        url = f"data:image/png;base64,{encoded(part[DIGEST], self.pictures)}"
        return {"type": "image_url", "image_url": {"url": url}}


def messages_of(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the messages; where tools are offered, calls and their results are in native form."""
    messages: list[dict[str, Any]] = []
    pending: list[str] = []  # ids of the calls whose result comes next
    for number, message in enumerate(conversation.messages):
        words, calls = native_calls(conversation, number)
        pictures = [{"type": "image_url", DIGEST: digest} for digest in message.images]
        if calls:
            pending = [name for name, _, _ in calls]
            native = []
            for name, tool, given in calls:
                function = {"name": tool, "arguments": json.dumps(given, ensure_ascii=False)}
                native.append({"id": name, "type": "function", "function": function})
            messages.append({"role": "assistant", "content": words or None, "tool_calls": native})
        elif pending and message.role == "user":
            results = results_of(pending, message.text)
            messages += ({"role": "tool", "tool_call_id": name, "content": text} for name, text in results)
            if pictures:
                messages.append({"role": "user", "content": pictures})
            pending = []
        else:
            content = [{"type": "text", "text": message.text}, *pictures] if pictures else message.text
            messages.append({"role": message.role, "content": content})
    return messages


def native_calls(conversation: Conversation, number: int) -> tuple[str, list[tuple[str, str, Mapping[str, Any]]]]:
    """Return the words of message `number`, and id, name and arguments of the tool calls in it."""
    message = conversation.messages[number]
    if not conversation.tools or message.role != "assistant":
        return message.text, []
    if conversation.parallel_calls:
        words, calls = calls_of_action(message.text)
    else:
        call = call_of_action(message.text)
        words, calls = (message.text, []) if call is None else (call[0], [call[1:]])
    names = (f"call{number:05d}" + (f"-{place}" if place else "") for place in range(len(calls)))
    return words, [(name, *call) for name, call in zip(names, calls, strict=True)]


def results_of(calls: Sequence[str], text: str) -> list[tuple[str, str]]:
    """Return ids of calls with their results: an environment answers several calls in one text, given to the last."""
    *first, last = calls
    return [*((name, "The result of the last call has the results of all.") for name in first), (last, text)]


def encoded(digest: str, pictures: Pictures) -> str:
    """Return the PNG of a picture in base64."""
    if digest not in pictures:
        raise PolicyError(f"picture {digest} is missing: give the policy the engine's pictures")
    return base64.b64encode(pictures[digest]).decode()


def parse_reply(content: bytes) -> RawReply:
    """Parse the JSON object of a reply; raise TransientError for anything else, and any error it reports.

    Some routers answer with status 200 and put another status into the body.
    """
    raw = parse_object(content)
    fault = raw.get("error")
    if isinstance(fault, dict) and not raw.get("choices"):
        return result_of(status_of(fault), {}, json.dumps({"error": fault}))
    return raw


def parse_object(content: bytes) -> RawReply:
    """Parse a JSON object; raise TransientError for anything else."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TransientError("broken", f"the reply is not JSON ({error}): {content[:MAX_QUOTE]!r}") from None
    if not isinstance(raw, dict):
        raise TransientError("broken", f"the reply is not a JSON object: {content[:MAX_QUOTE]!r}")
    return raw


def read_reply(raw: RawReply) -> ParsedReply:
    """Parse a reply; raise TransientError unless it is complete."""
    result = parsed_result(raw)
    if result is not None:
        return result
    choices = raw.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise broken("the reply has no choices", raw)
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise broken("the reply has no message", choice)
    reason = choice.get("finish_reason")
    if reason in SERVER_FAULTS:
        raise broken(f"the server aborted with {reason!r}", choice)
    thinking, text = split_thinking(_text(message.get("content")))
    separate = message.get("reasoning_content") or message.get("reasoning") or ""
    calls = _calls(message)
    if not calls and not text and isinstance(message.get("refusal"), str):
        text = message["refusal"]
    return reply_of(
        text,
        separate if isinstance(separate, str) and separate else thinking,
        calls,
        finish=FINISHES.get(str(reason), "stop"),
        usage=_usage(raw.get("usage")),
    )


def reply_of(
    text: str, thinking: str, calls: list[tuple[Any, Any]], *, finish: Finish, usage: Mapping[str, Any]
) -> ParsedReply:
    """Return the parsed reply whose action is the first of `calls` (name, arguments), or `text` if there are none.

    The other calls are in `more`, for tasks that take several.
    Lone surrogates are replaced, because no server and no file accepts them.
    """
    if len(calls) > MAX_TOOL_CALLS:
        raise TransientError("broken", f"the reply has {len(calls)} tool calls; at most {MAX_TOOL_CALLS} are allowed")
    for name, _ in calls:
        if not isinstance(name, str):
            raise broken("the reply calls a tool without a name", name)
    text = action_of_call(text, *calls[0]) if calls else text
    more = [action_of_call("", *call) for call in calls[1:]]
    text, thinking, *more = (part.encode("utf-8", "replace").decode() for part in (text, thinking, *more))
    return ParsedReply(text=text, more=tuple(more), thinking=thinking, finish=finish, usage=usage)


def broken(problem: str, part: object) -> TransientError:
    """Return the error for a broken reply, which quotes the part at fault."""
    return TransientError("broken", f"{problem}: {str(part)[:MAX_QUOTE]}")


def token_counts(usage: Any, **names: str) -> dict[str, int]:
    """Return those of the figures in `names` (ours=theirs) that are valid numbers of tokens."""
    figures = {ours: usage.get(theirs) for ours, theirs in names.items()} if isinstance(usage, Mapping) else {}
    return {
        name: value
        for name, value in figures.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT
    }


def _text(content: Any) -> str:
    """Return the text of a message's content: a string, None, or parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        return "".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    raise broken("the reply's content is not text", content)


def _calls(message: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return names and arguments of the tool calls; arguments may be anything."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise broken("the reply's tool calls are not a list", calls)
    functions = [call.get("function") if isinstance(call, Mapping) else None for call in calls]
    return [(f.get("name"), f.get("arguments")) if isinstance(f, Mapping) else (None, None) for f in functions]


def _usage(usage: Any) -> dict[str, int]:
    """Return the numbers of tokens; figures that the server does not report are left out."""
    if not isinstance(usage, Mapping):
        return {}
    return {
        **token_counts(usage, **{"in": "prompt_tokens", "out": "completion_tokens"}),
        **token_counts(usage.get("prompt_tokens_details"), cached="cached_tokens"),
        **token_counts(usage.get("completion_tokens_details"), thinking="reasoning_tokens"),
    }
