"""Desktops that wait for their next episode, so that only the first reset starts a display."""

from __future__ import annotations

import atexit
import os
import threading
from functools import cache
from multiprocessing import util

from lmgym.backends.desktop.session import SIZE, Desktop

MOST = 4  # desktops that wait


class DesktopPool:
    """The waiting desktops of this process; a forked child starts with none."""

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.close)
        util.Finalize(None, self.close, exitpriority=10)  # a child of multiprocessing runs no atexit

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Desktop] = []

    def take(self, size: tuple[int, int] = SIZE) -> Desktop:
        """Return a waiting desktop of this size, or a new one; end those that broke meanwhile."""
        with self._lock:
            broken = [desktop for desktop in self._waiting if not desktop.usable]
            self._waiting = [desktop for desktop in self._waiting if desktop not in broken]
            fitting = next((desktop for desktop in self._waiting if desktop.size == size), None)
            if fitting is not None:
                self._waiting.remove(fitting)
        for desktop in broken:
            desktop.close()
        return fitting or Desktop(size)

    def give_back(self, desktop: Desktop) -> None:
        """Keep a desktop for the next episode; end it if it is broken or enough wait."""
        with self._lock:
            keep = desktop.usable and desktop.owned and len(self._waiting) < MOST
            if keep:
                self._waiting.append(desktop)
        if not keep:
            desktop.close()

    def close(self) -> None:
        """End all waiting desktops."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for desktop in waiting:
            desktop.close()


@cache
def shared_pool() -> DesktopPool:
    """Return the pool of this process."""
    return DesktopPool()
