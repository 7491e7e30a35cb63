"""Worker processes that replay episodes in parallel, inside an isolating sandbox where actions are code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from lmgym.errors import BackendError

TRIES = 3  # per episode, if its environment breaks
TIMEOUT = 600.0  # seconds per episode
QUEUED = 4  # episodes per worker that wait beside the one being replayed
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)  # variables withheld from workers
OURS = (sys.prefix, str(Path(__file__).parents[2]))  # mounted again, since they may lie in /tmp
BUBBLE = (  # no network, no host processes, and only a temporary folder to write to
    *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc", "--tmpfs", "/tmp"),
    *(word for path in OURS for word in ("--ro-bind", path, path)),
)


def can_isolate() -> bool:
    """Return True if bubblewrap is installed and may create namespaces."""
    if shutil.which(BUBBLE[0]) is None:
        return False
    return subprocess.run([*BUBBLE, "true"], capture_output=True, check=False).returncode == 0


class WorkerLost(BackendError):
    """A worker process died or hung."""


class WorkerProcess:
    """One `lmgym.board.replay` process."""

    def __init__(self, order: dict[str, Any], *, isolated: bool, timeout: float) -> None:
        self.timeout = timeout
        self.hung = False
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        environment = {name: value for name, value in os.environ.items() if not SECRET.search(name)}
        command = [*(BUBBLE if isolated else ()), sys.executable, "-m", "lmgym.board.replay"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment
        )
        try:
            self._write(json.dumps(order).encode())
        except WorkerLost:
            self.close()
            raise

    def ask(self, line: bytes) -> dict[str, Any]:
        """Return the answer to an episode. Raises WorkerLost where the process dies or exceeds the time limit."""
        timer = threading.Timer(self.timeout, self._give_up)
        timer.start()
        try:
            self._write(line)
            answer = self.process.stdout.readline() if self.process.stdout else b""
        finally:
            timer.cancel()
        if not answer:
            raise WorkerLost(self._complaint())
        return dict(json.loads(answer))

    def close(self) -> None:
        """End the process."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()

    def _write(self, line: bytes) -> None:
        try:
            if self.process.stdin is not None:
                self.process.stdin.write(line + b"\n")
                self.process.stdin.flush()
        except BrokenPipeError:
            raise WorkerLost(self._complaint()) from None

    def _give_up(self) -> None:
        self.hung = True
        self.process.kill()

    def _complaint(self) -> str:
        self.process.wait()
        if self.hung:
            return f"an episode took longer than {self.timeout:g} seconds"
        self.errors.seek(0)
        lines = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        return f"a worker ended with code {self.process.returncode}: {lines[-1] if lines else 'no message'}"


class WorkerPool:
    """Worker processes, one per core unless told otherwise, each started when first needed."""

    def __init__(
        self, order: dict[str, Any], *, workers: int | None = None, isolated: bool = False, timeout: float = TIMEOUT
    ) -> None:
        self.order, self.isolated, self.timeout = order, isolated, timeout
        self.count = workers or len(os.sched_getaffinity(0))
        self._idle: SimpleQueue[WorkerProcess | None] = SimpleQueue()
        for _ in range(self.count):
            self._idle.put(None)

    def run(self, lines: Iterable[bytes]) -> Generator[tuple[int, dict[str, Any]], None, None]:
        """Yield the number and answer of each line, as they arrive.

        Raises BackendError where the environment of an episode breaks every time.
        """
        waiting: set[Future[tuple[int, dict[str, Any]]]] = set()
        threads = ThreadPoolExecutor(self.count)
        try:
            for number, line in enumerate(lines):
                waiting.add(threads.submit(self._ask, number, line))
                if len(waiting) >= self.count * (1 + QUEUED):
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            threads.shutdown(cancel_futures=True)
            for _ in range(self.count):
                if (worker := self._idle.get()) is not None:
                    worker.close()
                self._idle.put(None)

    def _ask(self, number: int, line: bytes) -> tuple[int, dict[str, Any]]:
        complaint = ""
        for _ in range(TRIES):
            worker = self._idle.get()
            try:
                worker = worker or WorkerProcess(self.order, isolated=self.isolated, timeout=self.timeout)
                answer = worker.ask(line)
            except WorkerLost as error:
                complaint = str(error)
                if worker is not None:
                    worker.close()
                worker = None
            else:
                if "broke" not in answer:
                    return number, answer
                complaint = str(answer["broke"])
            finally:
                self._idle.put(worker)
        raise BackendError(f"episode {number} could not be replayed in {TRIES} tries: {complaint}")
