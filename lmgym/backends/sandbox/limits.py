"""Records: the limits and parts of a sandbox, and the result of a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SandboxLimits:
    """Limits on all programs of one sandbox together."""

    seconds: float = 60.0  # of one command, unless the call names another limit
    memory: int = 512 * MIB  # bytes of all processes; files have `disk` on top of it
    processes: int = 64  # and threads
    disk: int = 128 * MIB  # bytes of all files written
    files: int = 20_000  # files, folders and links written
    output: int = MIB  # bytes kept of each stream of a command: the first and the last half


@dataclass(frozen=True, kw_only=True)
class Box:
    """The parts of a sandbox; equal boxes start equal sandboxes."""

    limits: SandboxLimits = field(default_factory=SandboxLimits)
    folder: str = "/work"  # where commands start: empty and writable, as are /tmp, /dev/shm and the home folder
    trees: Mapping[str, Path] = field(default_factory=dict)  # what of the host all may read, by path inside
    network: bool = False  # reach the network of the host
    environment: Mapping[str, str] = field(default_factory=dict)  # variables beside PATH, HOME, LANG, TZ and so on
    image: str = ""  # Docker's engine: an image to start from, all of it writable; "": a system of the host's files
    python: str = "python3"  # with `image`: a Python of at least version 3.10 in it, which the agent runs on
    root: bool = False  # with `image`: programs are root, with no rights beyond the container's files


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome of a command."""

    code: int  # exit status; 128 + the signal's number if a signal ended it
    stdout: bytes
    stderr: bytes = b""  # empty where it was not kept apart
    dropped: int = 0  # bytes cut out of the middle of the streams
    timed_out: bool = False
    ended: bool = False  # the session's process is gone, and its state with it: the next command starts another

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 become U+FFFD."""
        return self.stdout.decode("utf-8", "replace")
