"""A bash in bubblewrap that starts programs of a desktop, and the two scripts that it runs.

The display, the window manager and the buses run in one sandbox, the applications in a second one with process ids of
its own: what an application does, such as `kill -9 -1` in a terminal, ends applications only.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from lmgym.backends.desktop.folders import DesktopFolder
from lmgym.backends.sandbox import bubblewrap, cgroup, seccomp
from lmgym.errors import BackendError

HOME = "/home/user"
RUNTIME = "/run/user"
MEMORY = 2 << 30  # bytes of all processes of a sandbox
PROCESSES = 400  # and threads
FILE = 256 << 20  # bytes of one file
SCRATCH = 64 << 20  # bytes of all files in /tmp, and of shared memory
JOIN = 'for i in $(seq "$1"); do echo $$ >"$2/cgroup.procs"; n=$1; shift 2; set -- "$n" "$@"; done; shift; exec "$@"'
NOTE = re.compile(rb"([0-9a-f]{16}) ([0-9]{1,3})")  # on the exit of a program: its mark and exit code
LONGEST_NOTE = 20  # bytes
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": HOME,
    "USER": "user",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "DISPLAY": ":0",
    "XDG_RUNTIME_DIR": RUNTIME,
    "XDG_CURRENT_DESKTOP": "XFCE",
    "DBUS_SESSION_BUS_ADDRESS": f"unix:path={RUNTIME}/bus",
    "SAL_USE_VCLPLUGIN": "gtk3",
    "SAL_NO_FONT_LOOKUP": "1",
    "GDK_BACKEND": "x11",
    "GDK_CORE_DEVICE_EVENTS": "1",  # XTEST without smooth scrolling
    "GSETTINGS_BACKEND": "keyfile",
    "GTK_MODULES": "gail:atk-bridge",
    "NO_AT_SPI_SCREEN_READER": "1",
}
# What applications read of /etc: the rest is the machine's own, and this user may be root
ETC = (
    *("alternatives", "at-spi2", "dbus-1", "fonts", "gtk-3.0", "ld.so.cache", "libreoffice", "localtime", "magic"),
    *("mime.types", "nsswitch.conf", "X11", "xdg", "bash.bashrc"),
)
# Ends, with all its processes, when any of its parts does or when the owner's end of the pipe is closed. The window
# manager alone is started again unless a signal ended it: any client of the display may ask it to exit.
SERVERS = """
Xvfb :0 -screen 0 {width}x{height}x24 -fbdir {runtime} -nolisten tcp -noreset -ac -dpi 96 -s 0 >/dev/null 2>&1 &
dbus-daemon --config-file={runtime}/session.conf --nofork --nopidfile --nosyslog >/dev/null 2>&1 &
for try in {{1..1000}}; do [ -S /tmp/.X11-unix/X0 ] && [ -S {runtime}/bus ] && break; sleep 0.01; done
while XDG_CONFIG_HOME={runtime} openbox --replace >/dev/null 2>&1; [ $? -lt 128 ]; do sleep 0.05; done &
/usr/libexec/at-spi-bus-launcher --launch-immediately >/dev/null 2>&1 &
cat >/dev/null <&0 &
wait -n
"""
STARTER = """
while IFS= read -r line; do eval "$line"; done
"""


class SandboxedShell:
    """A bash in a sandbox of its own, without network, and all processes below it."""

    def __init__(
        self, folder: DesktopFolder, script: str, writable: Mapping[str, Path], readable: Mapping[str, Path]
    ) -> None:
        """Start `script`; `writable` and `readable` map paths inside to folders and files outside."""
        self._running: dict[str, str] = {}  # mark: name of the program
        self._ended: dict[str, tuple[str, int]] = {}  # mark: name and exit code
        self._notes = b""
        cgroup.sweep_once()
        self._group = cgroup.ControlGroup(cgroup.parents(), memory=MEMORY, processes=PROCESSES)
        groups = [str(each) for each in self._group.folders]
        command = ["sh", "-c", JOIN, "sh", str(len(groups)), *groups]
        command += ["bwrap", "--unshare-all", "--new-session", "--clearenv", "--as-pid-1", "--cap-drop", "ALL"]
        command += ["--uid", "1000", "--gid", "1000", "--hostname", "desktop"]
        command += ["--ro-bind", "/usr", "/usr"]
        for name in ETC:
            command += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        for name in ("passwd", "group"):
            command += ["--ro-bind", str(folder.accounts / name), f"/etc/{name}"]
        for name in ("bin", "lib", "lib64", "sbin"):
            if Path(f"/usr/{name}").is_dir():
                command += ["--symlink", f"usr/{name}", f"/{name}"]
        command += [*bubblewrap.proc(), "--dev", "/dev", "--dir", "/run", "--dir", "/var"]
        for name in ("/dev/shm", "/tmp"):
            command += ["--size", str(SCRATCH), "--tmpfs", name]
        command += ["--ro-bind-try", "/var/cache/fontconfig", "/var/cache/fontconfig"]
        for inside, outside in writable.items():
            command += ["--bind", str(outside), inside]
        for inside, outside in readable.items():
            command += ["--ro-bind", str(outside), inside]
        for name in ("/proc", "/dev", "/"):  # the owner's user stands behind uid 1000: /proc/sys is its own to write
            command += ["--remount-ro", name]
        for name, value in ENVIRONMENT.items():
            command += ["--setenv", name, value]
        filtered = os.memfd_create("seccomp")
        os.write(filtered, seccomp.program())
        os.lseek(filtered, 0, os.SEEK_SET)
        command += ["--seccomp", str(filtered), "--chdir", HOME, "--"]
        command += ["bash", "-c", f"ulimit -f {FILE >> 10}\n{script}"]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(filtered,),
            )
        except OSError as error:
            self._group.remove()
            raise BackendError(f"bwrap does not start: {error}") from error
        finally:
            os.close(filtered)
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        folder.note(self._process.pid)

    @property
    def alive(self) -> bool:
        """True while the sandbox runs."""
        return self._process.poll() is None

    def processes(self) -> list[int]:
        """Return the ids of all processes in the sandbox."""
        for folder in self._group.folders:
            with contextlib.suppress(OSError):
                return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
        return [self._process.pid, *_below(self._process.pid)]

    def launch(self, name: str, arguments: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
        """Start a program in the background, with `variables` in its environment; return its mark in `exits`."""
        mark = secrets.token_hex(8)
        self._running[mark] = Path(name).name
        given = "".join(f"{key}={shlex.quote(value)} " for key, value in (variables or {}).items())
        self._write(f"( {given}{shlex.join([name, *arguments])} >/dev/null 2>&1 </dev/null; echo {mark} $? ) &\n")
        return mark

    def exits(self) -> dict[str, tuple[str, int]]:
        """Return the name and the exit code of each program that has ended, by its mark.

        Programs may find and write to this pipe: a line that is no note on one of them is ignored.
        """
        assert self._process.stdout is not None
        with contextlib.suppress(BlockingIOError):
            self._notes += os.read(self._process.stdout.fileno(), 1 << 16)
        *lines, self._notes = self._notes.split(b"\n")
        self._notes = self._notes[: LONGEST_NOTE + 1]
        for note in filter(None, map(NOTE.fullmatch, lines)):
            name = self._running.pop(note[1].decode(), None)
            if name is not None:
                self._ended[note[1].decode()] = (name, int(note[2]))
        return self._ended

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError as error:
            raise BackendError("the sandbox of the desktop's applications has ended") from error

    def end_programs(self) -> None:
        """End all processes but the sandbox itself; they are stopped first, so that none starts another."""
        while self.alive and (programs := [pid for pid in self.processes() if _inside(pid)]):
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in programs:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, number)
            time.sleep(0.01)

    def kill(self) -> None:
        """End all processes of the sandbox."""
        for pid in {self._process.pid, *self.processes()}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._group.remove()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _inside(pid: int) -> bool:
    """Return True for a process that runs in a sandbox and is not its process 1."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("State:\tZ"):
                return False
            if line.startswith("NSpid:"):
                ids = line.split()[1:]
                return len(ids) > 1 and ids[-1] != "1"
    return False


def _below(pid: int) -> list[int]:
    """Return all descendants of a process, those that its other threads started included."""
    children = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                children += [int(child) for child in (task / "children").read_text().split()]
    return [*children, *(below for child in children for below in _below(child))]
