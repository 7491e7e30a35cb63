"""Tool calls, thinking, and the ways to offer tools to a policy."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmgym.policy.base import Conversation, Policy, Session, TakesPictures
from lmgym.types import Completion, Message

OPEN, CLOSE = "<think>", "</think>"
OFFER = """You act by calling tools. Answer with one JSON object alone on the last line:
{"name": "the tool", "arguments": {"its parameter": "value"}}

The tools:
"""


def split_thinking(text: str) -> tuple[str, str]:
    """Split an answer into its thinking, a leading `<think>` block, and its words.

    The template may have opened the block. One that is not closed was cut off: all of it is thinking.
    """
    opened = text.lstrip().startswith(OPEN)
    before, closing, after = text.partition(CLOSE)
    if not closing:
        return (text.lstrip().removeprefix(OPEN).strip(), "") if opened else ("", text)
    if not opened and OPEN in before:
        return "", text  # a block in the middle belongs to the words
    return before.lstrip().removeprefix(OPEN).strip(), after.lstrip()


def action_of_call(content: str, name: str, arguments: Any) -> str:
    """Return the action of a native tool call: its words, and its JSON on the last line.

    Arguments that are not a JSON object stay as text, so that the environment can answer the mistake.
    """
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            parsed = arguments
        arguments = parsed if isinstance(parsed, dict) else arguments
    call = json.dumps({"name": name, "arguments": {} if arguments is None else arguments}, ensure_ascii=False)
    return f"{content.strip()}\n{call}" if content.strip() else call


def calls_of_action(action: str) -> tuple[str, list[tuple[str, Mapping[str, Any]]]]:
    """Return the words of an action and the calls of its last lines, each written by `action_of_call`."""
    calls: list[tuple[str, Mapping[str, Any]]] = []
    words = action
    while (call := call_of_action(words)) is not None:
        words, name, arguments = call
        calls.insert(0, (name, arguments))
    return words, calls


def call_of_action(action: str) -> tuple[str, str, Mapping[str, Any]] | None:
    """Return words, name and arguments of an action written by `action_of_call`; None for any other action."""
    words, _, line = action.rpartition("\n")
    if not line.startswith('{"name": '):
        return None
    try:
        call = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if set(call) != {"name", "arguments"} or not isinstance(call["arguments"], dict):
        return None
    return words, str(call["name"]), call["arguments"]


def functions(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return schemas as `{"name", "description", "parameters"}`, without the wrapper of chat completions."""
    return [dict(tool["function"]) if "function" in tool else dict(tool) for tool in tools]


def wrapped(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return schemas as endpoints and chat templates take them."""
    return [{"type": "function", "function": schema} for schema in functions(tools)]


def with_tools_in_prompt(conversation: Conversation) -> Conversation:
    """Return the conversation with its tools described in the system prompt."""
    if not conversation.tools:
        return conversation
    schemas = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in functions(conversation.tools))
    first, *rest = conversation.messages
    words = OFFER + schemas
    if first.role == "system":
        messages = (replace(first, text=f"{first.text}\n\n{words}"), *rest)
    else:
        messages = (Message(role="system", text=words), *conversation.messages)
    return replace(conversation, messages=messages, tools=())


@dataclass
class ActionPolicy:
    """A policy whose tools are offered as a run says."""

    policy: Policy
    tools: str = "native"  # "text": in the system prompt; "none": not at all; else as the policy itself does

    @property
    def name(self) -> str:
        """Name of the inner policy."""
        return self.policy.name

    @property
    def version(self) -> int:
        """Version of the inner policy."""
        return self.policy.version

    @property
    def wants(self) -> frozenset[str]:
        """Hints of the inner policy."""
        return self.policy.wants

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""
        return self.policy.act(list(map(self.offer, conversations)))

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens in a full rendering of `messages`."""
        return self.policy.count(messages)

    def session(self) -> Session:
        """Return a session that wraps one of the inner policy."""
        return ActionSession(self, self.policy.session())

    def use_pictures(self, pictures: Mapping[str, bytes]) -> None:
        """Look up pictures in `pictures` from now on, if the inner policy takes any."""
        if isinstance(self.policy, TakesPictures):
            self.policy.use_pictures(pictures)

    def offer(self, conversation: Conversation) -> Conversation:
        """Return the conversation for the inner policy."""
        if self.tools == "text":
            return with_tools_in_prompt(conversation)
        return replace(conversation, tools=()) if self.tools == "none" and conversation.tools else conversation


@dataclass
class ActionSession:
    """The session of an ActionPolicy."""

    policy: ActionPolicy
    session: Session

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Queue a conversation."""
        self.session.put(key, self.policy.offer(conversation))

    def step(self) -> list[tuple[Hashable, Completion]]:
        """Advance and return what finished."""
        return self.session.step()

    def drop(self, key: Hashable) -> None:
        """Forget `key`."""
        self.session.drop(key)

    def __len__(self) -> int:
        """Return the number of conversations put and not finished."""
        return len(self.session)
