"""The program that runs as process 1 of a sandbox and does there what its owner asks.

The modules of this folder are sent as text to the Python inside, of at least version 3.10: they stand on the
standard library and on each other alone. What the agent reports about a command comes from the kernel (exit status,
pipes), never from words that the command printed. As process 1 it gets no signal from the programs beside it, and as
it may not be dumped, none of them opens its memory or its files.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import resource
import signal
import socket
import stat
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from lmgym.backends.sandbox.inside.archive import Incoming, Outgoing, pack, unpack
from lmgym.backends.sandbox.inside.capture import Capture
from lmgym.backends.sandbox.inside.loop import GONE, Loop, processes, signal_all
from lmgym.backends.sandbox.inside.programs import CONTROL, PYTHON, SHELL

LONG = 100_000  # bytes of a command that fit into an argument
PATIENCE = 0.5  # seconds between interrupting a session's command and killing the session
PR_SET_DUMPABLE = 4


class SessionProcess:
    """A shell or a Python that keeps its state from command to command."""

    def __init__(self, pid: int, control: int, report: Capture, pipes: list[int], captures: list[Capture]) -> None:
        self.pid, self.control, self.report = pid, control, report
        self.pipes, self.captures = pipes, captures  # of the output


class Agent(Loop):
    """Answers to the owner's requests, one at a time: method `do_NAME` for request NAME."""

    def __init__(self, source: int, sink: int, settings: Mapping[str, Any]) -> None:
        super().__init__(source, sink, settings)
        self.sessions: dict[int, SessionProcess] = {}
        self.opened = 0

    def serve(self) -> None:
        """Answer requests until the owner is gone."""
        self.send({"ready": sys.version.split()[0]})
        while True:
            self.wait_for_owner()
            request, payload = self.receive()
            try:
                header, data = getattr(self, "do_" + request.pop("op"))(payload, **request)
            except OSError as error:
                header, data = {"errno": error.errno or errno.EIO, "error": error.strerror or str(error)}, b""
            except (tarfile.TarError, ValueError, RecursionError, MemoryError) as error:
                header, data = {"errno": errno.EINVAL, "error": str(error) or type(error).__name__}, b""
            self.send(header, data)

    def do_run(
        self,
        payload: bytes,
        command: str | list[str],
        timeout: float,
        folder: str,
        environment: dict[str, str],
        output: int,
        split: bool,
    ) -> tuple[dict[str, Any], bytes]:
        """Run a program, or a command in a fresh shell, and return its exit status and output."""
        before = processes()
        with contextlib.ExitStack() as opened:
            files = {0: _input(payload, opened)}
            words = _words(command, files, opened)
            pipes = [self._pipe(number, files, opened) for number in ((1, 2) if split else (1,))]
            files.setdefault(2, files[1])
            captures = [Capture(output) for _ in pipes]
            for each, capture in zip(pipes, captures, strict=True):
                self.watch(each, capture)
            try:
                pid = self.spawn(words, files, folder, self._environment(environment))
            except OSError:
                for each in pipes:
                    self.close(each)
                raise
        timed_out = not self.pump(lambda: self.ended(pid), time.monotonic() + timeout)
        if timed_out:
            self.kill_command(pid, before)
            self.pump(lambda: self.ended(pid), time.monotonic() + GONE)
        self.drain(pipes)
        self.ignore(pipes)
        return _result(self.status.pop(pid), captures, timed_out=timed_out)

    @staticmethod
    def _pipe(number: int, files: dict[int, int], opened: contextlib.ExitStack) -> int:
        """Make a pipe whose writing end becomes a descriptor of a program; return the reading end."""
        reader, files[number] = os.pipe()
        opened.callback(os.close, files[number])
        return reader

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        base = os.environ if self.settings["inherit"] else {}  # what an image says
        return {**base, **self.settings["environment"], **more}

    def do_open(
        self, payload: bytes, kind: str, folder: str, environment: dict[str, str], split: bool, output: int
    ) -> tuple[dict[str, Any], bytes]:
        """Start a session and return its number."""
        program = {
            "shell": ["bash", "--norc", "--noprofile", "-c", SHELL, "bash"],
            "python": ["python3", "-uc", PYTHON],
        }
        with contextlib.ExitStack() as opened:
            files = {0: _input(b"", opened)}
            pipes = [self._pipe(number, files, opened) for number in ((1, 2) if split else (1,))]
            files.setdefault(2, files[1])
            ours, theirs = socket.socketpair()
            control, files[CONTROL] = ours.detach(), theirs.detach()
            opened.callback(os.close, files[CONTROL])
            captures = [Capture(output) for _ in pipes]
            for each, capture in zip(pipes, captures, strict=True):
                self.watch(each, capture)
            try:
                pid = self.spawn(program[kind], files, folder, self._environment(environment))
            except OSError:
                for each in (control, *pipes):
                    self.close(each)
                raise
        report = Capture(512)
        self.sockets.add(control)
        self.watch(control, report)
        self.opened += 1
        self.sessions[self.opened] = SessionProcess(pid, control, report, pipes, captures)
        self.protected.add(pid)
        return {"session": self.opened}, b""

    def do_feed(self, payload: bytes, session: int, timeout: float) -> tuple[dict[str, Any], bytes]:
        """Run a command in a session and return its exit status and output."""
        entry = self.sessions.get(session)
        if entry is None or self.ended(entry.pid):  # killed while idle
            self.do_shut(b"", session)
            return {"gone": True}, b""
        nonce = os.urandom(16).hex()
        end = re.compile((nonce + r" (\d+)\0").encode())
        report = entry.report

        def code() -> int | None:
            match = end.search(bytes(report.head + report.tail))
            return int(match.group(1)) if match else self.status[entry.pid]

        self.feed(entry.control, payload.replace(b"\0", b"\n") + b"\0" + nonce.encode() + b"\0")
        timed_out = not self.pump(lambda: code() is not None, time.monotonic() + timeout)
        if timed_out:
            self._interrupt(entry, lambda: code() is not None)
        self.drain([entry.control, *entry.pipes])
        status, ended = code(), self.ended(entry.pid)
        report.take()
        result = _result(status, entry.captures, timed_out=timed_out, ended=ended)
        if ended:
            self.do_shut(b"", session)
        return result

    def _interrupt(self, entry: SessionProcess, done: Callable[[], bool]) -> None:
        """Stop a session's command: kill what the session started, interrupt the session, at last kill it."""
        self.kill_below(entry.pid)
        if self.pump(done, time.monotonic() + 0.1):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(entry.pid, signal.SIGINT)
        if not self.pump(done, time.monotonic() + PATIENCE):
            self.kill_command(entry.pid, processes())
            self.pump(lambda: self.ended(entry.pid), time.monotonic() + GONE)

    def do_shut(self, payload: bytes, session: int) -> tuple[dict[str, Any], bytes]:
        """End a session and what it started."""
        entry = self.sessions.pop(session, None)
        if entry is not None:
            self.protected.discard(entry.pid)
            if not self.ended(entry.pid):
                self.kill_command(entry.pid, processes())
                self.pump(lambda: self.ended(entry.pid), time.monotonic() + GONE)
            self.status.pop(entry.pid, None)
            self.close(entry.control)
            self.ignore(entry.pipes)
        return {}, b""

    def do_kill(self, payload: bytes) -> tuple[dict[str, Any], bytes]:
        """End all programs and sessions."""
        self.kill_all()
        for session in list(self.sessions):
            self.do_shut(b"", session)
        return {}, b""

    def do_programs(self, payload: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the number of running programs."""
        return {"programs": len(processes())}, b""

    def do_read(self, payload: bytes, path: str, limit: int) -> tuple[dict[str, Any], bytes]:
        """Return the content of a regular file."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with open(descriptor, "rb", buffering=0) as file:
            _only_regular(descriptor)
            data = file.read(limit + 1) or b""
        if len(data) > limit:
            raise OSError(errno.EFBIG, f"more than {limit} bytes")
        return {}, data

    def do_write(self, payload: bytes, path: str, mode: int) -> tuple[dict[str, Any], bytes]:
        """Write a regular file, with the folders above it."""
        os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY, mode)
        with open(descriptor, "wb") as file:
            _only_regular(descriptor)
            file.truncate()
            file.write(payload)
            os.fchmod(descriptor, mode)
        return {}, b""

    def do_save(self, payload: bytes) -> tuple[dict[str, Any], bytes]:
        """Send the writable folders as a tar stream, while all programs stand still."""
        target = Outgoing(self.send)
        signal_all(signal.SIGSTOP)
        try:
            pack(self.settings["writable"], target, self.settings["disk"])
        finally:
            signal_all(signal.SIGCONT)
        return {"more": False}, bytes(target.buffer)

    def do_restore(self, payload: bytes) -> tuple[dict[str, Any], bytes]:
        """End all programs, empty the writable folders and fill them from a tar stream."""
        self.do_kill(b"")
        source = Incoming(self.receive)
        folders = self.settings["writable"]
        script = 'chmod -R u+rwX "$@" 2>/dev/null; find "$@" -mindepth 1 -delete'  # however deep, whatever their modes
        self.do_run(b"", ["sh", "-c", script, "sh", *folders], 60.0, "/", {}, 1024, False)
        try:
            unpack(folders, source)
        finally:
            source.finish()
        return {}, b""


