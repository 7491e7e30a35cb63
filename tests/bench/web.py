"""Speeds of browser tasks: MiniWoB++ episodes in 1, 8 and 16 contexts at once, with and without pixels."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lmgym.backends.browser.process import descendants
from lmgym.env.registry import build

PAGES = ("click-button", "click-checkboxes", "enter-text", "click-option", "use-slider", "read-table")
CONTEXTS = (1, 8, 16)
VIEWS = {
    "short HTML": {"observe": "html", "pixels": "none"},
    "accessibility tree": {"observe": "axtree", "pixels": "none"},
    "picture": {"observe": "none", "pixels": "screenshot"},
}


def rates(seconds: float) -> Iterator[tuple[str, int, float, float, float]]:
    """Yield (view, contexts, steps/s, resets/s of the same contexts, processor ms a step of all processes together)."""
    for view, options in VIEWS.items():
        for contexts in CONTEXTS:
            yield (view, contexts, *_rate(contexts, seconds, options))


def _rate(contexts: int, seconds: float, options: dict[str, Any]) -> tuple[float, float, float]:
    """Return steps/s and resets/s of that many environments, one thread each, and the processor ms of a step."""
    envs = [build(f"lmgym/MiniWoB-{PAGES[i % len(PAGES)]}-v0", max_turns=100_000, **options) for i in range(contexts)]
    for index, env in enumerate(envs):
        env.reset(seed=0, options={"index": index})
    before, start = _processor(), time.perf_counter()
    steps = _shared(envs, seconds, lambda env, number: env.step(f"mouse_move({20 + number % 100}, {60 + number % 90})"))
    taken = (_processor() - before) / (steps * (time.perf_counter() - start)) * 1e3
    resets = _shared(envs, seconds, lambda env, number: env.reset(seed=0, options={"index": number % 1000}))
    for env in envs:
        env.close()
    return steps, resets, taken


def _processor() -> float:
    """Return the processor seconds of this process and its children: Playwright's driver and the browser."""
    ticks = 0
    started = (path.read_text().split() for path in Path("/proc/self/task").glob("*/children"))  # by any thread
    children = [int(child) for each in started for child in each]
    for pid in (os.getpid(), *children, *(below for child in children for below in descendants(child))):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _shared(envs: list[Any], seconds: float, act: Any) -> float:
    """Return how often per second all environments together do `act`."""
    counts = [0] * len(envs)
    start = time.perf_counter()
    end = start + seconds

    def work(place: int) -> None:
        for number in itertools.count():
            if time.perf_counter() > end:
                return
            act(envs[place], number)
            counts[place] += 1

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(envs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)
