"""Where served environments are stepped: threads and processes, so that nothing waits on the event loop.

A lane does one call after the other. Inline tasks share one, which does all of a message's steps in one go; a task for
threads has one of its own for each session; tasks for processes share as many processes as there are cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
import time
from collections.abc import Iterable, Sequence
from queue import SimpleQueue
from typing import Any

from lmgym.errors import BackendError
from lmgym.rollout.players import Kind
from lmgym.rollout.stage import Host
from lmgym.rollout.workers import Lost, patience
from lmgym.rollout.workers import Remote as Process

MARGIN = 5.0  # seconds
GONE = "the environment was lost with others that lived where it did"

Errand = tuple[int, str, tuple[Any, ...]]  # slot, method of what lives there, arguments
Waiting = tuple[asyncio.AbstractEventLoop, "asyncio.Future[list[Any]]"]


class Lane:
    """A thread, and the environments that it alone touches, here or in a process that it drives."""

    def __init__(self, host: Host | Process) -> None:
        self.slots: set[int] = set()
        self.lost = False  # stuck or dead: its environments are gone
        self._host = host
        self._inbox: SimpleQueue[tuple[Sequence[Errand], Waiting | None] | None] = SimpleQueue()
        self._running = ("", 0.0)  # method of the call that is under way, and when it began
        self._waiting: dict[asyncio.Future[list[Any]], int] = {}  # for how many answers
        self._thread = threading.Thread(target=self._run, name="lmgym-lane", daemon=True)
        self._thread.start()

    def do(self, errands: Sequence[Errand]) -> asyncio.Future[list[Any]]:
        """Do all of this in turn; the result has an answer or an exception for each."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        self._waiting[future] = len(errands)
        future.add_done_callback(self._waiting.pop)
        self._inbox.put((errands, (loop, future)))
        return future

    def leave(self, slot: int) -> None:
        """Close an environment in turn; nobody waits for it."""
        self.slots.discard(slot)
        self._inbox.put(([(slot, "close", ())], None))

    def stuck(self, timeout: float) -> bool:
        """Whether it is lost, or a call takes longer than `timeout` seconds; a process has more, for its own clock."""
        method, since = self._running
        limit = patience(method, timeout) or timeout
        limit += MARGIN if isinstance(self._host, Process) else 0.0
        return self.lost or (bool(method) and time.monotonic() - since > limit)

    def stop(self) -> None:
        """End after what is under way."""
        self._inbox.put(None)

    def kill(self, error: BackendError) -> None:
        """Give up what is under way: whoever waits is told, a process dies, a thread is left to itself."""
        self.lost = True
        for future, count in list(self._waiting.items()):
            _settle(future, [error] * count)
        if isinstance(self._host, Process):
            self._host.kill()
        self.stop()

    def join(self, seconds: float) -> None:
        """Wait for the end, but not for ever."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while (job := self._inbox.get()) is not None:
            errands, waiting = job
            answers = [self._answer(errand) for errand in errands]
            if waiting is None:
                continue
            loop, future = waiting
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits for an answer
                loop.call_soon_threadsafe(_settle, future, answers)
        self._host.close()

    def _answer(self, errand: Errand) -> Any:
        if self.lost:
            return BackendError(GONE)
        self._running = errand[1], time.monotonic()
        try:
            return self._host.call(*errand)
        except Lost as error:
            self.lost = True
            return error
        except BaseException as error:  # noqa: BLE001  (handed over: whoever asked is told that it broke)
            return error
        finally:
            self._running = ("", 0.0)


def _settle(future: asyncio.Future[list[Any]], answers: list[Any]) -> None:
    if not future.done():
        future.set_result(answers)


class Lanes:
    """All lanes of a server."""

    def __init__(self, *, timeout: float, processes: int | None = None) -> None:
        self.timeout = timeout  # seconds of one call
        self.processes = processes or os.cpu_count() or 1
        self._inline: Lane | None = None
        self._own: set[Lane] = set()
        self._shared: list[Lane] = []
        self._slots = itertools.count()

    def place(self, kind: Kind) -> tuple[Lane, int]:
        """A lane for one more environment, and its slot there."""
        lane = self._lane(kind)
        slot = next(self._slots)
        lane.slots.add(slot)
        return lane, slot

    async def run(self, lane: Lane, errands: Sequence[Errand]) -> list[Any]:
        """Do errands; where they take too long, or their process dies, the lane is lost."""
        answers = [BackendError(GONE)] * len(errands) if lane.lost else await lane.do(errands)
        if lane.lost:
            self._forget(lane)
        return answers

    async def watch(self) -> None:
        """Give up lanes in which a call takes too long, for ever."""
        while True:
            await asyncio.sleep(min(self.timeout / 4, 5.0))
            for lane in self._all():
                if lane.stuck(self.timeout):
                    lane.kill(BackendError(f"an environment did not answer within {self.timeout:g} seconds"))
                    self._forget(lane)

    def leave(self, lane: Lane, slot: int) -> None:
        """Close an environment; nobody waits for it."""
        lane.leave(slot)
        if lane in self._own:
            self._own.discard(lane)
            lane.stop()

    def close(self, seconds: float = 5.0) -> None:
        """Close everything that can be closed in this time."""
        lanes = list(self._all())
        for lane in lanes:
            lane.stop()
        for lane in lanes:
            lane.join(seconds / len(lanes))

    def _lane(self, kind: Kind) -> Lane:
        if kind == "inline":
            self._inline = self._inline or Lane(Host())
            return self._inline
        if kind == "thread":
            lane = Lane(Host())
            self._own.add(lane)
            return lane
        if len(self._shared) < self.processes:
            self._shared.append(Lane(Process(self.timeout)))
            return self._shared[-1]
        return min(self._shared, key=lambda each: len(each.slots))

    def _forget(self, lane: Lane) -> None:
        """A lost lane takes no more environments; where its thread still lives, it ends."""
        lane.stop()
        self._own.discard(lane)
        if lane in self._shared:
            self._shared.remove(lane)
        if lane is self._inline:
            self._inline = None

    def _all(self) -> Iterable[Lane]:
        return [*([self._inline] if self._inline else []), *self._own, *self._shared]
