"""Messages, pipes and processes of the agent: what a loop over poll(2) must see to while a command runs."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import select
import signal
import struct
import time
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from lmgym.backends.sandbox.inside.capture import Capture

CHUNK = 1 << 20  # bytes read from one pipe after its writer ended
PIPE = 1 << 16  # bytes read at once
GONE = 5.0  # seconds in which killed processes must be gone


class Loop:
    """The owner's messages, the programs' pipes, and who of them is alive."""

    def __init__(self, source: int, sink: int, settings: Mapping[str, Any]) -> None:
        self.source, self.sink, self.settings = source, sink, settings
        self.status: dict[int, int | None] = {}  # exit status of the programs started, None while they run
        self.protected: set[int] = set()  # processes of sessions: `kill_command` spares them and what is theirs
        self.readers: dict[int, Capture | None] = {}  # by descriptor; None: read and forget
        self.writers: dict[int, bytearray] = {}  # bytes still to be written, by descriptor
        self.sockets: set[int] = set()  # of sessions
        self.poll = select.poll()
        self.wake, alarm = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(alarm, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        self.poll.register(self.wake, select.POLLIN)
        self.poll.register(self.source, 0)  # hang-ups are reported all the same

    def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a message to the owner."""
        text = json.dumps(header).encode()
        view = memoryview(struct.pack(">II", len(text), len(payload)) + text + payload)
        while view:
            view = view[os.write(self.sink, view) :]

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """Return the owner's next message; end the sandbox when the owner is gone."""
        header, payload = struct.unpack(">II", self._exactly(8))
        return json.loads(self._exactly(header)), self._exactly(payload)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = os.read(self.source, size - len(data))
            if not piece:
                os._exit(0)
            data += piece
        return bytes(data)

    def wait_for_owner(self) -> None:
        """Handle events until the owner sends something."""
        ready: list[bool] = []
        self.poll.modify(self.source, select.POLLIN)
        self.pump(lambda: ready, None, on_source=lambda: ready.append(True))
        self.poll.modify(self.source, 0)

    def pump(
        self, until: Callable[[], object], deadline: float | None, on_source: Callable[[], None] | None = None
    ) -> bool:
        """Handle events until a condition holds; return False if `deadline` (of time.monotonic) came first."""
        while not until():
            left = None if deadline is None else (deadline - time.monotonic()) * 1000
            if left is not None and left <= 0:
                return False
            for descriptor, events in self.poll.poll(None if left is None else left + 1):
                if descriptor == self.source:
                    if events & select.POLLIN and on_source is not None:
                        on_source()
                    elif events & (select.POLLHUP | select.POLLERR):
                        os._exit(0)
                elif descriptor == self.wake:
                    self._reap()
                else:
                    if descriptor in self.readers and events & ~select.POLLOUT:
                        self._read(descriptor)
                    if descriptor in self.writers and events & ~select.POLLIN:
                        self._write(descriptor)
        return True

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake, PIPE):
                pass
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if pid in self.status:
                    killed = os.WIFSIGNALED(status)
                    self.status[pid] = 128 + os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)

    def ended(self, pid: int) -> bool:
        """Return True if a program that was started has ended."""
        return self.status.get(pid, 0) is not None

    def watch(self, descriptor: int, capture: Capture) -> None:
        """Keep what comes out of a pipe."""
        os.set_blocking(descriptor, False)
        self.readers[descriptor] = capture
        self._register(descriptor)

    def ignore(self, descriptors: Iterable[int]) -> None:
        """Go on reading pipes, so that those who still write to them may, and forget what they say."""
        for descriptor in descriptors:
            if descriptor in self.readers:
                self.readers[descriptor] = None

    def drain(self, descriptors: Iterable[int]) -> None:
        """Read what pipes hold at this moment."""
        for descriptor in descriptors:
            taken = 0
            while descriptor in self.readers and taken < CHUNK:
                size = self._read(descriptor)
                if not size:
                    break
                taken += size

    def feed(self, descriptor: int, data: bytes) -> None:
        """Write data to a pipe, as its reader takes it."""
        self.writers.setdefault(descriptor, bytearray()).extend(data)
        self._register(descriptor)

    def close(self, descriptor: int) -> None:
        """Forget a pipe or a socket and close it."""
        self.sockets.discard(descriptor)
        if descriptor in self.readers or descriptor in self.writers:
            self.poll.unregister(descriptor)
        self.readers.pop(descriptor, None)
        self.writers.pop(descriptor, None)
        os.close(descriptor)

    def _register(self, descriptor: int) -> None:
        """Poll a descriptor for what is to be done with it."""
        events = select.POLLIN * (descriptor in self.readers) | select.POLLOUT * (descriptor in self.writers)
        if events:
            self.poll.register(descriptor, events)
        else:
            with contextlib.suppress(KeyError):
                self.poll.unregister(descriptor)

    def _read(self, descriptor: int) -> int:
        try:
            data = os.read(descriptor, PIPE)
        except BlockingIOError:
            return 0
        except ConnectionResetError:
            data = b""
        capture = self.readers[descriptor]
        if not data and descriptor not in self.sockets:
            self.close(descriptor)
        elif not data:  # its session closes it
            del self.readers[descriptor]
            self._register(descriptor)
        elif capture is not None:
            capture.feed(data)
        return len(data)

    def _write(self, descriptor: int) -> None:
        waiting = self.writers[descriptor]
        try:
            del waiting[: os.write(descriptor, waiting[:PIPE])]
        except BlockingIOError:
            return
        except BrokenPipeError:
            waiting.clear()
        if not waiting:
            del self.writers[descriptor]
            self._register(descriptor)

    def spawn(self, words: list[str], files: Mapping[int, int], folder: str, environment: Mapping[str, str]) -> int:
        """Start a program in a session of its own; `files` maps its descriptors to ours. Return its process.

        Raises OSError where the program or the folder does not exist.
        """
        answer, question = os.pipe()  # closed by exec; else it carries the error's number
        pid = os.fork()
        if not pid:
            try:
                self._become(words, files, folder, environment)
            except OSError as error:
                os.write(question, str(error.errno).encode())
            except ValueError:  # a NUL character, or one that no path can have
                os.write(question, str(errno.EINVAL).encode())
            finally:
                os._exit(127)
        self.status[pid] = None
        os.close(question)
        failure = os.read(answer, 16)
        os.close(answer)
        if failure:
            self.pump(lambda: self.ended(pid), time.monotonic() + GONE)
            raise OSError(int(failure), os.strerror(int(failure)))
        with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write("1000")  # when memory is short, this program goes before process 1
        return pid

    def _become(self, words: list[str], files: Mapping[int, int], folder: str, environment: Mapping[str, str]) -> None:
        for group in self.settings["groups"]:
            os.write(group, b"0")  # 0 is the writer
        os.setsid()
        os.chdir(folder)
        for resource_, limit in ((resource.RLIMIT_NPROC, "processes"), (resource.RLIMIT_FSIZE, "disk")):
            if self.settings[limit] is not None:
                resource.setrlimit(resource_, (self.settings[limit], self.settings[limit]))
        os.nice(5)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        for inner, outer in files.items():
            os.dup2(outer, inner)
        os.execvpe(words[0], words, dict(environment))

    def kill_command(self, pid: int, before: Container[int]) -> None:
        """Kill a program, its descendants, its session and all orphans that were not there before it."""
        for _ in range(10):
            victims = self._victims(pid, before)
            if not victims:
                return
            _kill(victims)
            self.pump(lambda: False, time.monotonic() + 0.005)
        self.kill_all()

    def _victims(self, pid: int, before: Container[int]) -> set[int]:
        table = processes()
        others = self.protected - {pid}
        victims = {
            each
            for each, (parent, session) in table.items()
            if pid in (each, session) or (parent == 1 and each not in before and session not in others)
        } - others
        return victims | descendants(table, victims)

    def kill_below(self, pid: int) -> None:
        """Kill the descendants of a process."""
        _kill(descendants(processes(), {pid}))

    def kill_all(self) -> None:
        """Kill all programs at once; no fork escapes that."""
        signal_all(signal.SIGKILL)
        self.pump(lambda: not processes(), time.monotonic() + GONE)


def signal_all(number: int) -> None:
    """Send a signal to all processes but this one."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, number)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def processes() -> dict[int, tuple[int, int]]:
    """Return parent and session of each process but process 1 and zombies."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    table[int(name)] = int(fields[1]), int(fields[3])
    return table


def descendants(table: Mapping[int, tuple[int, int]], roots: Iterable[int]) -> set[int]:
    """Return the processes below some."""
    below: set[int] = set()
    grown = set(roots)
    while grown:
        grown = {each for each, row in table.items() if row[0] in grown} - below
        below |= grown
    return below
