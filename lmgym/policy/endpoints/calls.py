"""Calls that cost money or time: who makes them, what can go wrong, and the book in which they are kept.

Every exchange is written down before it begins; a reply is kept before anybody uses it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.types import Finish

Ailment = Literal["rate", "server", "connection", "timeout", "broken"]
Raw = Mapping[str, Any]  # a reply as it came, plain JSON


class Trouble(PolicyError):
    """An exchange that failed and may go better: a full server, a lost connection, half a reply."""

    def __init__(self, ailment: Ailment, message: str, *, after: float | None = None) -> None:
        """`after`: seconds that the server wants us to wait."""
        super().__init__(message)
        self.ailment = ailment
        self.after = after


class Rejected(PolicyError):
    """This request is refused however often it is made."""


class Refused(PolicyError):
    """No request will be answered: a wrong key, no right, no such model, no credit."""


class Halted(PolicyError):
    """Nothing more may be asked for: a budget is spent or the run ends."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a reply says."""

    text: str  # the action
    thinking: str = ""
    finish: Finish = "stop"
    usage: Mapping[str, Any] = field(default_factory=dict)  # tokens "in", "out", of them "cached", "thinking"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A reply in the book."""

    raw: Raw
    seconds: float  # that the exchange took


class Provider(Protocol):
    """Somebody who answers: an endpoint, a program."""

    name: str  # without secrets; part of a call's key

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """The request in full, plain JSON; pictures by their digests."""

    async def send(self, body: Mapping[str, Any]) -> Raw:
        """Make one exchange. Raises Trouble, Rejected or Refused."""

    def read(self, raw: Raw) -> Said:
        """What a reply says; raises Trouble for one that is broken."""

    async def close(self) -> None:
        """Let connections go."""


class Ledger(Protocol):
    """The book of calls."""

    def find(self, key: str) -> Kept | None:
        """The reply to a call that was made before."""

    def intend(self, key: str, draw: Sequence[int]) -> int:
        """Write down that an exchange is about to begin; its number. Raises Halted where no more may be bought."""

    def fail(self, exchange: int, ailment: str, note: str) -> None:
        """Write down that an exchange brought nothing."""

    def keep(self, exchange: int, key: str, kept: Kept, said: Said) -> None:
        """Write down what an exchange brought."""


class Memory:
    """A book that lasts as long as the process."""

    def __init__(self) -> None:
        self.replies: dict[str, Kept] = {}
        self.exchanges = 0

    def find(self, key: str) -> Kept | None:
        """The reply to a call that was made before."""
        return self.replies.get(key)

    def intend(self, key: str, draw: Sequence[int]) -> int:
        """Count an exchange."""
        self.exchanges += 1
        return self.exchanges

    def fail(self, exchange: int, ailment: str, note: str) -> None:
        """Nothing to write down."""

    def keep(self, exchange: int, key: str, kept: Kept, said: Said) -> None:
        """Keep the reply."""
        self.replies[key] = kept


def call_key(name: str, body: Mapping[str, Any], draw: Sequence[int]) -> str:
    """Digest of whom is asked, the whole request, and the draw: episode, try, seat and turn.

    The draw keeps equal requests of two episodes apart: their answers are two samples, not one seen twice.
    """
    text = json.dumps([name, body, list(draw)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
