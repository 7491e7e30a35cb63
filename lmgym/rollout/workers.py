"""Where environments live: in the engine's own thread, in a thread of theirs, or in a spawned process.

A worker takes calls for the slots it has and puts answers into the outbox that all workers share. A process is
driven by a thread here, which waits for each answer: so a time-out or a death is noticed at once and at one place.
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

STARTUP = 120.0  # seconds at least for a process to come up, and for an environment to be made
FAREWELL = 5.0  # seconds for a worker to close its environments

Call = tuple[int, str, tuple[Any, ...]]  # slot, method of a EnvHandle, arguments


@dataclass(frozen=True)
class Fault:
    """Slots whose environments are lost, by one cause."""

    slots: tuple[int, ...]
    error: BackendError


class Outbox(Protocol):
    """Where workers put answers, from their own threads."""

    def put(self, answer: tuple[int, StepResult] | Fault | BaseException, /) -> None:
        """Add an answer."""


def patience(method: str, timeout: float | None) -> float | None:
    """Seconds to wait for the answer to a call."""
    return timeout if timeout is None or method != "open" else max(timeout, STARTUP)


class Lost(BackendError):
    """A worker with all its environments is gone."""


class Worker(Protocol):
    """Plays the environments of its slots."""

    slots: set[int]

    def submit(self, call: Call) -> None:
        """Do this, now or in turn."""

    def overdue(self, timeout: float) -> bool:
        """Whether a call takes longer than `timeout` seconds."""

    def stop(self) -> None:
        """Finish as soon as may be."""

    def join(self) -> None:
        """Wait for the end, but not for ever."""


class Inline:
    """Does everything at once, where it is asked to."""

    def __init__(self, outbox: Outbox) -> None:
        self.slots: set[int] = set()
        self._host = EnvHost()
        self._outbox = outbox

    def submit(self, call: Call) -> None:
        """Do this now."""
        slot = call[0]
        try:
            shown = self._host.call(*call)
        except BackendError as error:
            self._outbox.put(Fault((slot,), error))
            return
        if shown is not None:
            self._outbox.put((slot, shown))

    def overdue(self, timeout: float) -> bool:
        """Never: nothing could interrupt it."""
        return False

    def stop(self) -> None:
        """Close all environments."""
        self._host.close()

    def join(self) -> None:
        """Nothing to wait for."""


class Threaded:
    """Calls a host in a thread, one call after the other."""

    def __init__(self, host: EnvHost | ProcessHost, outbox: Outbox) -> None:
        self.slots: set[int] = set()
        self._host = host
        self._outbox = outbox
        self._inbox: SimpleQueue[Call | None] = SimpleQueue()
        self._lock = threading.Lock()  # guards `_running`, so that `split` sees a call that has not returned
        self._running: tuple[int, str, float] | None = None  # slot and method of the running call, and its start
        self._thread = threading.Thread(target=self._run, name="lmgym-player", daemon=True)
        self._thread.start()

    def submit(self, call: Call | None) -> None:
        """Do this when those before it are done."""
        self._inbox.put(call)

    def overdue(self, timeout: float) -> bool:
        """Whether the running call takes longer; a process is watched by its own thread."""
        running = self._running
        if running is None or isinstance(self._host, ProcessHost):
            return False
        _, method, since = running
        return time.monotonic() - since > (patience(method, timeout) or 0.0)

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
            rest = Threaded(self._host.split(slot), self._outbox)
            rest.slots, self.slots = self.slots - {slot}, self.slots & {slot}
            calls = [self._inbox.get() for _ in range(self._inbox.qsize())]
        for call in calls:
            (self if call is not None and call[0] == slot else rest).submit(call)
        return rest

    @property
    def pid(self) -> int | None:
        """Of the process behind it, if there is one."""
        return self._host.pid if isinstance(self._host, ProcessHost) else None

    def stop(self) -> None:
        """End the thread after the running call, which is cut short in a process."""
        if self._running is not None and isinstance(self._host, ProcessHost):
            self._host.kill()
        self._inbox.put(None)

    def join(self) -> None:
        """Wait for the thread; one that is stuck in a call is left to itself."""
        self._thread.join(timeout=FAREWELL if self._running is None else 0.1)

    def _run(self) -> None:
        try:
            while (call := self._inbox.get()) is not None:
                self._running = call[0], call[1], time.monotonic()
                self._answer(call)
                with self._lock:
                    self._running = None
        except BaseException as error:  # noqa: BLE001  (handed over: the engine's thread raises it)
            self._outbox.put(error)
        finally:
            self._host.close()

    def _answer(self, call: Call) -> None:
        slot = call[0]
        try:
            shown = self._host.call(*call)
        except Lost as error:
            self._outbox.put(Fault(tuple(self.slots), error))
        except BackendError as error:
            self._outbox.put(Fault((slot,), error))
        else:
            if shown is not None:
                self._outbox.put((slot, shown))


class ProcessHost:
    """A EnvHost in a spawned process, which is started when it is needed and again after its death."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, None while there is none."""
        return self._process.pid if self._process else None

    def call(self, slot: int, method: str, arguments: tuple[Any, ...]) -> StepResult | None:
        """Do it there. Raises Lost where the process died or did not answer in time."""
        if self._pipe is None and method != "open":
            return None  # the slot went down with the last process
        try:
            pipe = self._pipe or self._started()
            pipe.send((slot, method, arguments))
            if not pipe.poll(limit := patience(method, self._timeout)):
                raise TimeoutError(f"{method} took longer than {limit:g} seconds")
            answer = pipe.recv()
        except (EOFError, OSError) as error:  # a TimeoutError is an OSError
            self._bury()
            raise Lost(f"a player's process was lost: {error or 'it died'}") from error
        if isinstance(answer, LmgymError):
            raise answer
        if isinstance(answer, str):
            raise RuntimeError(f"a player's process raised:\n{answer}")
        shown: StepResult | None = answer
        return shown

    def kill(self) -> None:
        """Kill the process; whoever waits for its answer learns that it is lost."""
        process = self._process
        if process is not None:
            with contextlib.suppress(ValueError):  # buried meanwhile
                process.kill()

    def close(self) -> None:
        """Ask the process to close its environments and to end; kill it if it does not."""
        if self._process is None or self._pipe is None:
            return
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        self._process.join(FAREWELL)
        self._bury()

    def _started(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), name="lmgym-player", daemon=True)
        self._process.start()
        there.close()
        if not self._pipe.poll(STARTUP):
            raise TimeoutError(f"it did not come up in {STARTUP:g} seconds")
        self._pipe.recv()
        return self._pipe

    def _bury(self) -> None:
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if process is not None:
            process.kill()
            process.join()
            process.close()
        if pipe is not None:
            pipe.close()


def _serve(pipe: Connection) -> None:
    """Answer calls until the other end has enough or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine's process decides
    host = EnvHost()
    pipe.send(None)
    with contextlib.suppress(EOFError, ConnectionError):  # reset, where it was killed
        while (call := pipe.recv()) is not None:
            try:
                answer: StepResult | LmgymError | None = host.call(*call)
            except LmgymError as error:
                answer = error
            except BaseException:  # noqa: BLE001  (handed over: the engine's process raises it)
                pipe.send(traceback.format_exc())
                break
            pipe.send(answer)
    host.close()
