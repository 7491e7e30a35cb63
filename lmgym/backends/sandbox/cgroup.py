"""Control groups, versions 1 and 2: how much memory and how many processes a sandbox has.

A group's name tells who owns it, so that the next start can remove the groups of processes that are gone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
from functools import cache
from pathlib import Path

from lmgym.backends.sandbox.owner import alive, owner

ROOT = Path("/sys/fs/cgroup")
PREFIX = "lmgym-"
NAME = re.compile(PREFIX + r"\d+-\d*-\d+")  # process, its start, number
CONTROLLERS = ("memory", "pids")
SLACK = 8  # processes of the sandbox itself
NUMBERS = itertools.count()


class ControlGroup:
    """One group in each hierarchy, which bounds a sandbox."""

    def __init__(self, parents: dict[str, Path], *, memory: int, processes: int) -> None:
        name = f"{PREFIX}{owner()}-{next(NUMBERS)}"
        self.folders = list(dict.fromkeys(parent / name for parent in parents.values()))
        try:
            for folder in self.folders:
                folder.mkdir()
            for file, value in _values(memory, processes):
                for folder in self.folders:
                    if (folder / file).exists():
                        (folder / file).write_text(str(value))
        except OSError:
            self.remove()
            raise

    def remove(self) -> None:
        """Kill what is left in the group and remove it."""
        for folder in self.folders:
            _remove(folder)


def _values(memory: int, processes: int) -> list[tuple[str, int]]:
    return [
        ("memory.limit_in_bytes", memory),  # version 1
        ("memory.memsw.limit_in_bytes", memory),
        ("memory.max", memory),  # version 2
        ("memory.swap.max", 0),
        ("pids.max", processes + SLACK),
    ]


def _remove(folder: Path) -> None:
    for _ in range(200):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:  # busy
            with contextlib.suppress(OSError):
                for pid in (folder / "cgroup.procs").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.005)
        else:
            return


@cache
def parents() -> dict[str, Path]:
    """Return the folder of each controller in which this process may make groups; none for those it may not."""
    folders: dict[str, Path] = {}
    for controller in CONTROLLERS:
        folder = _own_folder(controller)
        if folder is not None and os.access(folder, os.W_OK):
            folders[controller] = folder
    return folders


def _own_folder(controller: str) -> Path | None:
    """Return this process's folder in the hierarchy of a controller, if the controller acts on groups made there."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return _below(ROOT / names, path)
    for mount in (ROOT, ROOT / "unified"):
        if (mount / "cgroup.controllers").exists():
            folder = _below(mount, path)
            return folder if folder is not None and _enable(folder, controller) else None
    return None


def _below(mount: Path, path: str) -> Path | None:
    """Return the folder of a group; the mount itself where a container shows its group as the root."""
    for folder in (mount / path.lstrip("/"), mount):
        if folder.is_dir():
            return folder
    return None


def _enable(folder: Path, controller: str) -> bool:
    """Let groups below a folder use a controller (version 2, which refuses where the folder has processes)."""
    if controller not in (folder / "cgroup.controllers").read_text().split():
        return False
    with contextlib.suppress(OSError):
        (folder / "cgroup.subtree_control").write_text(f"+{controller}")
    return controller in (folder / "cgroup.subtree_control").read_text().split()


def sweep() -> int:
    """Remove the groups whose owner is gone, wherever in the hierarchies it ran; return their number."""
    count, unified = 0, (ROOT / "cgroup.controllers").exists()
    for mount in {ROOT if unified else ROOT / folder.relative_to(ROOT).parts[0] for folder in parents().values()}:
        for above, names, _ in os.walk(mount):  # which ignores groups that vanish meanwhile; rglob raises
            for name in names:
                if NAME.fullmatch(name) and not alive(name[len(PREFIX) :].rpartition("-")[0]):
                    _remove(Path(above, name))
                    count += 1
    return count


sweep_once = cache(sweep)  # on the first call in this process
