"""Where served environments are stepped: threads and processes, so that nothing waits on the event loop.

A worker does one call after the other, a few milliseconds of each client's in turn, so that nobody's long message holds
up the others. Inline tasks share a worker, in which a slow call is set aside; a task for threads has one of its own for
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
from lmgym.rollout.workers import ProcessHost as Process
from lmgym.serve.worker import GONE, AnswerBudget, Errand, SessionWorker

SLOW = 0.05  # seconds after which a call to an inline task is set aside, where others wait


class SessionWorkers:
    """All workers of a server."""

    def __init__(self, *, timeout: float, processes: int | None = None) -> None:
        self.timeout = timeout  # seconds of one call
        self.processes = processes or os.cpu_count() or 1
        self._inline: SessionWorker | None = None
        self._own: set[SessionWorker] = set()
        self._shared: list[SessionWorker] = []
        self._slots = itertools.count()

    def place(self, kind: Kind) -> tuple[SessionWorker, int]:
        """A worker for one more environment, and its slot there."""
        worker = self._worker_for(kind)
        slot = next(self._slots)
        worker.slots.add(slot)
        return worker, slot

    async def run(
        self, worker: SessionWorker, client: str, errands: Sequence[Errand], budget: AnswerBudget | None = None
    ) -> list[Any]:
        """Do errands; where they take too long, or their process dies, the worker is lost."""
        answers = [BackendError(GONE)] * len(errands) if worker.lost else await worker.do(client, errands, budget)
        if worker.lost:
            self._forget(worker)
        return answers

    async def watch(self) -> None:
        """Give up calls that take too long, and workers where they cannot be set aside, for ever."""
        while True:
            await asyncio.sleep(min(self.timeout / 4, 5.0))
            error = BackendError(f"an environment did not answer within {self.timeout:g} seconds")
            for worker in self._all():
                worker.give_up(self.timeout, error)
                if worker.stuck(self.timeout) and not worker.overtake(self.timeout):
                    worker.kill(error)
                    self._forget(worker)

    def leave(self, worker: SessionWorker, client: str, slot: int) -> None:
        """Close an environment; nobody waits for it."""
        worker.leave(client, slot)
        if worker in self._own:
            self._own.discard(worker)
            worker.stop()

    def close(self, seconds: float = 5.0) -> None:
        """Close everything that can be closed in this time."""
        workers = list(self._all())
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join(seconds / len(workers))

    def _worker_for(self, kind: Kind) -> SessionWorker:
        if kind == "inline":
            self._inline = self._inline or SessionWorker(EnvHost(), slow=SLOW)
            return self._inline
        if kind == "thread":
            worker = SessionWorker(EnvHost())
            self._own.add(worker)
            return worker
        if len(self._shared) < self.processes:
            self._shared.append(SessionWorker(Process(self.timeout)))
            return self._shared[-1]
        return min(self._shared, key=lambda each: len(each.slots))

    def _forget(self, worker: SessionWorker) -> None:
        """A lost worker takes no more environments; where its thread still lives, it ends."""
        worker.stop()
        self._own.discard(worker)
        if worker in self._shared:
            self._shared.remove(worker)
        if worker is self._inline:
            self._inline = None

    def _all(self) -> Iterable[SessionWorker]:
        return [*([self._inline] if self._inline else []), *self._own, *self._shared]
