"""Where served environments are stepped: threads and processes, so that nothing waits on the event loop.

A lane does one call after the other, a few milliseconds of each client's in turn, so that nobody's long message holds
up the others. Inline tasks share a lane; a task for threads has one of its own for each session; tasks for processes
share as many processes as there are cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from lmgym.backends import wire
from lmgym.errors import BackendError, LmgymError
from lmgym.rollout.players import Kind
from lmgym.rollout.stage import Host
from lmgym.rollout.workers import Lost, patience
from lmgym.rollout.workers import Remote as Process

MARGIN = 5.0  # seconds
SLICE = 0.005  # seconds after which the next client is on turn
GONE = "the environment was lost with others that lived where it did"

Errand = tuple[int, str, tuple[Any, ...]]  # slot, method of what lives there, arguments
Waiting = tuple[asyncio.AbstractEventLoop, "asyncio.Future[list[Any]]"]


class Full(LmgymError):
    """A call was not made: what its message's earlier calls are answered is as much as there may be."""


@dataclass
class Room:
    """What the answers to a message may still take, in whatever lanes they are made."""

    left: int  # characters; the answer that oversteps it is the last

    def take(self, answer: Any) -> None:
        """Count an answer, whose texts and pictures are nearly all of it."""
        if isinstance(answer, wire.Played):
            self.left -= len(answer.text) + sum(map(len, answer.images))


@dataclass(eq=False)
class Job:
    """Errands of a client's message in this lane."""

    client: str
    errands: Sequence[Errand]
    room: Room | None = None  # None: as much as they take
    waiting: Waiting | None = None  # None: nobody
    answers: list[Any] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether all errands were done."""
        return len(self.answers) == len(self.errands)

    def settle(self) -> None:
        """Hand the answers to who waits."""
        if self.waiting is not None:
            loop, future = self.waiting
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits for an answer
                loop.call_soon_threadsafe(_settle, future, self.answers)


class Lane:
    """A thread, and the environments that it alone touches, here or in a process that it drives."""

    def __init__(self, host: Host | Process) -> None:
        self.slots: set[int] = set()
        self.lost = False  # stuck or dead: its environments are gone
        self._host = host
        self._inbox: SimpleQueue[Job | None] = SimpleQueue()
        self._running = ("", 0.0)  # method of the call that is under way, and when it began
        self._waiting: dict[asyncio.Future[list[Any]], int] = {}  # for how many answers
        self._thread = threading.Thread(target=self._run, name="lmgym-lane", daemon=True)
        self._thread.start()

    def do(self, client: str, errands: Sequence[Errand], room: Room | None = None) -> asyncio.Future[list[Any]]:
        """Do all of this after what the client asked before; the result has an answer or an exception for each."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        self._waiting[future] = len(errands)
        future.add_done_callback(self._waiting.pop)
        self._inbox.put(Job(client, errands, room, (loop, future)))
        return future

    def leave(self, client: str, slot: int) -> None:
        """Close an environment in turn; nobody waits for it."""
        self.slots.discard(slot)
        self._inbox.put(Job(client, [(slot, "close", ())]))

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
        turns: dict[str, deque[Job]] = {}  # by client, who is on turn first
        latest, ending = "", False
        while turns or not ending:
            while not ending and not (turns and self._inbox.empty()):
                job = self._inbox.get()
                if job is None:
                    ending = True
                else:
                    turns.setdefault(job.client, deque()).append(job)
            if latest in turns:  # behind the others, those that came meanwhile included
                turns[latest] = turns.pop(latest)
            if turns:
                latest = next(iter(turns))
                self._slice(turns[latest])
                if not turns[latest]:
                    del turns[latest]
        self._host.close()

    def _slice(self, jobs: deque[Job]) -> None:
        """Do a client's errands for a while, one at least."""
        until = time.monotonic() + SLICE
        while jobs:
            job = jobs[0]
            if not job.done:
                answer = self._answer(job.errands[len(job.answers)], job.room)
                job.answers.append(answer)
            if job.done:
                jobs.popleft().settle()
            if time.monotonic() > until:
                return

    def _answer(self, errand: Errand, room: Room | None) -> Any:
        if self.lost:
            return BackendError(GONE)
        if room is not None and room.left <= 0 and errand[1] != "close":
            return Full()
        self._running = errand[1], time.monotonic()
        try:
            answer = self._host.call(*errand)
            if room is not None:
                room.take(answer)
            return answer
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

    async def run(self, lane: Lane, client: str, errands: Sequence[Errand], room: Room | None = None) -> list[Any]:
        """Do errands; where they take too long, or their process dies, the lane is lost."""
        answers = [BackendError(GONE)] * len(errands) if lane.lost else await lane.do(client, errands, room)
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

    def leave(self, lane: Lane, client: str, slot: int) -> None:
        """Close an environment; nobody waits for it."""
        lane.leave(client, slot)
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
