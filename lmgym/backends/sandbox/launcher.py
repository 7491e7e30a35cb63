"""The program that turns into bubblewrap: it mounts the disk and gives up root.

It runs as `python -I -S launcher.py ORDER`, ORDER being JSON, so that nothing is forked from a large process with
threads. All mounts stand in a mount namespace of its own and vanish with the sandbox, whoever dies how.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Carry out the order given as the first argument."""
    order = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    _namespace(order["user"])
    base = Path(order["base"])
    _mount("tmpfs", base, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755")
    _disk(base / "disk", order)
    for number, source in enumerate(order["trees"]):
        _show(Path(source), base / f"tree{number}")
    for name, text in order["files"].items():
        (base / name).write_text(text)
    _become(order["user"])
    os.execvp("bwrap", ["bwrap", *order["arguments"]])


def _namespace(user: int | None) -> None:
    """Enter a mount namespace; without root (`user` None), in a user namespace that allows it."""
    if user is not None:
        _check(LIBC.unshare(CLONE_NEWNS), "unshare")
    else:
        uid, gid = os.getuid(), os.getgid()
        _check(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    _mount("none", Path("/"), "", MS_REC | MS_PRIVATE)


def _disk(folder: Path, order: dict[str, Any]) -> None:
    """Mount the writable folders on a disk of limited size."""
    folder.mkdir()
    owner = os.getuid() if order["user"] is None else order["user"]
    limits = f"size={order['disk']},nr_inodes={order['inodes']},mode=0755"
    _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, limits)
    for name, mode in order["folders"].items():
        (folder / name).mkdir()
        os.chown(folder / name, owner, owner if order["user"] is not None else -1)
        (folder / name).chmod(mode)
    if order["user"] is not None:
        os.chown(folder, owner, owner)


def _show(source: Path, target: Path) -> None:
    """Make a file or folder visible to whom its path is closed."""
    if source.is_dir():
        target.mkdir()
    else:
        target.touch()
    _mount(str(source), target, "", MS_BIND | MS_REC)


def _become(user: int | None) -> None:
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def _mount(source: str, target: Path, kind: str, flags: int, options: str = "") -> None:
    code = LIBC.mount(source.encode(), bytes(target), kind.encode() or None, flags, options.encode() or None)
    _check(code, f"mount {kind or source} at {target}")


def _check(code: int, call: str) -> None:
    if code:
        raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
