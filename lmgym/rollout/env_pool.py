"""A pool of environments: each has a slot, is called by it and serves one episode after the other."""

from __future__ import annotations

import os
from queue import Empty, SimpleQueue
from typing import Any, Literal, Protocol

from lmgym.errors import BackendError
from lmgym.rollout.env_handle import EnvHost, StepResult
from lmgym.rollout.workers import Bug, Fault, Inline, Outbox, ProcessHost, Threaded

Kind = Literal["inline", "thread", "process", "shared"]  # shared: one thread, which a slow call leaves
Worker = Inline | Threaded


class Opener(Protocol):
    """A description of an environment that a worker can open."""

    def key(self) -> str:
        """Return a name that environments of equal description share."""

    def opened(self) -> Any:
        """Open the environment; called by its worker."""


class EnvPool:
    """Environments in this thread, in threads and in processes behind one interface.

    `acquire` a slot, `send` it the calls of an EnvHandle by name, `collect` the answers, `release` it for the next
    episode or `retire` it. At most `spare` idle environments are kept.
    """

    def __init__(
        self,
        *,
        timeout: float | None = None,
        processes: int | None = None,
        spare: int = 64,
        outbox: Outbox | None = None,
    ) -> None:
        """Answers go to `outbox` if there is one; else `collect` returns them."""
        self.timeout = timeout  # seconds for one call
        self.processes = processes or os.cpu_count() or 1
        self.spare = spare
        self.busy: set[int] = set()  # slots whose answer is due
        self._answers: SimpleQueue[tuple[int, StepResult] | Fault | Bug] = SimpleQueue()
        self._outbox: Outbox = outbox or self._answers
        self._shared: Threaded | None = None
        self._inline = Inline(self._outbox)
        self._remote: list[Threaded] = []
        self._threads: list[Threaded] = []
        self._worker: dict[int, Worker] = {}  # by slot
        self._name: dict[int, tuple[Kind, str]] = {}  # kind and setting by slot
        self._idle: dict[int, tuple[Kind, str]] = {}  # by slot, the longest idle first
        self._slots = 0

    def acquire(self, setting: Opener, kind: Kind, *, timeout: float = 0.0) -> int:
        """Return a slot with an idle or new environment; `timeout` seconds raise the limit of its calls."""
        name = (kind, setting.key())
        for slot, idle in self._idle.items():
            if idle == name:
                del self._idle[slot]
                return slot
        if len(self._idle) >= self.spare:
            self.retire(next(iter(self._idle)))
        slot, self._slots = self._slots, self._slots + 1
        limit = None if self.timeout is None else max(self.timeout, timeout)
        worker: Worker = self._inline
        if kind == "thread":
            worker = Threaded(EnvHost(), self._outbox, limit)
            self._threads.append(worker)
        elif kind == "shared":
            worker = self._shared = self._shared or Threaded(EnvHost(), self._outbox, self.timeout)
        elif kind == "process" and len(self._remote) < self.processes:
            worker = Threaded(ProcessHost(limit), self._outbox)
            self._remote.append(worker)
        elif kind == "process":
            worker = min(self._remote, key=lambda remote: len(remote.slots))
            worker.allow(limit)
        self._worker[slot] = worker
        worker.slots.add(slot)
        self._name[slot] = name
        worker.submit((slot, "open", (setting,)))
        return slot

    def send(self, slot: int, method: str, *arguments: Any) -> None:
        """Call a method of the slot's EnvHandle; collect its answer later."""
        self.busy.add(slot)
        self._worker[slot].submit((slot, method, arguments))

    def collect(self, wait: float = 0.0) -> list[tuple[int, StepResult] | Fault]:
        """Return the answers so far, after waiting up to `wait` seconds for the first; slots of a Fault are retired.

        Raises any exception of an environment that is not a BackendError: it is a task's bug or bad input.
        """
        answers: list[tuple[int, StepResult] | Fault] = []
        while True:
            try:
                answer = self._answers.get(timeout=wait) if wait and not answers else self._answers.get_nowait()
            except Empty:
                return answers or [*self.overdue()]
            if isinstance(answer, Bug):
                if answer.slot in self._worker:
                    raise answer.error
                continue  # its slot was given up before
            if isinstance(answer, Fault):
                self._retire_all(answer)
            else:
                self.busy.discard(answer[0])
            answers.append(answer)

    def release(self, slot: int) -> None:
        """Keep the slot's environment for the next episode of its setting."""
        self._idle[slot] = self._name[slot]

    def retire(self, slot: int) -> None:
        """Close the slot's environment for good."""
        self._idle.pop(slot, None)
        self.busy.discard(slot)
        self._name.pop(slot, None)
        worker = self._worker.pop(slot, None)
        if worker is None:
            return
        worker.slots.discard(slot)
        worker.submit((slot, "close", ()))
        if isinstance(worker, Threaded) and worker in self._threads:
            worker.stop()
            self._threads.remove(worker)

    def overdue(self) -> list[Fault]:
        """Return a fault for each thread whose call has timed out; the thread itself is abandoned."""
        if self.timeout is None:
            return []
        faults = [
            Fault(
                tuple(worker.slots),
                BackendError(f"a call to an environment took longer than {worker.timeout:g} seconds"),
            )
            for worker in self._threads
            if worker.overdue()
        ]
        return [self._retire_all(fault) for fault in faults]

    def unblock(self, seconds: float) -> None:
        """Leave the shared thread to a call that takes longer than `seconds`; the other environments get a new one."""
        blocked = self._shared
        if blocked is not None and (rest := blocked.split(seconds)) is not None:
            if blocked.slots:
                self._threads.append(blocked)
            else:  # the slow call closes an environment that was retired
                blocked.stop()
            self._shared = rest
            self._worker |= dict.fromkeys(rest.slots, rest)

    def pids(self) -> list[int]:
        """Return the ids of the running processes."""
        return [worker.pid for worker in self._remote if worker.pid is not None]

    def close(self) -> None:
        """Close all environments."""
        self._inline.stop()
        threads = [*self._threads, *self._remote, *([self._shared] if self._shared else [])]
        for thread in threads:
            thread.stop()
        for thread in threads:
            thread.join()

    def _retire_all(self, fault: Fault) -> Fault:
        for slot in fault.slots:
            self.retire(slot)
        return fault
