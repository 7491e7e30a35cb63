"""The engine: bubblewrap's namespaces, with control groups, a filter of system calls and a small disk."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from lmgym.backends.sandbox import cgroup, inside, seccomp
from lmgym.backends.sandbox.channel import PipeChannel
from lmgym.backends.sandbox.limits import Box
from lmgym.errors import BackendError, MissingExtra

LAUNCHER = Path(__file__).with_name("launcher.py")
BASES = ("/mnt", "/media", "/srv", "/var/tmp")  # some folder to mount on, in a namespace of the sandbox's own
PYTHON = "/opt/python"  # where the Python of lmgym stands inside
USERS = 1_000_000_000  # first of the users of sandboxes, if root starts them
ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "mime.types")
ETC_NETWORK = ("resolv.conf", "hosts", "ssl", "ca-certificates")
LIBRARIES = ("*-linux-gnu*", "*.so*", "python3*", "git-core", "gcc", "file", "locale", "ssl", "perl*", "terminfo")
SHARED = ("awk", "file", "gcc*", "git-core", "i18n", "locale", "mime", "misc", "perl*", "terminfo", "zoneinfo")
NUMBERS = itertools.count()


class Bubblewrap(PipeChannel):
    """An agent in namespaces of its own."""

    def __init__(self, box: Box) -> None:
        if missing := unavailable():
            raise MissingExtra(f"no bubblewrap sandbox here: {missing}")
        for path in box.trees.values():
            if os.geteuid() == 0 and not path.stat().st_mode & 0o004:
                raise BackendError(
                    f"{path} is closed to others, and sandboxes do not run as root: chmod -R a+rX {path}"
                )
        limits = box.limits
        self._group = cgroup.ControlGroup(
            cgroup.parents(), memory=limits.memory + limits.disk, processes=limits.processes
        )
        descriptors = [os.memfd_create("seccomp")]
        try:
            os.write(descriptors[0], seccomp.program())
            os.lseek(descriptors[0], 0, os.SEEK_SET)
            descriptors += [os.open(folder / "cgroup.procs", os.O_WRONLY) for folder in self._group.folders]
            order = json.dumps(_order(box, *descriptors))
            command = [sys.executable, "-I", "-S", str(LAUNCHER), order]
            super().__init__(command, descriptors=tuple(descriptors))
        except OSError as error:
            self._group.remove()
            raise BackendError(f"bubblewrap does not start: {error}") from error
        finally:
            for each in descriptors:
                os.close(each)

    def close(self) -> None:
        """Kill all processes and remove the control group; the mounts go with the processes."""
        super().close()
        self._group.remove()


def _order(box: Box, filter_descriptor: int, *groups: int) -> dict[str, object]:
    """Return the launcher's order."""
    limits, base = box.limits, next(each for each in BASES if Path(each).is_dir())
    trees = {**_python(), **box.trees}
    arguments = [
        *("--unshare-all", "--unshare-user", "--disable-userns", "--as-pid-1", "--new-session", "--cap-drop", "ALL"),
        *(["--share-net"] if box.network else []),
        *("--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--clearenv"),
        *(word for name, value in _loader().items() for word in ("--setenv", name, value)),
        *_view(box),
    ]
    for number, inner in enumerate(trees):
        arguments += ["--ro-bind", f"{base}/tree{number}", inner]
    arguments += _no_packages()
    arguments += ["--ro-bind", f"{base}/passwd", "/etc/passwd", "--ro-bind", f"{base}/group", "/etc/group"]
    arguments += [*proc(), "--dev", "/dev"]
    writable = inside.writable(box)
    for number, folder in enumerate(writable):
        arguments += ["--bind", f"{base}/disk/{number}", folder]
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
    loading = replace(box, environment={**_loader(), **box.environment})
    agent = inside.command(loading, f"{PYTHON}/bin/python3", processes=limits.processes, groups=groups)
    arguments += ["--seccomp", str(filter_descriptor), "--", *agent]
    return {
        "user": USERS + os.getpid() * 256 + next(NUMBERS) % 256 if os.geteuid() == 0 else None,
        "base": base,
        "disk": limits.disk,
        "inodes": limits.files + len(writable) + 1,
        "folders": {
            str(number): 0o1777 if folder in ("/tmp", "/dev/shm") else 0o755 for number, folder in enumerate(writable)
        },
        "trees": [str(path) for path in trees.values()],
        "files": inside.accounts(),
        "arguments": arguments,
    }


