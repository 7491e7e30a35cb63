"""Policies: conversations in, completions out, in batches.

A policy knows tokens and no environment. Scripted policies (oracle, random ...) list in `wants` the hints that the
engine asks the environment for, and read them from `Conversation.hints`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from lmgym.types import Completion, Message, Turn

TOOLS = "tools"  # key in a turn's info: the schemas that were offered at it, if they differ from the turn before
OFFER = """You act by calling tools. Answer with one JSON object alone on the last line:
{"name": "the tool", "arguments": {"its parameter": "value"}}

The tools:
"""


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """The messages that one seat sees, and the completions of its policy among them.

    `spoken` holds the completions of the current segment in order: the last `len(spoken)` assistant messages. The ids
    of the segment so far are the concatenation of their `prompt_ids + ids`; a policy appends only new ids. If `spoken`
    is empty, the whole conversation is rendered.
    """

    messages: tuple[Message, ...]
    spoken: tuple[Completion, ...] = ()
    noise: tuple[int, ...] = (0,)  # names the stream of sampling noise: (job, attempt, seat, turn ...)
    hints: Mapping[str, Any] = field(default_factory=dict)  # those that the policy `wants`
    tools: tuple[Mapping[str, Any], ...] = ()  # JSON schemas, if actions are tool calls
    parallel_calls: bool = False  # an answer may hold several tool calls
    max_tokens: int | None = None  # of the answer; None leaves it to the policy


def tools_by_turn(turns: Iterable[Turn]) -> list[tuple[Mapping[str, Any], ...]]:
    """Return the tools that a seat was offered at each of its turns."""
    offered: list[tuple[Mapping[str, Any], ...]] = []
    for turn in turns:
        before = offered[-1] if offered else ()
        offered.append(tuple(turn.info.get(TOOLS, before)))
    return offered


def extends(messages: Sequence[Message], before: Sequence[Message], answer: Message | None) -> bool:
    """Return True if `messages` are those `before`, the `answer` to them, and then no message of the assistant."""
    size = len(before)
    return (
        answer is not None
        and len(messages) > size + 1
        and messages[size] == answer
        and tuple(messages[:size]) == tuple(before)
        and all(message.role != "assistant" for message in messages[size + 1 :])
    )


def functions(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return schemas as `{"name", "description", "parameters"}`, without the wrapper of chat completions."""
    return [dict(tool["function"]) if "function" in tool else dict(tool) for tool in tools]


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


def offered(conversation: Conversation, tools: str) -> Conversation:
    """Return the conversation with its tools "text": in the system prompt; "none": left out; else: as they are."""
    if tools == "text":
        return with_tools_in_prompt(conversation)
    return replace(conversation, tools=()) if tools == "none" and conversation.tools else conversation


class Session(Protocol):
    """Conversations in flight: the engine puts, steps and drops them, the policy batches them."""

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Queue a conversation; the cache of `key` is reused if the conversation extends it."""

    def step(self) -> list[tuple[Hashable, Completion]]:
        """Advance all rows by at least one token and return those that finished."""

    def drop(self, key: Hashable) -> None:
        """Forget `key` and its cache; unknown keys are ignored."""

    def __len__(self) -> int:
        """Return the number of conversations put and not finished."""


@runtime_checkable
class AnswersLater(Protocol):
    """A session computed elsewhere, whose `step` waits for an answer."""

    def poll(self) -> list[tuple[Hashable, Completion]]:
        """Return the answers that arrived, without waiting."""


@runtime_checkable
class Policy(Protocol):
    """A player that answers conversations in batches."""

    @property
    def name(self) -> str:
        """Name by which `load_policy` loads this policy."""

    @property
    def version(self) -> int:
        """Version of the weights, increased by every change."""

    @property
    def wants(self) -> frozenset[str]:
        """Hints to ask the environment for: any of "oracle", "demonstrator", "admissible"."""

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens in a full rendering of `messages`."""

    def session(self) -> Session:
        """Return a new session for the engine to drive."""


@runtime_checkable
class WeighsAnswers(Protocol):
    """A policy that tells the probabilities of given answers."""

    def answer_logprobs(self, conversations: Sequence[Conversation], answers: Sequence[str]) -> list[float]:
        """Return the log-probability of one answer, its end included, to each conversation."""


@runtime_checkable
class TakesPictures(Protocol):
    """A policy that looks up pictures by their digests."""

    def use_pictures(self, pictures: Mapping[str, bytes]) -> None:
        """Look up pictures in `pictures`, a mapping of digests to PNGs, from now on."""


@dataclass
class SimpleSession:
    """The session of a policy that answers at once: `step` acts on everything that was put since."""

    policy: Policy
    waiting: dict[Hashable, Conversation] = field(default_factory=dict)

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Queue a conversation."""
        self.waiting[key] = conversation

    def step(self) -> list[tuple[Hashable, Completion]]:
        """Answer all queued conversations."""
        waiting, self.waiting = self.waiting, {}
        return list(zip(waiting, self.policy.act(list(waiting.values())), strict=True))

    def drop(self, key: Hashable) -> None:
        """Forget `key`."""
        self.waiting.pop(key, None)

    def __len__(self) -> int:
        """Return the number of conversations put and not finished."""
        return len(self.waiting)
