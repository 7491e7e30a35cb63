"""The mark by which containers and control groups are known as ours, and as abandoned."""

from __future__ import annotations

import os
from pathlib import Path


def owner() -> str:
    """Return this process's mark: its number and its start, which no other process of this machine shares."""
    return f"{os.getpid()}-{_start(os.getpid())}"


def alive(mark: str) -> bool:
    """Return True if the process behind a mark still runs."""
    pid, _, start = mark.partition("-")
    return pid.isdigit() and start == _start(int(pid))


def _start(pid: int) -> str:
    """Return when a process started, in clock ticks since the machine did; "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
