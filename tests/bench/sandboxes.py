"""Speeds of sandboxes by engine: one command, in a fresh process and in a shell, and starts; alone and 16 at once.

And of SWERepair in the default engine: episodes, and instances made afresh.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count

from lmgym.backends.sandbox import Box, Sandbox, bubblewrap, daemon, open_sandbox
from lmgym.env import golden
from lmgym.env.registry import build
from lmgym.tasks.swe_repair import instances

AT_ONCE = (1, 16)
COMMANDS = 50  # a sandbox
FIRST = 500_000  # index of the first instance that is made; none there is shipped
SHARE = 20  # of a round's seconds: an episode takes seconds


def available() -> dict[str, str]:
    """Return why each engine cannot run here; "" if it can."""
    return {"bubblewrap": bubblewrap.unavailable(), "docker": daemon.unavailable()}


def rates(seconds: float) -> Iterator[tuple[str, int, float, float, float, float, float, float]]:
    """Yield engine, sandboxes at once, ms of a command and of a shell's (median, p99 of each), commands/s, starts/s."""
    for engine, reason in available().items():
        for number in () if reason else AT_ONCE:
            yield (engine, number, *_rates(engine, number, seconds))


def _rates(engine: str, number: int, seconds: float) -> tuple[float, float, float, float, float, float]:
    with ThreadPoolExecutor(number) as threads:
        boxes = list(threads.map(lambda _: open_sandbox(Box(), engine=engine), range(number)))
        begun = time.perf_counter()
        runs = [each for times in threads.map(_runs, boxes) for each in times]
        throughput = len(runs) / (time.perf_counter() - begun)
        shells = [each for times in threads.map(_shells, boxes) for each in times]
        list(threads.map(Sandbox.close, boxes))
        begun, count = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            list(threads.map(lambda _: open_sandbox(Box(), engine=engine).close(), range(number)))
            count += number
        return *_spread(runs), *_spread(shells), throughput, count / (time.perf_counter() - begun)


def repairs(seconds: float) -> tuple[float, float]:
    """Return SWERepair's episodes a minute, of the oracle on shipped instances, and instances made a minute."""
    with closing(build("swe_repair", split="test")) as env:
        episodes = _per_minute(lambda index: golden.play(env, lambda each: each.oracle(), index=index), seconds)
    return episodes, _per_minute(lambda index: instances.made("train", "all", FIRST + index), seconds)


def _per_minute(act: Callable[[int], object], seconds: float) -> float:
    begun = time.perf_counter()
    for number in count():
        if number and time.perf_counter() - begun > SHARE * seconds:
            break
        act(number)
    return 60 * number / (time.perf_counter() - begun)


def _runs(sandbox: Sandbox) -> list[float]:
    return [_timed(lambda: sandbox.run("true")) for _ in range(COMMANDS)]


def _shells(sandbox: Sandbox) -> list[float]:
    shell = sandbox.shell()
    shell.run("true")
    return [_timed(lambda: shell.run("true")) for _ in range(COMMANDS)]


def _timed(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def _spread(times: list[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile in ms."""
    return statistics.median(times) * 1e3, statistics.quantiles(times, n=100)[98] * 1e3