def proc() -> Iterator[str]:
    """Yield the arguments that mount /proc without the files that tell of the host."""
    yield from ("--proc", "/proc")
    for name in inside.MASKED:
        if Path("/proc", name).exists():
            yield from ("--ro-bind", "/dev/null", f"/proc/{name}")
    if Path("/proc/pressure").exists():  # anyone may write to it
        yield from ("--ro-bind", "/proc/pressure", "/proc/pressure")


def _python() -> dict[str, Path]:
    """Return the Python of lmgym by path inside; of one in /usr no more than itself."""
    prefix, name = Path(sys.base_prefix), f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
    if prefix != Path("/usr"):
        return {PYTHON: prefix}
    return {f"{PYTHON}/bin": prefix / "bin", f"{PYTHON}/{name}": prefix / name}


def _loader() -> dict[str, str]:
    """Return the variables with which a Python finds its own library, and not another release's of the system."""
    shared = any(Path(sys.base_prefix, "lib").glob("libpython*.so*")) and sys.base_prefix != "/usr"
    return {"LD_LIBRARY_PATH": f"{PYTHON}/lib"} if shared else {}


def _view(box: Box) -> Iterator[str]:
    """Yield the arguments that show the system's folders of the host.

    Of /usr these are the parts that Debian's base programs need, not other software with its copies of Python packages.
    """
    root = Path("/")
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = root / name
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), f"/{name}")
        elif path.is_dir():
            yield from ("--ro-bind", str(path), f"/{name}")
    for path in _usr():
        yield from ("--ro-bind", str(path), str(path))
    for name in (*ETC, *(ETC_NETWORK if box.network else ())):
        path = root / "etc" / name
        if path.exists():
            yield from ("--ro-bind", str(path), f"/etc/{name}")


@cache
def _usr() -> list[Path]:
    """Return the parts of /usr that are shown."""
    usr = Path("/usr")
    paths = [usr / name for name in ("bin", "sbin", "include", "lib32", "lib64", "libx32")]
    for folder, patterns in (("lib", LIBRARIES), ("share", SHARED)):
        paths += sorted(path for pattern in patterns for path in (usr / folder).glob(pattern))
    return [path for path in paths if path.exists()]


def _no_packages() -> Iterator[str]:
    """Yield the arguments that hide Python packages installed on the host: a box shows those it needs."""
    for inner, outer in (("/usr", Path("/usr")), (PYTHON, Path(sys.base_prefix))):
        if inner == PYTHON and outer == Path("/usr"):
            continue
        for folder in outer.glob("lib/python3*/*-packages"):
            path = f"{inner}/{folder.relative_to(outer)}"
            yield from ("--tmpfs", path, "--remount-ro", path)


@cache
def unavailable() -> str:
    """Return why bubblewrap cannot run here, and what to do; "" if it can."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed: apt-get install bubblewrap"
    try:
        seccomp.program()
    except MissingExtra as error:
        return str(error)
    test = subprocess.run(
        ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], capture_output=True, text=True, check=False
    )
    return f"bwrap may not make namespaces: {test.stderr.strip()}" if test.returncode else ""


def missing() -> list[str]:
    """Return the protections that this machine does not allow, a sentence each."""
    groups = cgroup.parents()
    lines = []
    if "memory" not in groups:
        lines.append("no limit on the memory of all processes together: no control group may be made")
    if "pids" not in groups and os.geteuid() == 0:
        lines.append("no limit on processes: no control group may be made")
    return lines
