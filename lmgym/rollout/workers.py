"""Workers run environments: in the caller's thread, in threads of their own or in spawned processes.

A worker takes calls for its slots and puts the answers into an outbox that all workers share. Each process is driven
by a thread here that waits for its answers, so time-outs and deaths are noticed at once and in one place.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, Protocol

from lmgym.errors import BackendError, LmgymError
from lmgym.rollout.env_handle import EnvHost, StepResult

STARTUP = 120.0  # seconds for a process to start; at least this for an environment to be made
SHUTDOWN = 5.0  # seconds for a worker to close its environments

Call = tuple[int, str, tuple[Any, ...]]  # slot, method of an EnvHandle, arguments


@dataclass(frozen=True)
class Fault:
    """Slots whose environments were lost by one cause."""

    slots: tuple[int, ...]
    error: BackendError


@dataclass(frozen=True)
class Bug:
    """An error other than a fault that a slot's environment raised: a bug, or bad input."""

    slot: int
    error: BaseException


class Outbox(Protocol):
    """Queue for the answers of workers, which put them from their own threads."""

    def put(self, answer: tuple[int, StepResult] | Fault | Bug, /) -> None:
        """Add an answer."""


def call_timeout(method: str, timeout: float | None) -> float | None:
    """Return the seconds to wait for the answer to a call; None: no limit."""
    return timeout if timeout is None or method != "open" else max(timeout, STARTUP)


class Lost(BackendError):
    """A worker was lost with all its environments."""


class Inline:
    """Runs calls of its slots at once in the caller's thread."""

    def __init__(self, outbox: Outbox) -> None:
        self.slots: set[int] = set()
        self._host = EnvHost()
        self._outbox = outbox

    def submit(self, call: Call) -> None:
        """Run a call now."""
        _answer(self._host, call, self.slots, self._outbox)

    def stop(self) -> None:
        """Close all environments."""
        self._host.close()


class Threaded:
    """Runs the calls of its slots in a thread, one after the other."""

    def __init__(self, host: EnvHost | ProcessHost, outbox: Outbox, timeout: float | None = None) -> None:
        self.slots: set[int] = set()
        self.timeout = timeout  # seconds for one call; None: no limit
        self._host = host
        self._outbox = outbox
        self._inbox: SimpleQueue[Call | None] = SimpleQueue()
        self._lock = threading.Lock()  # guards `_running`, so that `split` sees a call that has not returned
        self._running: tuple[int, str, float] | None = None  # slot and method of the running call, and its start
        self._thread = threading.Thread(target=self._run, name="lmgym-player", daemon=True)
        self._thread.start()

    def submit(self, call: Call | None) -> None:
        """Run a call after those before it; None ends the thread."""
        self._inbox.put(call)

    def overdue(self) -> bool:
        """Return True if the running call takes longer than it may."""
        running = self._running
        if running is None or (limit := call_timeout(running[1], self.timeout)) is None:
            return False
        return time.monotonic() - running[2] > limit

    def allow(self, timeout: float | None) -> None:
        """Raise the limit of a call in a process to `timeout` seconds; None: no limit."""
        if isinstance(self._host, ProcessHost):
            self._host.allow(timeout)

    def split(self, seconds: float) -> Threaded | None:
        """Return a new worker that takes over every slot but the one whose call takes longer than `seconds`.

        None if no call does.
        """
        with self._lock:
            if self._running is None or isinstance(self._host, ProcessHost):
                return None
            slot, _, since = self._running
            if time.monotonic() - since <= seconds:
                return None
            rest = Threaded(self._host.split(slot), self._outbox, self.timeout)
            rest.slots, self.slots = self.slots - {slot}, self.slots & {slot}
            calls = [self._inbox.get() for _ in range(self._inbox.qsize())]
        for call in calls:
            (self if call is not None and call[0] == slot else rest).submit(call)
        return rest

    @property
    def pid(self) -> int | None:
        """Id of the process behind the thread, if there is one."""
        return self._host.pid if isinstance(self._host, ProcessHost) else None

    def stop(self) -> None:
        """End the thread after the running call; a process is killed during its call."""
        if self._running is not None and isinstance(self._host, ProcessHost):
            self._host.kill()
        self._inbox.put(None)

    def join(self) -> None:
        """Wait for the thread; one that is stuck in a call is abandoned."""
        self._thread.join(timeout=SHUTDOWN if self._running is None else 0.1)

    def _run(self) -> None:
        while (call := self._inbox.get()) is not None:
            self._running = call[0], call[1], time.monotonic()
            try:
                _answer(self._host, call, self.slots, self._outbox)
            except BaseException as error:  # noqa: BLE001  (the engine's thread raises it)
                self._outbox.put(Bug(call[0], error))
            with self._lock:
                self._running = None
        self._host.close()


