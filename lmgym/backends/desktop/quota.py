"""A limit on what applications write into the folders of a desktop, which are the machine's own disk.

A tmpfs would need root, or a home that the owner cannot read; so a thread measures and ends what writes.
"""

from __future__ import annotations

import errno
import os
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Protocol

SPACE = 256 << 20  # bytes on disk of all files
FILES = 20_000  # files and folders
INTERVAL = 0.2  # seconds between two measurements


class Limited(Protocol):
    """A desktop, as far as its quota is concerned."""

    folders: list[Path]

    def end_programs(self) -> None:
        """End all applications, and what they started."""


def exceeds(folders: list[Path], *, space: int = SPACE, files: int = FILES) -> bool:
    """Return True if folders hold more bytes, or more files, than allowed; a link counts as itself."""
    waiting = list(map(os.fspath, folders))
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listing:
                entries = list(listing)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # so deep that it cannot be measured
                return True
            continue
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                files -= 1
                space -= 512 * entry.stat(follow_symlinks=False).st_blocks
            if space < 0 or files < 0:
                return True
    return False


def watch(desktop: Limited) -> None:
    """Start a thread that ends the applications of a desktop whenever its folders hold too much."""
    reference = weakref.ref(desktop)
    threading.Thread(target=_watch, args=(reference,), name="desktop-quota", daemon=True).start()


def _watch(reference: weakref.ref[Limited]) -> None:
    pause = threading.Event()
    while not pause.wait(INTERVAL):
        desktop = reference()
        if desktop is None or not all(folder.exists() for folder in desktop.folders):
            return
        if exceeds(desktop.folders):
            desktop.end_programs()
        del desktop
