"""Sandboxes that stand ready: while one is used, the next ones of the same box start in the background."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from lmgym.backends.sandbox.limits import Box
from lmgym.backends.sandbox.sandbox import Sandbox
from lmgym.errors import LmgymError

BOXES = 4  # kinds of boxes that are kept ready: those used last
STARTERS = 4  # sandboxes that start at the same time


class WarmPool:
    """Up to `size` started sandboxes of each of the boxes used last, for one process."""

    def __init__(self, start: Callable[[Box], Sandbox], size: int) -> None:
        self.start, self.size, self.process = start, size, os.getpid()
        self._ready: OrderedDict[str, list[Future[Sandbox]]] = OrderedDict()
        self._threads = ThreadPoolExecutor(STARTERS, thread_name_prefix="warm-sandbox")
        self._lock = threading.Lock()
        atexit.register(self.close)

    def take(self, box: Box) -> Sandbox:
        """Return a sandbox that no other has used, and start others in its place."""
        key = repr(box)
        with self._lock:
            waiting = self._ready.pop(key, [])
            first = waiting.pop(0) if waiting else None
            waiting += [self._threads.submit(self.start, box) for _ in range(self.size - len(waiting))]
            self._ready[key] = waiting
            unused = self._ready.popitem(last=False)[1] if len(self._ready) > BOXES else []
        for each in unused:
            _discard(each)
        return self.start(box) if first is None else first.result()

    def close(self) -> None:
        """End the sandboxes that were not taken."""
        if self.process != os.getpid():  # a forked process has not started them
            return
        atexit.unregister(self.close)
        with self._lock:
            waiting = [each for futures in self._ready.values() for each in futures]
            self._ready.clear()
        for each in waiting:
            _discard(each)
        self._threads.shutdown()


def _discard(future: Future[Sandbox]) -> None:
    if not future.cancel():
        future.add_done_callback(_end)


def _end(future: Future[Sandbox]) -> None:
    with contextlib.suppress(LmgymError):  # it did not start
        future.result().close()
