"""The folder of a running desktop, and the sweep of folders whose owner died."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import tempfile
from pathlib import Path

PREFIX = "lmgym-desktop-"
LOCK = "owner.lock"
REQUESTS = "requests"  # pipe in the folder of the servers: programs to start, one a line
PIDS = "pids"
PASSWD = "user:x:1000:1000:User:/home/user:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
GROUP = "user:x:1000:\nnogroup:x:65534:\n"


class DesktopFolder:
    """A folder with the home, the sockets and the frame buffer of one desktop; locked while its owner lives.

    Applications write to `home` and `runtime`; of `servers` and `sockets` they see the sockets only, read-only.
    """

    def __init__(self) -> None:
        """Create the folder, after removing those of dead owners."""
        sweep()
        unlocked = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=_base()))
        self._lock = os.open(unlocked / LOCK, os.O_CREAT | os.O_RDWR)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = unlocked.with_name(unlocked.name[1:])  # a sweep meets it locked only
        unlocked.rename(self.path)
        self.home = self.path / "home"
        self.runtime = self.path / "run"  # XDG_RUNTIME_DIR of the applications
        self.servers = self.path / "servers"  # that of the servers: the buses, the frame buffer, and their settings
        self.sockets = self.path / "X11"
        self.accounts = self.path / "accounts"
        self.accounts.mkdir()
        (self.accounts / "passwd").write_text(PASSWD, encoding="ascii")
        (self.accounts / "group").write_text(GROUP, encoding="ascii")
        for folder, mode in ((self.home, 0o755), (self.runtime, 0o700), (self.servers, 0o700), (self.sockets, 0o1777)):
            folder.mkdir()
            folder.chmod(mode)
        (self.servers / "at-spi").mkdir(mode=0o700)
        os.mkfifo(self.servers / REQUESTS)
        self._requests = os.open(self.servers / REQUESTS, os.O_RDWR | os.O_NONBLOCK)

    def note(self, pid: int) -> None:
        """Record a process to be ended by the sweep if the owner dies."""
        with open(self.path / PIDS, "a", encoding="ascii") as file:
            file.write(f"{pid}\n")

    def requests(self) -> list[str]:
        """Return the programs that the window manager's menu has asked for since the last call."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self._requests, 4096).decode(errors="replace").splitlines()
        return []

    def remove(self) -> None:
        """Remove the folder."""
        remove_tree(self.path)
        for descriptor in (self._lock, self._requests):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def sweep() -> int:
    """End the processes and remove the folders of owners that died; return their number."""
    count = 0
    for folder in _base().glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR)
        except OSError:
            continue  # not locked yet: it is being made
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its owner lives
        finally:
            os.close(lock)
        for pid in _recorded(folder):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        remove_tree(folder)
        count += 1
    return count


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, as far as the system allows."""
    with contextlib.suppress(OSError):
        empty(folder)
        folder.rmdir()


def empty(folder: Path) -> None:
    """Remove all that a folder holds, whatever the rights and the depth of folders below; raise OSError if it cannot.

    Folders are moved up before they are removed, as the path of a deep one is longer than the system takes.
    """
    folder.chmod(0o700)
    while entries := _entries(folder):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            for inner in _entries(entry.path):
                if inner.is_dir(follow_symlinks=False):
                    os.chmod(inner.path, 0o700)  # a folder without the right to write cannot be moved
                    os.rename(inner.path, folder / f".removed-{secrets.token_hex(8)}")
                else:
                    os.unlink(inner.path)
            os.rmdir(entry.path)


def _entries(folder: os.PathLike[str] | str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _base() -> Path:
    return Path(tempfile.gettempdir())


def _recorded(folder: Path) -> list[int]:
    """Return the recorded processes that still run with this folder in their command line."""
    pids = []
    with contextlib.suppress(OSError, ValueError):
        for line in (folder / PIDS).read_text(encoding="ascii").split():
            with contextlib.suppress(OSError):
                if os.fsencode(folder) in Path(f"/proc/{line}/cmdline").read_bytes():
                    pids.append(int(line))
    return pids
