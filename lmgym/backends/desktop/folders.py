"""The folder of a running desktop, and the sweep of folders whose owner died."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
from pathlib import Path

PREFIX = "lmgym-desktop-"
LOCK = "owner.lock"
PIDS = "pids"
PASSWD = "user:x:1000:1000:User:/home/user:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
GROUP = "user:x:1000:\nnogroup:x:65534:\n"


class DesktopFolder:
    """A folder with the home, the sockets and the frame buffer of one desktop; locked while its owner lives."""

    def __init__(self) -> None:
        """Create the folder, after removing those of dead owners."""
        sweep()
        unlocked = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=_base()))
        self._lock = os.open(unlocked / LOCK, os.O_CREAT | os.O_RDWR)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = unlocked.with_name(unlocked.name[1:])  # a sweep meets it locked only
        unlocked.rename(self.path)
        self.home = self.path / "home"
        self.runtime = self.path / "run"  # XDG_RUNTIME_DIR: the bus and the frame buffer
        self.sockets = self.path / "X11"
        self.accounts = self.path / "accounts"
        self.accounts.mkdir()
        (self.accounts / "passwd").write_text(PASSWD, encoding="ascii")
        (self.accounts / "group").write_text(GROUP, encoding="ascii")
        for folder, mode in ((self.home, 0o755), (self.runtime, 0o700), (self.sockets, 0o1777)):
            folder.mkdir()
            folder.chmod(mode)

    def note(self, pid: int) -> None:
        """Record a process to be ended by the sweep if the owner dies."""
        with open(self.path / PIDS, "a", encoding="ascii") as file:
            file.write(f"{pid}\n")

    def remove(self) -> None:
        """Remove the folder."""
        remove_tree(self.path)
        with contextlib.suppress(OSError):
            os.close(self._lock)


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
    """Remove a folder, whatever rights its own files and folders have been given."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # a folder without the right to write into it
        for inner, _, _ in os.walk(folder):
            with contextlib.suppress(OSError):
                os.chmod(inner, 0o700)
        shutil.rmtree(folder, ignore_errors=True)


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
