"""Messages between a sandbox's owner and the agent inside: a JSON header and bytes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import struct
import subprocess
import time
from collections.abc import Mapping
from typing import Any, Protocol

from lmgym.errors import BackendError

LONGEST = 64 << 20  # bytes of a message; the agent keeps to 1 MiB and an output's limit


class Channel(Protocol):
    """A running agent's standard streams."""

    def write(self, data: bytes) -> None:
        """Send bytes. Raises BackendError if the agent is gone."""

    def read(self, size: int, deadline: float) -> bytes:
        """Return exactly `size` bytes; raise BackendError if they do not come by `deadline` (of time.monotonic)."""

    def close(self) -> None:
        """End the sandbox; leave nothing behind."""


def send(channel: Channel, header: Mapping[str, Any], payload: bytes = b"") -> None:
    """Send a message."""
    text = json.dumps(header).encode()
    channel.write(struct.pack(">II", len(text), len(payload)) + text + payload)


def receive(channel: Channel, timeout: float) -> tuple[dict[str, Any], bytes]:
    """Return the next message; raise BackendError if it does not come within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    sizes = struct.unpack(">II", channel.read(8, deadline))
    if max(sizes) > LONGEST:
        raise BackendError(f"the sandbox sent a message of {max(sizes)} bytes; {LONGEST} are allowed")
    try:
        header = json.loads(channel.read(sizes[0], deadline))
    except ValueError as error:
        raise BackendError(f"the sandbox sent a header that is no JSON: {error}") from error
    return header, channel.read(sizes[1], deadline)


class PipeChannel:
    """The agent as a child process."""

    def __init__(self, command: list[str], *, descriptors: tuple[int, ...] = ()) -> None:
        self.errors = os.memfd_create("errors")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            pass_fds=descriptors,
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
            bufsize=0,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.sink, self.source = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self.source, select.POLLIN)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self.sink, view) :]
        except OSError as error:
            raise BackendError(self._complaint()) from error

    def read(self, size: int, deadline: float) -> bytes:
        """Return exactly `size` bytes."""
        data = bytearray()
        while len(data) < size:
            if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise BackendError("the sandbox did not answer in time")
            piece = os.read(self.source, size - len(data))
            if not piece:
                raise BackendError(self._complaint())
            data += piece
        return bytes(data)

    def close(self) -> None:
        """Kill the process and wait for it."""
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self.process.kill()
        self.process.wait()
        errors, self.errors = self.errors, -1
        if errors >= 0:
            os.close(errors)

    def _complaint(self) -> str:
        """Return why the process is gone."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        lines = os.pread(self.errors, 1 << 16, 0).decode("utf-8", "replace").strip().splitlines()
        return f"the sandbox ended with code {self.process.returncode}: {lines[-1] if lines else 'no message'}"
