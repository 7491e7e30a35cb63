"""The clock of a desktop's applications: every episode begins at the same time.

libfaketime answers when a program asks for the time of day. The times of files that programs write, and of timers, are
the machine's; so is the clock of Chromium, which shows no window with libfaketime.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # a Monday
LIBRARY = next(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), "libfaketimeMT.so.1")


def variables() -> dict[str, str]:
    """Return the environment of programs whose clock shows START now and goes on from there."""
    return {
        "LD_PRELOAD": LIBRARY,
        "FAKETIME": f"{START.timestamp() - time.time():+.3f}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",  # not all programs ask in the way that it could change
    }


def date_files(home: Path) -> None:
    """Set the times of a folder and of all in it to START."""
    moment = START.timestamp()
    for folder, _, files in os.walk(home, topdown=False):
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            os.utime(path, (moment, moment), follow_symlinks=False)
