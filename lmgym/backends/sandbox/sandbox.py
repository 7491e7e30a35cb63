"""One sandbox: commands, sessions and files in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal

from lmgym.backends.sandbox.channel import Channel, receive, send
from lmgym.backends.sandbox.limits import Box, Result
from lmgym.errors import BackendError

GRACE = 30.0  # seconds beyond a command's limit in which the agent must answer
CHUNK = 1 << 20  # bytes of one message of a stream


class Sandbox:
    """A confined machine with a disk of its own.

    What goes wrong inside is part of the result: an exit status, or an OSError of `read`, `write`, `save` and
    `restore`. BackendError means that the sandbox itself is lost.
    """

    def __init__(self, channel: Channel, box: Box) -> None:
        self.box = box
        self._channel: Channel | None = channel
        self._lock = threading.Lock()  # one request at a time
        try:
            receive(channel, GRACE)
        except BaseException:
            self.close()
            raise

    def run(
        self,
        command: str | Sequence[str],
        *,
        stdin: bytes = b"",
        timeout: float | None = None,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        split: bool = False,
    ) -> Result:
        """Run a program, or a string in a fresh `bash -c`, and return what it left.

        At `timeout` seconds (default: the box's limit) it is killed with all it started. `split` keeps standard error
        apart from standard output. Programs started in the background live on until the sandbox is closed. Raises
        OSError if the program or the folder does not exist.
        """
        seconds = self.box.limits.seconds if timeout is None else timeout
        request = {
            "op": "run",
            "command": command if isinstance(command, str) else list(command),
            "timeout": seconds,
            "folder": folder or self.box.folder,
            "environment": dict(environment or {}),
            "output": self.box.limits.output,
            "split": split,
        }
        return _result(*self._ask(request, stdin, seconds))

    def shell(self, *, split: bool = False) -> SandboxSession:
        """Return a bash that keeps its folder, variables, functions and jobs from command to command."""
        return SandboxSession(self, "shell", split)

    def python(self, *, split: bool = False) -> SandboxSession:
        """Return a Python that keeps its variables; the value of a last expression is printed, as in a notebook."""
        return SandboxSession(self, "python", split)

    def read(self, path: str, *, limit: int = 16 << 20) -> bytes:
        """Return a file's content. Raises OSError if it is no regular file or has more than `limit` bytes."""
        return self._ask({"op": "read", "path": self._absolute(path), "limit": limit})[1]

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, with the folders above it. Raises OSError where that fails, as on a full disk."""
        self._ask({"op": "write", "path": self._absolute(path), "mode": mode}, data)

    def save(self) -> bytes:
        """Return all files written so far, as a tar archive; programs stand still meanwhile and are not saved."""
        with self._request():
            self._send({"op": "save"})
            header, data = self._receive(GRACE)
            parts = [data]
            while header.get("more"):
                header, data = self._receive(GRACE)
                parts.append(data)
        return b"".join(parts)

    def restore(self, state: bytes) -> None:
        """End all programs and sessions, and make the files what they were at `save`."""
        with self._request():
            self._send({"op": "restore"})
            for start in range(0, len(state), CHUNK):
                self._send({"more": True}, state[start : start + CHUNK])
            self._send({"more": False})
            self._receive(GRACE)

    def programs(self) -> int:
        """Return the number of programs that run: those in the background and sessions."""
        return int(self._ask({"op": "programs"})[0]["programs"])

    def kill(self) -> None:
        """End all programs and sessions."""
        self._ask({"op": "kill"})

    @property
    def closed(self) -> bool:
        """True once the sandbox was closed or lost."""
        return self._channel is None

    def close(self) -> None:
        """End the sandbox and remove all of it."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self.box.folder}/{path}"

    def _ask(
        self, header: Mapping[str, Any], payload: bytes = b"", patience: float = 0.0
    ) -> tuple[dict[str, Any], bytes]:
        with self._request():
            self._send(header, payload)
            return self._receive(patience + GRACE)

    @contextmanager
    def _request(self) -> Iterator[None]:
        """Hold the channel; close the sandbox if the request breaks off, or the next would read its answer."""
        with self._lock:
            try:
                yield
            except OSError:  # the answer
                raise
            except BaseException:
                self.close()
                raise

    def _send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        if self._channel is None:
            raise BackendError("the sandbox is closed")
        send(self._channel, header, payload)

    def _receive(self, timeout: float) -> tuple[dict[str, Any], bytes]:
        """Return the agent's answer. Raises OSError if it reports one."""
        if self._channel is None:
            raise BackendError("the sandbox is closed")
        answer, payload = receive(self._channel, timeout)
        if "errno" in answer:
            raise OSError(int(answer["errno"]), str(answer["error"]))
        return answer, payload


class SandboxSession:
    """A shell or a Python in a sandbox, which keeps its state."""

    def __init__(self, sandbox: Sandbox, kind: Literal["shell", "python"], split: bool) -> None:
        self.sandbox, self.kind, self.split = sandbox, kind, split
        self._number: int | None = None

    def run(self, command: str, *, timeout: float | None = None) -> Result:
        """Run a command; the code of a Python command is 1 if it raised.

        At `timeout` seconds (default: the box's limit) it is killed. If that or the command itself ends the session
        (`exit`, `kill $$`), the result says `ended` and the next command starts a fresh session.
        """
        seconds = self.sandbox.box.limits.seconds if timeout is None else timeout
        while True:
            if self._number is None:
                self._number = self._open()
            order = {"op": "feed", "session": self._number, "timeout": seconds}
            header, payload = self.sandbox._ask(order, command.encode("utf-8", "replace"), seconds)
            if "gone" not in header:
                break
            self._number = None  # killed since its last command
        if header["ended"]:
            self._number = None
        return _result(header, payload)

    def _open(self) -> int:
        box = self.sandbox.box
        request: dict[str, Any] = {
            "op": "open",
            "kind": self.kind,
            "folder": box.folder,
            "environment": {},
            "split": self.split,
            "output": box.limits.output,
        }
        return int(self.sandbox._ask(request)[0]["session"])

    def close(self) -> None:
        """End the session's programs; the next command starts a fresh one."""
        number, self._number = self._number, None
        if number is not None:
            self.sandbox._ask({"op": "shut", "session": number})


def _result(header: Mapping[str, Any], payload: bytes) -> Result:
    first = int(header["sizes"][0])
    return Result(
        code=int(header["code"]),
        stdout=payload[:first],
        stderr=payload[first:],
        dropped=int(header["dropped"]),
        timed_out=bool(header["timed_out"]),
        ended=bool(header["ended"]),
    )
