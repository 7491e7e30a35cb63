"""Where served environments are stepped: threads and processes, so that nothing waits on the event loop.

A lane does one call after the other, a few milliseconds of each client's in turn, so that nobody's long message holds
up the others. Inline tasks share a lane, in which a slow call is set aside; a task for threads has one of its own for
each session; tasks for processes share as many processes as there are cores.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any

from lmgym.errors import BackendError
from lmgym.rollout.env_handle import EnvHost
from lmgym.rollout.env_pool import Kind
from lmgym.rollout.workers import Remote as Process
from lmgym.serve.lane import GONE, Errand, Lane, Room

SLOW = 0.05  # seconds after which a call to an inline task is set aside, where others wait


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
        """Give up calls that take too long, and lanes where they cannot be set aside, for ever."""
        while True:
            await asyncio.sleep(min(self.timeout / 4, 5.0))
            error = BackendError(f"an environment did not answer within {self.timeout:g} seconds")
            for lane in self._all():
                lane.give_up(self.timeout, error)
                if lane.stuck(self.timeout) and not lane.overtake(self.timeout):
                    lane.kill(error)
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
            self._inline = self._inline or Lane(EnvHost(), slow=SLOW)
            return self._inline
        if kind == "thread":
            lane = Lane(EnvHost())
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
