"""What a policy is: many conversations in, as many completions out.

A policy knows tokens and no environment. Scripted policies (oracle, random ...) say in `wants` what the engine
shall ask the environment for, and find it in `Conversation.hints`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from lmgym.types import Completion, Message


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """What one seat sees, and what its policy already said of it.

    `spoken` holds the completions of the current segment in order: the last `len(spoken)` assistant messages of
    `messages` are theirs, and the ids of the segment so far are the concatenation of their `prompt_ids + ids`. A
    policy appends only the new ids. Empty `spoken` means that everything is rendered anew.
    """

    messages: tuple[Message, ...]
    spoken: tuple[Completion, ...] = ()
    noise: tuple[int, ...] = (0,)  # names the stream of sampling noise: (job, attempt, seat, turn ...)
    hints: Mapping[str, Any] = field(default_factory=dict)  # what `wants` asked for
    tools: tuple[Mapping[str, Any], ...] = ()  # JSON schemas, where actions are tool calls
    max_tokens: int | None = None  # of the answer; None leaves it to the policy


def extends(messages: Sequence[Message], before: Sequence[Message], said: Message | None) -> bool:
    """Whether `messages` begin with what was seen `before` and what was `said` to it, and then only ask."""
    size = len(before)
    return (
        said is not None
        and len(messages) > size + 1
        and messages[size] == said
        and tuple(messages[:size]) == tuple(before)
        and all(message.role != "assistant" for message in messages[size + 1 :])
    )


class Session(Protocol):
    """Conversations in flight. The engine puts, steps and drops; the policy batches."""

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Queue a conversation; the cache kept under `key` is reused where it extends what was there."""

    def step(self) -> list[tuple[Hashable, Completion]]:
        """Advance all rows by at least one token and return those that finished."""

    def drop(self, key: Hashable) -> None:
        """Forget `key` and its cache; unknown keys are fine."""

    def __len__(self) -> int:
        """Conversations put and not finished."""


@runtime_checkable
class Policy(Protocol):
    """Answers conversations in batches."""

    @property
    def name(self) -> str:
        """The string that makes this policy again."""

    @property
    def version(self) -> int:
        """Of the weights; goes up whenever they change."""

    @property
    def wants(self) -> frozenset[str]:
        """Hints to ask the environment for: of {"oracle", "demonstrator", "admissible"}."""

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens that `messages` take, rendered from nothing."""

    def session(self) -> Session:
        """A new session, which the engine drives."""


@runtime_checkable
class Sees(Protocol):
    """A policy that looks pictures up by their digests."""

    def see(self, pictures: Mapping[str, bytes]) -> None:
        """Look pictures up in `pictures` from here on, PNGs by digest."""


@dataclass
class SimpleSession:
    """The session of a policy that answers at once: `step` acts on everything put since."""

    policy: Policy
    waiting: dict[Hashable, Conversation] = field(default_factory=dict)

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Queue a conversation."""
        self.waiting[key] = conversation

    def step(self) -> list[tuple[Hashable, Completion]]:
        """Answer all that wait."""
        waiting, self.waiting = self.waiting, {}
        return list(zip(waiting, self.policy.act(list(waiting.values())), strict=True))

    def drop(self, key: Hashable) -> None:
        """Forget `key`."""
        self.waiting.pop(key, None)

    def __len__(self) -> int:
        """Conversations put and not finished."""
        return len(self.waiting)
