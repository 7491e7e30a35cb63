"""What stands around an action: thinking, tool calls, and the text that offers tools where nothing else can."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmgym.policy.base import Conversation, Policy, Sees, Session
from lmgym.types import Completion, Message

OPEN, CLOSE = "<think>", "</think>"
OFFER = """You act by calling tools. Answer with one JSON object alone on the last line:
{"name": "the tool", "arguments": {"its parameter": "value"}}

The tools:
"""


def split_thinking(text: str) -> tuple[str, str]:
    """Thinking and words of an answer: what stands in a leading `<think>`, or before a `</think>` never opened.

    A block that is not closed was cut off: all of it is thinking.
    """
    opened = text.lstrip().startswith(OPEN)
    before, closing, after = text.partition(CLOSE)
    if not closing:
        return (text.lstrip().removeprefix(OPEN).strip(), "") if opened else ("", text)
    if not opened and OPEN in before:
        return "", text  # a block in the middle of the words is theirs
    return before.lstrip().removeprefix(OPEN).strip(), after.lstrip()


def action_of_call(content: str, name: str, arguments: Any) -> str:
    """The action that a native tool call is: its JSON on the last line, after the words said with it.

    Arguments that are no JSON object stay the text they were: the environment says so to the model.
    """
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            parsed = arguments
        arguments = parsed if isinstance(parsed, dict) else arguments
    call = json.dumps({"name": name, "arguments": {} if arguments is None else arguments}, ensure_ascii=False)
    return f"{content.strip()}\n{call}" if content.strip() else call


def call_of_action(action: str) -> tuple[str, str, Mapping[str, Any]] | None:
    """Words, name and arguments of an action that `action_of_call` wrote; None for any other."""
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
    """Schemas as `{"name", "description", "parameters"}`, however deep a task wraps them."""
    return [dict(tool["function"]) if "function" in tool else dict(tool) for tool in tools]


def wrapped(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Schemas as endpoints and chat templates want them."""
    return [{"type": "function", "function": schema} for schema in functions(tools)]


def offered(conversation: Conversation) -> Conversation:
    """The conversation with its tools told in the system prompt."""
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
class Plain:
    """Another policy, told of tools in the way that a run says, and its thinking kept apart from its action."""

    policy: Policy
    tools: str = "native"  # "text": in the system prompt; "none": not at all; else as the policy does it

    @property
    def name(self) -> str:
        """The other policy's."""
        return self.policy.name

    @property
    def version(self) -> int:
        """The other policy's."""
        return self.policy.version

    @property
    def wants(self) -> frozenset[str]:
        """The other policy's."""
        return self.policy.wants

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""
        return [_apart(said) for said in self.policy.act([self.told(each) for each in conversations])]

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens that `messages` take."""
        return self.policy.count(messages)

    def session(self) -> Session:
        """A session of the other policy, behind the same."""
        return PlainSession(self, self.policy.session())

    def see(self, pictures: Mapping[str, bytes]) -> None:
        """Let the other policy look pictures up in `pictures`, if it sees."""
        if isinstance(self.policy, Sees):
            self.policy.see(pictures)

    def told(self, conversation: Conversation) -> Conversation:
        """What the other policy is to read."""
        if self.tools == "text":
            return offered(conversation)
        if not conversation.tools:
            return conversation
        return replace(conversation, tools=() if self.tools == "none" else tuple(wrapped(conversation.tools)))


@dataclass
class PlainSession:
    """The session of a Plain policy."""

    policy: Plain
    session: Session

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Queue a conversation."""
        self.session.put(key, self.policy.told(conversation))

    def step(self) -> list[tuple[Hashable, Completion]]:
        """Advance and return what finished."""
        return [(key, _apart(said)) for key, said in self.session.step()]

    def drop(self, key: Hashable) -> None:
        """Forget `key`."""
        self.session.drop(key)

    def __len__(self) -> int:
        """Conversations put and not finished."""
        return len(self.session)


def _apart(said: Completion) -> Completion:
    thinking, words = split_thinking(said.text)
    return replace(said, text=words, thinking=said.thinking or thinking) if thinking else said
