"""Worker processes that replay episodes side by side, inside an isolating sandbox where actions are code."""

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
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from lmgym.errors import BackendError

TRIES = 3  # of an episode whose environment breaks
TIMEOUT = 600.0  # seconds of one episode
WAITING = 4  # episodes handed out beyond those at work, a worker
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)  # variables that workers do not get
OURS = (sys.prefix, str(Path(__file__).parents[2]))  # they may lie in /tmp
BUBBLE = (  # no network, no host processes, nothing to write to but a folder that vanishes
    *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
    *(
        word for path in (sys.prefix, str(Path(__file__).parents[2])) for word in ("--ro-bind", path, path)
    ),  # in /tmp too
)


def isolating() -> bool:
    """Whether this machine can isolate a process: bubblewrap is there and may make namespaces."""
    if shutil.which(BUBBLE[0]) is None:
        return False
    return subprocess.run([*BUBBLE, "true"], capture_output=True, check=False).returncode == 0


class WorkerLost(BackendError):
    """A worker died or hung."""


class WorkerProcess:
    """One worker process."""

    def __init__(self, order: dict[str, Any], *, isolated: bool, timeout: float) -> None:
        self.timeout = timeout
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        environment = {name: value for name, value in os.environ.items() if not SECRET.search(name)}
        command = [*(BUBBLE if isolated else ()), sys.executable, "-m", "lmgym.board.worker"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment
        )
        self.hung = False
        try:
            self._write(json.dumps(order).encode())
        except WorkerLost:
            self.close()
            raise

    def ask(self, line: bytes) -> dict[str, Any]:
        """What comes of an episode. Raises Broken where the process dies, or takes longer than the time limit."""
        watch = threading.Timer(self.timeout, self._give_up)
        watch.start()
        try:
            self._write(line)
            answer = self.process.stdout.readline() if self.process.stdout else b""
        finally:
            watch.cancel()
        if not answer:
            raise WorkerLost(self._complaint())
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the process."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue  # it is gone already
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
        words = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        return f"a worker ended with code {self.process.returncode}: {words[-1] if words else 'no word'}"


class WorkerPool:
    """As many workers as asked for, made when first needed."""

    def __init__(
        self, order: dict[str, Any], *, workers: int | None = None, isolated: bool = False, timeout: float = TIMEOUT
    ) -> None:
        self.order, self.isolated, self.timeout = order, isolated, timeout
        self.count = workers or len(os.sched_getaffinity(0))
        self._idle: SimpleQueue[WorkerProcess | None] = SimpleQueue()
        for _ in range(self.count):
            self._idle.put(None)

    def run(self, lines: Iterable[bytes]) -> Generator[tuple[int, dict[str, Any]], None, None]:
        """Yield place and answer of each line, as they come. Raises BackendError where an episode breaks every time."""
        waiting: set[Future[tuple[int, dict[str, Any]]]] = set()
        threads = ThreadPoolExecutor(self.count)
        try:
            for place, line in enumerate(lines):
                waiting.add(threads.submit(self._ask, place, line))
                if len(waiting) >= self.count * (1 + WAITING):
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            threads.shutdown(cancel_futures=True)
            self._close()

    def _ask(self, place: int, line: bytes) -> tuple[int, dict[str, Any]]:
        complaint = ""
        for _ in range(TRIES):
            remote = self._idle.get()
            try:
                remote = remote or WorkerProcess(self.order, isolated=self.isolated, timeout=self.timeout)
                answer = remote.ask(line)
            except WorkerLost as error:
                complaint = str(error)
                if remote is not None:
                    remote.close()
                remote = None
            else:
                if "broke" not in answer:
                    return place, answer
                complaint = str(answer["broke"])
            finally:
                self._idle.put(remote)
        raise BackendError(f"episode {place} could not be replayed, {TRIES} times: {complaint}")

    def _close(self) -> None:
        for _ in range(self.count):
            remote = self._idle.get()
            if remote is not None:
                remote.close()
            self._idle.put(None)
