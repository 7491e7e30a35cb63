"""Speeds and memory of desktops: start, warm reset, and actions with a screenshot or a tree, one to eight at once."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lmgym.backends.desktop import view
from lmgym.backends.desktop.inputs import Input, perform
from lmgym.backends.desktop.session import Desktop, Launch

DESKTOPS = (1, 4, 8)
RESETS = 3  # of each desktop
EDITOR = Launch("mousepad", ("note.txt",), "note.txt")
SHEET = Launch("soffice", ("--calc",), "Calc")
LETTER = Input("type", text="a")


def rows(seconds: float) -> Iterator[tuple[str, ...]]:
    """Yield a row per number of desktops: seconds to start and to reset, actions/s, and MiB of each desktop."""
    for count in DESKTOPS:
        start = time.perf_counter()
        desktops = [Desktop() for _ in range(count)]
        started = (time.perf_counter() - start) / count
        try:
            resets = _resets(desktops, EDITOR)
            pictures = _actions(desktops, seconds, lambda desktop: desktop.screenshot())
            trees = _actions(desktops, seconds, lambda desktop: view.elements(desktop.tree(), desktop.size))
            memory = sum(map(_memory, desktops)) / count
            sheets = _resets(desktops, SHEET) if count == 1 else None
        finally:
            for desktop in desktops:
                desktop.close()
        calc = f"{sheets:.2f}" if sheets is not None else ""
        yield (str(count), f"{started:.2f}", f"{resets:.2f}", calc, f"{pictures:.1f}", f"{trees:.1f}", f"{memory:,.0f}")


def _resets(desktops: list[Desktop], launch: Launch) -> float:
    """Return the median seconds of a reset with one application, all desktops at once."""
    taken: list[float] = []

    def work(desktop: Desktop) -> None:
        for _ in range(RESETS + 1):
            start = time.perf_counter()
            desktop.reset(lambda home: (home / "note.txt").write_text(""), [launch])
            taken.append(time.perf_counter() - start)

    _together(desktops, work)
    return statistics.median(taken)


def _actions(desktops: list[Desktop], seconds: float, observe: Callable[[Desktop], object]) -> float:
    """Return how often per second all desktops together type a letter, rest and are observed."""
    counts: list[int] = []
    start = time.perf_counter()

    def work(desktop: Desktop) -> None:
        count = 0
        while time.perf_counter() < start + seconds:
            perform(LETTER, desktop)
            observe(desktop)
            count += 1
        counts.append(count)

    _together(desktops, work)
    return sum(counts) / (time.perf_counter() - start)


def _together(desktops: list[Desktop], work: Callable[[Desktop], None]) -> None:
    threads = [threading.Thread(target=work, args=(desktop,)) for desktop in desktops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _memory(desktop: Desktop) -> float:
    """Return the proportional set size of a desktop's processes, in MiB."""
    total = 0
    for pid in desktop.processes():
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024
