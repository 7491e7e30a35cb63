"""Limits on how fast and how long endpoints are asked: waits between attempts, and calls in flight."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from lmgym.policy.endpoints.calls import TransientError

if TYPE_CHECKING:
    from tenacity import RetryCallState

MAX_RETRY_AFTER = 86_400.0  # seconds; a server that asks for more is not believed


@dataclass(frozen=True, kw_only=True)
class RetryLimits:
    """Limits of the attempts of one call; all times in seconds."""

    timeout: float = 300.0  # of one exchange, from its first byte to its last
    attempts: int = 8  # that may fail, those with HTTP 429 not counted
    first_wait: float = 0.5  # upper bound of the first wait; the bound doubles with each failure
    longest_wait: float = 60.0  # upper bound of the waits that lmgym chooses
    longest_retry_after: float = 120.0  # upper bound of the waits that the server chooses
    total: float = 3600.0  # until a call is given up, even if the server only reports HTTP 429


@dataclass
class Attempts:
    """The failed attempts of one call, which decide on the next; used by tenacity."""

    limits: RetryLimits
    failures: int = 0  # HTTP 429 not counted
    rate_limited: int = 0  # HTTP 429 in a row

    def record(self, error: TransientError) -> None:
        """Count a failure."""
        if error.kind == "rate":
            self.rate_limited += 1
        else:
            self.failures, self.rate_limited = self.failures + 1, 0

    def stop(self, state: RetryCallState) -> bool:
        """Return True if the call is given up."""
        return self.failures >= self.limits.attempts or (state.seconds_since_start or 0.0) > self.limits.total

    def wait(self, state: RetryCallState) -> float:
        """Return the seconds until the next attempt.

        That is a random time below a bound that doubles, or the server's Retry-After plus jitter if that is longer: a
        server that always asks for an immediate retry gets no more requests than one that asks for nothing.
        """
        doublings = min(self.failures + self.rate_limited - 1, 30)
        backoff = random.uniform(0.1, 1.0) * min(self.limits.longest_wait, self.limits.first_wait * 2.0**doublings)
        error = state.outcome.exception() if state.outcome else None
        if not isinstance(error, TransientError) or error.after is None:
            return backoff
        wait = min(error.after, self.limits.longest_retry_after) + random.uniform(0, self.limits.first_wait)
        return max(wait, backoff)


def retry_after(value: str | None, *, milliseconds: str | None = None, date: str | None = None) -> float | None:
    """Return the seconds that a `Retry-After` header asks for: a number, or a date by the server's own clock.

    Return None for values that are unreadable, negative, not finite or longer than a day.
    """
    for text, unit in ((milliseconds, 1000.0), (value, 1.0)):
        with suppress(ValueError):
            if text is not None:
                return _plausible(float(text) / unit)
    try:
        then = parsedate_to_datetime(value or "")
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return _plausible((then - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _plausible(seconds: float) -> float | None:
    return seconds if 0 <= seconds <= MAX_RETRY_AFTER else None


@dataclass(kw_only=True)
class Throttle:
    """A limit on the calls in flight: halved under HTTP 429, raised by one for each round of replies without."""

    most: int
    clock: Callable[[], float] = time.monotonic
    limit: float = field(init=False)
    running: int = 0
    halvings: int = 0
    held_until: float = 0.0  # time before which the server wants no request
    _last_halving: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.limit = float(self.most)
        self._room = asyncio.Condition()

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Wait for room below the limit and for the end of a hold; count a call as in flight within the block."""
        async with self._room:
            await self._room.wait_for(lambda: self.running < int(self.limit))
            self.running += 1
        try:
            while (wait := self.held_until - self.clock()) > 0:
                await asyncio.sleep(wait)
            yield
        finally:
            async with self._room:
                self.running -= 1
                self._room.notify_all()

    def succeeded(self) -> None:
        """Raise the limit a little after a reply."""
        self.limit = min(float(self.most), self.limit + 1.0 / self.limit)

    def rate_limited(self, begun: float, *, hold: float | None) -> None:
        """Halve the limit after HTTP 429 to a call that began at `begun`, and hold all calls for `hold` seconds.

        Calls that were in flight at the last halving do not halve the limit again.
        """
        now = self.clock()
        if hold is not None:
            self.held_until = max(self.held_until, now + hold)
        if begun >= self._last_halving:
            self._last_halving = now
            self.limit = max(1.0, self.limit / 2)
            self.halvings += 1
