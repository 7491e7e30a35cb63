"""How fast and how long to ask: waits between tries, and fewer calls at once where a server is full."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lmgym.policy.endpoints.calls import Trouble

if TYPE_CHECKING:
    from tenacity import RetryCallState


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long one call is tried."""

    timeout: float = 300.0  # seconds of one exchange, from its first byte to its last
    tries: int = 8  # exchanges that fail otherwise than by 429
    first: float = 0.5  # seconds before the second try, at most; each further wait may be twice as long
    longest: float = 60.0  # seconds of a wait that we choose
    obey: float = 120.0  # seconds of a wait that the server chooses
    total: float = 3600.0  # seconds until a call is given up although the server only says that it is full


@dataclass
class Tries:
    """One call's failures, and what they mean for the next try; tenacity asks it."""

    patience: Patience
    failed: int = 0  # otherwise than by 429
    full: int = 0  # 429s in a row

    def count(self, trouble: Trouble) -> None:
        """Take note of a failure."""
        if trouble.ailment == "rate":
            self.full += 1
        else:
            self.failed, self.full = self.failed + 1, 0

    def stop(self, state: RetryCallState) -> bool:
        """Whether the call is given up."""
        return self.failed >= self.patience.tries or (state.seconds_since_start or 0.0) > self.patience.total

    def wait(self, state: RetryCallState) -> float:
        """Seconds until the next try: what the server said, or chance below a doubling bound; never all at once."""
        trouble = state.outcome.exception() if state.outcome else None
        if isinstance(trouble, Trouble) and trouble.after is not None:
            return min(trouble.after, self.patience.obey) + random.uniform(0, self.patience.first)
        doublings = min(self.failed + self.full - 1, 30)
        return random.uniform(0.1, 1.0) * min(self.patience.longest, self.patience.first * 2.0**doublings)


def retry_after(value: str | None, *, milliseconds: str | None = None, date: str | None = None) -> float | None:
    """Seconds that a `Retry-After` header asks for: a number, or a date, which is read by the server's own clock.

    None where it says nothing that can be read.
    """
    for text, unit in ((milliseconds, 1000.0), (value, 1.0)):
        with suppress(ValueError):
            if text is not None:
                return _sane(float(text) / unit)
    return _until(value or "", date)


def _until(value: str, date: str | None) -> float | None:
    try:
        then = parsedate_to_datetime(value)
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return _sane((then - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _sane(seconds: float) -> float | None:
    return max(0.0, seconds) if seconds == seconds else None  # not for NaN


@dataclass(kw_only=True)
class Pace:
    """Calls in flight at once: half as many under 429, one more for each round of replies without."""

    most: int
    clock: Callable[[], float] = time.monotonic
    limit: float = field(init=False)
    running: int = 0
    slowed: int = 0  # times that the limit was halved
    held: float = 0.0  # time until which the server wants nothing
    _cut: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.limit = float(self.most)
        self._room = asyncio.Condition()

    async def __aenter__(self) -> Self:
        """Wait for room, and until the server wants to be asked."""
        async with self._room:
            await self._room.wait_for(lambda: self.running < int(self.limit))
            self.running += 1
        try:
            while (wait := self.held - self.clock()) > 0:
                await asyncio.sleep(wait)
        except asyncio.CancelledError:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Make room."""
        await self._leave()

    async def _leave(self) -> None:
        async with self._room:
            self.running -= 1
            self._room.notify_all()

    def replied(self) -> None:
        """One call went well."""
        self.limit = min(float(self.most), self.limit + 1.0 / self.limit)

    def full(self, begun: float, *, hold: float | None) -> None:
        """A call that began at `begun` met a full server, which wants to be left alone for `hold` seconds.

        Calls that were under way when the limit was last halved do not halve it again.
        """
        now = self.clock()
        if hold is not None:
            self.held = max(self.held, now + hold)
        if begun >= self._cut:
            self._cut = now
            self.limit = max(1.0, self.limit / 2)
            self.slowed += 1
