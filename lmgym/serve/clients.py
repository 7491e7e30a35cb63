"""Clients, each identified by a token, and the limits that apply to them."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from typer import Option as Opt

from lmgym.errors import InstanceError

VARIABLE = "LMGYM_SERVE_TOKEN"  # tokens, one per client, separated by spaces or commas
MIN_TOKEN = 16  # characters
PANEL = "Limits"  # of the options in the help of `lmgym serve`


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on messages, sessions and clients; `lmgym serve` has an option for each annotated one."""

    sessions: Annotated[int, Opt(min=1, help="Maximum sessions.", rich_help_panel=PANEL)] = 256
    sessions_per_client: Annotated[int, Opt(min=1, help="Maximum sessions per token.", rich_help_panel=PANEL)] = 128
    rate: Annotated[float, Opt(min=1, help="Maximum calls per second and token.", rich_help_panel=PANEL)] = 50_000
    idle: Annotated[float, Opt(min=1, help="Seconds until an idle session is closed.", rich_help_panel=PANEL)] = 900
    call: Annotated[float, Opt(min=0.1, help="Maximum seconds per call.", rich_help_panel=PANEL)] = 120
    slow: Annotated[
        float, Opt(min=0.1, help="Maximum seconds to send an HTTP request or take an answer.", rich_help_panel=PANEL)
    ] = 30  # a WebSocket message may take any time to arrive
    # the longest possible action takes 6 MiB in JSON
    message: Annotated[int, Opt(min=1024, help="Maximum bytes per message.", rich_help_panel=PANEL)] = 8 << 20
    calls: int = 1024  # per message
    answers: int = 32 << 20  # characters of answers after which the remaining calls of a message are refused
    connections_per_client: int = 256  # open WebSockets

    def __post_init__(self) -> None:
        if wrong := [name for name, value in vars(self).items() if not value > 0]:
            raise InstanceError(f"limit {wrong[0]} must be above 0; got {getattr(self, wrong[0])}")


@dataclass
class Client:
    """The holder of a token, and a token bucket of its calls."""

    name: str  # for the log; contains no part of the token
    limits: Limits
    sessions: int = 0
    connections: int = 0
    allowance: float = field(init=False)  # calls that may be made now
    since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.allowance = self.burst

    @property
    def burst(self) -> float:
        """Calls allowed at once after a pause: those of one second, at least a whole message."""
        return max(self.limits.rate, float(self.limits.calls))

    def spend(self, calls: int) -> float:
        """Take calls from the allowance and return 0, or return the seconds until it has enough."""
        now = time.monotonic()
        self.allowance = min(self.burst, self.allowance + (now - self.since) * self.limits.rate)
        self.since = now
        if calls > self.allowance:
            return (calls - self.allowance) / self.limits.rate
        self.allowance -= calls
        return 0.0


class Clients:
    """All clients of a server, by token."""

    def __init__(self, tokens: Sequence[str], limits: Limits) -> None:
        if not tokens:
            raise InstanceError("a server needs at least one token")
        if short := [token for token in tokens if len(token) < MIN_TOKEN or not token.isascii()]:
            raise InstanceError(f"a token needs at least {MIN_TOKEN} ASCII characters; got one of {len(short[0])}")
        self._clients = [(token.encode(), Client(f"client {n}", limits)) for n, token in enumerate(tokens, start=1)]

    def of(self, token: bytes) -> Client | None:
        """Return the client of a token, None if there is none. Compares all tokens, each in constant time."""
        matches = [client for other, client in self._clients if hmac.compare_digest(other, token)]
        return matches[0] if matches else None


def tokens_of(environment: Mapping[str, str]) -> tuple[list[str], bool]:
    """Return the tokens in the environment variable and False; without any, a new token and True."""
    tokens = [token for token in re.split(r"[\s,]+", environment.get(VARIABLE, "")) if token]
    return (tokens, False) if tokens else ([secrets.token_urlsafe(24)], True)