def _input(payload: bytes, opened: contextlib.ExitStack) -> int:
    """Return a descriptor to read the payload from; the null device without one."""
    if not payload:
        descriptor = os.open(os.devnull, os.O_RDONLY)
    else:
        descriptor = os.memfd_create("input")
        view = memoryview(payload)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    opened.callback(os.close, descriptor)
    return descriptor


def _words(command: str | list[str], files: dict[int, int], opened: contextlib.ExitStack) -> list[str]:
    """Return the program and its arguments; a long command travels in a file without a name."""
    if "\0" in "".join(command):
        raise OSError(errno.EINVAL, "the command contains a NUL character")
    if not isinstance(command, str):
        return command
    data = command.encode("utf-8", "replace")
    if len(data) < LONG:
        return ["bash", "-c", data.decode()]
    files[3] = _input(data, opened)
    return ["bash", "/proc/self/fd/3"]


def _only_regular(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")


def _result(
    status: int | None, captures: list[Capture], *, timed_out: bool, ended: bool = False
) -> tuple[dict[str, Any], bytes]:
    taken = [each.take() for each in captures]
    header = {
        "code": 137 if status is None else status,
        "sizes": [len(data) for data, _ in taken],
        "dropped": sum(dropped for _, dropped in taken),
        "timed_out": timed_out,
        "ended": ended,
    }
    return header, b"".join(data for data, _ in taken)


def main() -> None:
    """Take the standard streams for the owner's messages, close them to all programs, and serve."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    source, sink = os.dup(0), os.dup(1)
    settings = json.loads(sys.argv[1])
    for descriptor in settings["groups"]:
        os.set_inheritable(descriptor, False)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    Agent(source, sink, settings).serve()
