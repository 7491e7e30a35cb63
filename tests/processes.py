"""Processes: find them by name, and see whether they have ended."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def alive(pid: int | str) -> bool:
    """Return True if a process runs: it has not ended, whether or not its parent has heard of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def named(name: str, pids: Iterable[int]) -> list[int]:
    """Return the processes of `pids` that run a program of this name; any of them may end meanwhile."""
    found = []
    for pid in pids:
        with suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.append(pid)
    return found


def gone(pids: Iterable[int | str], seconds: float = 20) -> bool:
    """Wait for processes to end, and return whether all of them have."""
    pids, deadline = list(pids), time.monotonic() + seconds
    while any(map(alive, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
