"""Calls to models outside this process: requests, replies, errors, and the ledger that keeps them.

The ledger records every exchange before it begins, and a reply before anything uses it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.types import Finish

FailureKind = Literal["rate", "server", "connection", "timeout", "broken"]
RawReply = Mapping[str, Any]  # a reply as it came, plain JSON
MAX_REPLY_BYTES = 8 << 20  # bytes of one reply; parsed JSON takes up to 30 times as much memory
MAX_TOOL_CALLS = 128  # tool calls of one reply
MAX_ANSWER_TOKENS = 2048  # default limit of tokens in an answer


class CallError(PolicyError):
    """A failed exchange; `outcome` is the word that the ledger stores for it."""

    outcome = "failed"


class TransientError(CallError):
    """A failed exchange that may succeed when repeated: a rate limit, a lost connection, a broken reply."""

    def __init__(self, kind: FailureKind, message: str, *, after: float | None = None) -> None:
        """`after` is the wait in seconds that the server asks for."""
        super().__init__(message)
        self.outcome = self.kind = kind
        self.after = after


class RequestRejected(CallError):
    """A request that the server rejects every time."""

    outcome = "rejected"


class EndpointRefused(CallError):
    """An endpoint that accepts no request: wrong key, missing permission, unknown model, no credit."""

    outcome = "refused"


class Halted(CallError):
    """No further calls are allowed: the budget is used up or the run ends."""

    outcome = "halted"


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """Options of every request to an endpoint."""

    temperature: float | None = 1.0  # None leaves it to the server
    max_tokens: int = MAX_ANSWER_TOKENS  # of one answer
    extra: Mapping[str, Any] = field(default_factory=dict)  # further members of the request; None removes a member
    key_variable: str | None = None  # environment variable that holds the key; None: chosen by the host

    def body(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request `fields` merged with the extra members, without members that are None."""
        return {name: value for name, value in {**fields, **self.extra}.items() if value is not None}


@dataclass
class PictureSource(Mapping[str, bytes]):
    """The pictures of a policy, PNGs by digest; its requests find those that it was told to use last."""

    current: Mapping[str, bytes]

    def __getitem__(self, digest: str) -> bytes:
        return self.current[digest]

    def __iter__(self) -> Iterator[str]:
        return iter(self.current)

    def __len__(self) -> int:
        return len(self.current)


@dataclass(frozen=True, kw_only=True)
class ParsedReply:
    """The content of a reply."""

    text: str  # the action
    more: tuple[str, ...] = ()  # tool calls after the first
    thinking: str = ""
    finish: Finish = "stop"
    usage: Mapping[str, Any] = field(default_factory=dict)  # tokens "in" and "out", of which "cached" and "thinking"


@dataclass(frozen=True, kw_only=True)
class StoredReply:
    """A reply in the ledger."""

    raw: RawReply
    seconds: float  # duration of the exchange


class Dialect(Protocol):
    """The format of requests and replies."""

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """Return the complete request as plain JSON, with pictures by their digests."""

    def outgoing(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request as it is sent, with the pictures themselves."""

    def read(self, raw: RawReply) -> ParsedReply:
        """Parse a reply; raise TransientError for a broken one."""


class Provider(Protocol):
    """An endpoint or a program that answers requests."""

    name: str  # contains no secrets; part of every call's key

    @property
    def dialect(self) -> Dialect:
        """Format of requests and replies."""

    async def exchange(self, request: Mapping[str, Any]) -> RawReply:
        """Send a request and return the reply; raise TransientError, RequestRejected or EndpointRefused."""

    async def close(self) -> None:
        """Close connections or end the program."""


class CallLedger:
    """A record of calls and their replies that lasts as long as the process; the base of others."""

    def __init__(self) -> None:
        self.replies: dict[str, StoredReply] = {}
        self.exchanges = 0

    def find(self, key: str) -> StoredReply | None:
        """Return the stored reply to a call, or None."""
        return self.replies.get(key)

    def begin(self, key: str, draw: Sequence[int]) -> int:
        """Record the start of an exchange and return its number; raise Halted if the budget allows no more."""
        self.exchanges += 1
        return self.exchanges

    def fail(self, exchange: int, outcome: str, note: str) -> None:
        """Record a failed exchange."""

    def store(self, exchange: int, key: str, stored: StoredReply, reply: ParsedReply) -> None:
        """Record a successful exchange with its reply."""
        self.replies[key] = stored


def call_key(name: str, body: Mapping[str, Any], draw: Sequence[int]) -> str:
    """Return the digest of the provider's name, the whole request, and the draw (episode, attempt, seat, turn).

    The draw keeps equal requests of two episodes apart, because their answers are two independent samples.
    """
    text = json.dumps([name, body, list(draw)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