def _answer(host: EnvHost | ProcessHost, call: Call, slots: set[int], outbox: Outbox) -> None:
    """Run a call of one of the worker's `slots`; put the answer, if there is one, or the fault into the outbox."""
    try:
        result = host.call(*call)
    except BackendError as error:
        outbox.put(Fault(tuple(slots) if isinstance(error, Lost) else (call[0],), error))
    else:
        if result is not None:
            outbox.put((call[0], result))


class ProcessHost:
    """An EnvHost in a spawned process, which is started at first use and again after its death."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout  # seconds for one call; None: no limit
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    @property
    def pid(self) -> int | None:
        """Id of the process; None while there is none."""
        return self._process.pid if self._process else None

    def call(self, slot: int, method: str, arguments: tuple[Any, ...]) -> StepResult | None:
        """Run a call in the process. Raises Lost if it dies or does not answer in time."""
        if self._pipe is None and method != "open":
            return None  # the slot was lost with the last process
        try:
            pipe = self._pipe or self._started()
            pipe.send((slot, method, arguments))
            if not pipe.poll(limit := call_timeout(method, self._timeout)):
                raise TimeoutError(f"{method} took longer than {limit:g} seconds")
            raised, answer = pipe.recv()
        except (EOFError, OSError) as error:  # a TimeoutError is an OSError
            self._discard()
            raise Lost(f"an environment's process was lost: {error or 'it died'}") from error
        if raised:
            raise answer
        result: StepResult | None = answer
        return result

    def allow(self, timeout: float | None) -> None:
        """Raise the limit of a call to `timeout` seconds; None: no limit."""
        limited = self._timeout is not None and timeout is not None
        self._timeout = max(self._timeout or 0.0, timeout or 0.0) if limited else None

    def kill(self) -> None:
        """Kill the process; a call that waits for its answer raises Lost."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ValueError):  # closed meanwhile
                process.kill()

    def close(self) -> None:
        """Ask the process to close its environments and end; kill it if it does not."""
        if self._process is None or self._pipe is None:
            return
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        self._process.join(SHUTDOWN)
        self._discard()

    def _started(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        process = context.Process(target=_serve, args=(there,), name="lmgym-player", daemon=True)
        process.start()
        self._process = process
        there.close()
        if not self._pipe.poll(STARTUP):
            raise TimeoutError(f"it did not start within {STARTUP:g} seconds")
        self._pipe.recv()
        return self._pipe

    def _discard(self) -> None:
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if process is not None:
            process.kill()
            process.join()
            process.close()
        if pipe is not None:
            pipe.close()


def _serve(pipe: Connection) -> None:
    """Answer calls until the engine ends the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # handled by the engine's process
    host = EnvHost()
    pipe.send(None)
    with contextlib.suppress(EOFError, ConnectionError):  # the engine's process is gone
        while (call := pipe.recv()) is not None:
            try:
                answer = False, host.call(*call)
            except LmgymError as error:
                answer = True, error
            except BaseException:  # noqa: BLE001  (the engine's process raises it)
                answer = True, RuntimeError(f"an environment's process raised:\n{traceback.format_exc()}")
            pipe.send(answer)
    host.close()
