"""A game of textarena in a process of its own, spoken to in lines of JSON."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from lmgym.errors import BackendError

WORKER = Path(__file__).with_name("worker.py")
PATIENCE = 120.0  # seconds without an answer, after which a process counts as hung
STARTING = 600.0  # the same for the first answer: many processes that start at once import textarena in turn
CHUNK = 1 << 16


class GameProcess:
    """A process that plays one game after the other; it starts with the first request."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, method: str, **arguments: Any) -> Any:
        """Return the answer to a request. Raises BackendError if the process is gone, hangs or fails."""
        patience = PATIENCE if self._process else STARTING
        process = self._process or self._start()
        request = json.dumps({"method": method, **arguments}).encode() + b"\n"
        assert process.stdin is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            answer = json.loads(self._line(process, patience))
        except (OSError, ValueError) as error:
            self.close()
            raise BackendError(f"the process of textarena is gone during {method!r}: {error}") from error
        if "error" in answer:
            self.close()
            raise BackendError(f"textarena failed in {method!r}: {answer['error']}")
        return answer["ok"]

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        return self._process

    def _line(self, process: subprocess.Popen[bytes], patience: float) -> bytes:
        assert process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], patience)
            chunk = os.read(process.stdout.fileno(), CHUNK) if ready else b""
            if not chunk:
                raise OSError("no answer" if not ready else f"it ended with exit status {process.wait(10)}")
            line += chunk
        return line
