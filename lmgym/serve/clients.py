"""Who may ask, and how much: tokens, one a client, and what each of them may use."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lmgym.errors import InstanceError

VARIABLE = "LMGYM_SERVE_TOKEN"  # one token or several, one a client, by spaces or commas
SHORTEST = 16  # characters of a token


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server gives at most."""

    message: int = 8 << 20  # bytes; the longest action there is takes 6 MiB in JSON
    calls: int = 1024  # of a message
    answers: int = 32 << 20  # characters of texts and pictures after which no more of a message's calls are made
    sessions: int = 256
    sessions_per_client: int = 128
    connections_per_client: int = 256  # that stay open, by WebSocket
    rate: float = 50_000.0  # calls a second of a client
    idle: float = 900.0  # seconds after which a session that nobody calls is closed
    call: float = 120.0  # seconds of one call to an environment
    slow: float = 30.0  # seconds that a client may take to send a request or to take an answer

    def __post_init__(self) -> None:
        if wrong := [name for name, value in vars(self).items() if not value > 0]:
            raise InstanceError(f"limit {wrong[0]} must be above 0; got {getattr(self, wrong[0])}")


@dataclass
class Client:
    """One who has a token."""

    name: str  # for the log: no part of the token
    limits: Limits
    sessions: int = 0
    connections: int = 0
    allowance: float = field(init=False)  # calls that may be made at once
    since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.allowance = self.burst

    @property
    def burst(self) -> float:
        """Calls that may come at once after a rest: those of a second, or of one whole message."""
        return max(self.limits.rate, float(self.limits.calls))

    def spend(self, calls: int) -> float:
        """Take so many calls from the allowance: 0; where it has fewer, the seconds until it has them."""
        now = time.monotonic()
        self.allowance = min(self.burst, self.allowance + (now - self.since) * self.limits.rate)
        self.since = now
        if calls > self.allowance:
            return (calls - self.allowance) / self.limits.rate
        self.allowance -= calls
        return 0.0


class Clients:
    """Everybody who has a token."""

    def __init__(self, tokens: Sequence[str], limits: Limits) -> None:
        if not tokens:
            raise InstanceError("a server needs a token")
        if short := [token for token in tokens if len(token) < SHORTEST or not token.isascii()]:
            raise InstanceError(f"a token is {SHORTEST} ASCII characters or longer; one of {len(short[0])} is refused")
        self._known = [(token.encode(), Client(f"client {n}", limits)) for n, token in enumerate(tokens, start=1)]

    def of(self, token: bytes) -> Client | None:
        """Whose token this is. All are compared, each in constant time."""
        found = None
        for known, client in self._known:
            if hmac.compare_digest(known, token):
                found = client
        return found


def tokens_of(environment: Mapping[str, str]) -> tuple[list[str], bool]:
    """The tokens that the environment names; where it names none, a new one, and that it is new."""
    found = [token for token in re.split(r"[\s,]+", environment.get(VARIABLE, "")) if token]
    return (found, False) if found else ([secrets.token_urlsafe(24)], True)
