"""Waiting: what servers ask for, doubling with chance, and fewer calls at once."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import pytest
from tenacity import Future, RetryCallState

from lmgym.policy.endpoints.calls import TransientError
from lmgym.policy.endpoints.pace import Attempts, RetryLimits, Throttle, retry_after

DATE = "Sat, 01 Nov 2025 10:00:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("3", 3.0), ("0.5", 0.5), ("0", 0.0), ("86400", 86400.0)),
        *((value, None) for value in ("-1", "-inf", "nan", "inf", "1e12", "86401", "soon", "", None)),
    ],
)
def test_retry_after_is_plausible_seconds(value, seconds):
    assert retry_after(value) == seconds


def test_retry_after_is_a_date_by_the_servers_clock_or_in_milliseconds():
    assert retry_after("Sat, 01 Nov 2025 10:00:07 GMT", date=DATE) == 7.0
    assert retry_after("Sat, 01 Nov 2025 09:00:00 GMT", date=DATE) is None
    assert retry_after("Sat, 01 Nov 2025 12:00:00 +0200", date=DATE) == 0.0
    assert retry_after("Sat, 99 Nov 2025 10:00:00 GMT", date=DATE) is None
    assert 50 < (retry_after(formatdate(time.time() + 60, usegmt=True)) or 0) <= 60
    assert retry_after("9", milliseconds="250") == 0.25
    assert retry_after("9", milliseconds="soon") == 9.0
    assert retry_after("9", milliseconds="-250") is None


def state(trouble: TransientError, started: float = 0.0) -> RetryCallState:
    made = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
    made.start_time = started
    future = Future(1)
    future.set_exception(trouble)
    made.outcome, made.outcome_timestamp = future, 1.0
    return made


def test_waits_double_up_to_a_bound_and_are_never_all_alike():
    attempts = Attempts(RetryLimits(first_wait=1.0, longest_wait=10.0, attempts=99))
    waits = []
    for _ in range(12):
        trouble = TransientError("server", "HTTP 500")
        attempts.record(trouble)
        waits.append([attempts.wait(state(trouble)) for _ in range(50)])
    bounds = [1, 2, 4, 8, *[10] * 8]
    assert all(0.1 * bound <= wait <= bound for row, bound in zip(waits, bounds, strict=True) for wait in row)
    assert all(len(set(row)) > 40 for row in waits)


def test_a_server_is_obeyed_within_reason_and_asked_ever_more_slowly():
    attempts = Attempts(RetryLimits(first_wait=0.5, longest_retry_after=100.0))
    full = TransientError("rate", "HTTP 429", after=7.0)
    assert all(7.0 <= attempts.wait(state(full)) <= 7.5 for _ in range(20))
    assert attempts.wait(state(TransientError("rate", "HTTP 429", after=9000.0))) <= 100.5
    attempts, error = Attempts(RetryLimits(first_wait=0.5)), TransientError("rate", "HTTP 429", after=0.0)
    waits = []
    for _ in range(40):
        attempts.record(error)
        waits.append(attempts.wait(state(error)))
    assert min(waits[8:]) >= 0.1 * 60  # of the longest wait


def test_a_full_server_does_not_use_up_the_tries():
    attempts = Attempts(RetryLimits(attempts=3, total=60.0))
    full, broken = TransientError("rate", "429"), TransientError("broken", "half")
    for _ in range(50):
        attempts.record(full)
    assert not attempts.stop(state(full))
    for _ in range(3):
        assert not attempts.stop(state(broken))
        attempts.record(broken)
    assert attempts.stop(state(broken))
    assert Attempts(RetryLimits(total=0.5)).stop(state(full))  # one second has passed


def test_calls_at_once_halve_once_a_wave_and_grow_by_one_a_round():
    now = 0.0
    throttle = Throttle(most=64, clock=lambda: now)
    for begun in (0.0, 0.0, 0.0):  # one wave
        now = 1.0
        throttle.rate_limited(begun, hold=None)
    assert throttle.limit == 32
    now = 2.0
    throttle.rate_limited(1.5, hold=None)
    assert throttle.limit == 16
    for _ in range(17):
        throttle.succeeded()
    assert throttle.limit == pytest.approx(17, abs=0.05)
    for _ in range(10_000):
        throttle.succeeded()
    assert throttle.limit == 64
    for wave in range(20):
        now = 100.0 + wave
        throttle.rate_limited(now, hold=None)
    assert throttle.limit == 1


def test_no_more_calls_are_in_flight_than_the_limit_says():
    async def main() -> int:
        throttle, most = Throttle(most=3), 0

        async def call() -> None:
            nonlocal most
            async with throttle.call():
                most = max(most, throttle.running)
                await asyncio.sleep(0)

        await asyncio.gather(*(call() for _ in range(20)))
        assert throttle.running == 0
        return most

    assert asyncio.run(main()) == 3


def test_a_held_throttle_lets_nobody_in_until_then():
    async def main() -> None:
        throttle = Throttle(most=3)
        throttle.rate_limited(throttle.clock(), hold=0.05)
        begun = throttle.clock()
        async with throttle.call():
            assert throttle.clock() - begun >= 0.045

    asyncio.run(main())
