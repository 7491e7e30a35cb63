"""Waiting: what servers ask for, doubling with chance, and fewer calls at once."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import pytest
from tenacity import Future, RetryCallState

from lmgym.policy.endpoints.calls import Trouble
from lmgym.policy.endpoints.pace import Pace, Patience, Tries, retry_after

DATE = "Sat, 01 Nov 2025 10:00:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("nan", None), ("soon", None), ("", None), (None, None), ("inf", None)],
)
def test_retry_after_is_seconds(value, seconds):
    assert retry_after(value) == (seconds if value != "inf" else float("inf"))


def test_retry_after_is_a_date_by_the_servers_clock():
    assert retry_after("Sat, 01 Nov 2025 10:00:07 GMT", date=DATE) == 7.0
    assert retry_after("Sat, 01 Nov 2025 09:00:00 GMT", date=DATE) == 0.0
    assert retry_after("Sat, 01 Nov 2025 12:00:00 +0200", date=DATE) == 0.0
    assert retry_after("Sat, 99 Nov 2025 10:00:00 GMT", date=DATE) is None
    assert 50 < (retry_after(formatdate(time.time() + 60, usegmt=True)) or 0) <= 60


def test_retry_after_in_milliseconds_goes_before():
    assert retry_after("9", milliseconds="250") == 0.25
    assert retry_after("9", milliseconds="soon") == 9.0


def state(trouble: Trouble, started: float = 0.0) -> RetryCallState:
    found = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
    found.start_time = started
    future = Future(1)
    future.set_exception(trouble)
    found.outcome, found.outcome_timestamp = future, 1.0
    return found


def test_waits_double_up_to_a_bound_and_are_never_all_alike():
    tries = Tries(Patience(first=1.0, longest=10.0, tries=99))
    waits = []
    for _ in range(12):
        trouble = Trouble("server", "HTTP 500")
        tries.count(trouble)
        waits.append([tries.wait(state(trouble)) for _ in range(50)])
    bounds = [1, 2, 4, 8, *[10] * 8]
    assert all(0.1 * bound <= wait <= bound for row, bound in zip(waits, bounds, strict=True) for wait in row)
    assert all(len(set(row)) > 40 for row in waits)


def test_a_server_is_obeyed_within_reason():
    tries = Tries(Patience(first=0.5, obey=100.0))
    full = Trouble("rate", "HTTP 429", after=7.0)
    assert all(7.0 <= tries.wait(state(full)) <= 7.5 for _ in range(20))
    assert tries.wait(state(Trouble("rate", "HTTP 429", after=float("inf")))) <= 100.5


def test_a_full_server_does_not_use_up_the_tries():
    tries = Tries(Patience(tries=3, total=60.0))
    full, broken = Trouble("rate", "429"), Trouble("broken", "half")
    for _ in range(50):
        tries.count(full)
    assert not tries.stop(state(full))
    for _ in range(3):
        assert not tries.stop(state(broken))
        tries.count(broken)
    assert tries.stop(state(broken))
    assert Tries(Patience(total=0.5)).stop(state(full))  # one second has passed


def test_calls_at_once_halve_once_a_wave_and_grow_by_one_a_round():
    now = 0.0
    pace = Pace(most=64, clock=lambda: now)
    for begun in (0.0, 0.0, 0.0):  # one wave
        now = 1.0
        pace.full(begun, hold=None)
    assert pace.limit == 32
    now = 2.0
    pace.full(1.5, hold=None)
    assert pace.limit == 16
    for _ in range(17):
        pace.replied()
    assert pace.limit == pytest.approx(17, abs=0.05)
    for _ in range(10_000):
        pace.replied()
    assert pace.limit == 64
    for wave in range(20):
        now = 100.0 + wave
        pace.full(now, hold=None)
    assert pace.limit == 1


def test_no_more_calls_are_in_flight_than_the_limit_says():
    async def main() -> int:
        pace, most = Pace(most=3), 0

        async def call() -> None:
            nonlocal most
            async with pace:
                most = max(most, pace.running)
                await asyncio.sleep(0)

        await asyncio.gather(*(call() for _ in range(20)))
        assert pace.running == 0
        return most

    assert asyncio.run(main()) == 3


def test_a_held_pace_lets_nobody_in_until_then():
    async def main() -> None:
        pace = Pace(most=3)
        pace.full(pace.clock(), hold=0.05)
        begun = pace.clock()
        async with pace:
            assert pace.clock() - begun >= 0.045

    asyncio.run(main())
