"""One desktop behind synchronous calls: applications, screen, accessibility tree, input, and rest."""

from __future__ import annotations

import os
import signal
import socket
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgym.backends.desktop import clock, quota
from lmgym.backends.desktop.display import FRAME_BUFFER, AppWindow, Display, wait_until
from lmgym.backends.desktop.folders import DesktopFolder, empty
from lmgym.backends.desktop.home import (
    APPLICATIONS,
    fill_home,
    store_template,
    template_folder,
    write_server_settings,
    write_settings,
)
from lmgym.backends.desktop.packages import check_installed
from lmgym.backends.desktop.places import placed
from lmgym.backends.desktop.shell import HOME, RUNTIME, SERVERS, STARTER, SandboxedShell
from lmgym.backends.desktop.tree import AccessibilityBus, TreeNode
from lmgym.errors import BackendError, MissingExtra

SIZE = (1280, 800)  # pixels of the screen
STARTUP = 180.0  # seconds for the servers or a window: LibreOffice takes 8 alone, a minute on busy cores
QUIET = 0.06  # seconds without drawing and without work, after which the screen rests
LOOK = 0.015  # seconds between two looks at the screen and the processes
LONGEST = 5.0  # seconds that an action may keep the screen busy
OFFICE_PROGRAM = "/usr/lib/libreoffice/program/soffice.bin"  # without its start script, which looks for Java
OFFICE = ("--norestore", "--nologo", "--nofirststartwizard", "--nolockcheck")
BROWSER_PROGRAM = Path("/usr/lib/chromium/chromium")  # without its start script, which reads settings in /etc
BROWSER = (
    *("--no-sandbox", "--test-type"),  # the desktop's sandbox has no room for a second one; no warning about that
    *("--no-first-run", "--no-default-browser-check", "--password-store=basic", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-features=Translate,MediaRouter"),
    *("--disable-gpu", "--disable-dev-shm-usage", "--force-renderer-accessibility"),
)
FLAGS: Mapping[str, tuple[str, tuple[str, ...]]] = {  # application: its program and flags
    "soffice": (OFFICE_PROGRAM, OFFICE),
    "chromium": (str(BROWSER_PROGRAM), BROWSER),
    "mousepad": ("mousepad", ("--disable-server",)),
    "lxterminal": ("lxterminal", ("--no-remote",)),
}
CRASHES = (128 + signal.SIGABRT, 128 + signal.SIGSEGV, 128 + signal.SIGKILL, 128 + signal.SIGBUS)


@dataclass(frozen=True)
class Launch:
    """An application to start with a file of the home folder, and the title its window is known by."""

    program: str
    arguments: tuple[str, ...] = ()
    title: str = ""  # part of the title to wait for; "": any new window


class Desktop:
    """A running desktop. Failures of any of its parts raise BackendError and leave it unusable."""

    def __init__(self, size: tuple[int, int] = SIZE) -> None:
        """Start the display, the window manager and the buses."""
        check_installed()
        self.size = size
        self._folder = DesktopFolder()
        self._parts: list[SandboxedShell] = []
        self._pid = os.getpid()
        self._release = weakref.finalize(self, _end, self._pid, self._folder, self._parts)
        if not template_folder().exists():
            self._make_template()
        fill_home(self._folder.home)
        servers = self._start_servers()
        self._sockets = [self._folder.servers / "bus", self._folder.sockets / "X0"]
        wait_until(lambda: all(map(_answers, self._sockets)) or not servers.alive, STARTUP, "the desktop")
        self.display = Display(self._sockets[1], self._folder.servers / FRAME_BUFFER)
        self._accessibility = AccessibilityBus(self._sockets[0], self._folder.servers, RUNTIME)
        self._sockets.append(self._accessibility.socket)
        self._applications = self._start_applications()
        self._clock: dict[str, str] = {}  # environment of applications that see the episode's time
        self._terminal = False  # an application that runs any command has been started
        self._touched = False
        self.folders = [self._folder.home, self._folder.runtime]  # that applications write to
        quota.watch(self)

    @property
    def home(self) -> Path:
        """The home folder, as this process names it."""
        return self._folder.home

    @property
    def owned(self) -> bool:
        """True in the process that started the desktop, False in a forked child."""
        return self._pid == os.getpid()

    @property
    def alive(self) -> bool:
        """True while all sandboxes of the desktop run."""
        return all(part.alive for part in self._parts)

    @property
    def usable(self) -> bool:
        """True while the desktop runs and an application that starts would reach the display and the buses."""
        return self.alive and all(map(_answers, self._sockets))

    def processes(self) -> list[int]:
        """Return the ids of all processes of the desktop."""
        return [pid for part in self._parts for pid in part.processes()]

    # Applications --------------------------------------------------------------------------------------------

    def reset(self, furnish: Callable[[Path], None], launches: Sequence[Launch]) -> None:
        """Restore the home folder, let `furnish` add files to it, and start applications.

        Applications of the last episode are ended; the display and the buses stay. The clock begins anew.
        """
        if self._touched:
            self._parts.remove(self._applications)
            self._applications.kill()
            self._restart_settings_daemons()
            self._folder.requests()
            fill_home(self.home)
            empty(self._folder.runtime)
            self._applications = self._start_applications()
            wait_until(lambda: not self.display.windows(), STARTUP, "the empty desktop")
            self.display.release_all()
            self.display.unlock_capitals()
        self._touched, self._terminal = True, False
        furnish(self.home)
        clock.date_files(self.home)
        self._clock = clock.variables()
        self.display.move(self.size[0] // 2, self.size[1] // 2)
        for launch in launches:
            self.launch(launch)

    def launch(self, launch: Launch) -> None:
        """Start an application and wait for its window and for rest."""
        if launch.program == "chromium" and not BROWSER_PROGRAM.exists():
            raise MissingExtra("goals in the browser need a Debian package: apt-get install chromium")
        before = {(window.title, window.program) for window in self.display.windows()}
        self._start(launch.program, launch.arguments)

        def there() -> bool:
            self._check()
            window = self.display.focused()
            if window is None:
                return False
            return launch.title in window.title if launch.title else (window.title, window.program) not in before

        wait_until(there, STARTUP, f"the window {launch.title!r} of {launch.program}")
        self.rest(longest=2 * LONGEST)

    def _start(self, program: str, arguments: Sequence[str]) -> None:
        """Start an application with the flags that it needs here."""
        self._terminal |= program == "lxterminal"
        command, flags = FLAGS.get(program, (program, ()))
        self._applications.launch(command, [*flags, *arguments], {} if program == "chromium" else self._clock)

    def end_programs(self) -> None:
        """End all applications, and what they started, as `kill -9 -1` in a terminal does."""
        self._applications.end_programs()

    def run(self, program: str, arguments: Sequence[str], *, seconds: float = STARTUP) -> None:
        """Run a program without a window beside the applications and wait for its end."""
        mark = self._applications.launch(program, arguments, self._clock)
        wait_until(lambda: mark in self._applications.exits(), seconds, f"the end of {program}")

    # Screen --------------------------------------------------------------------------------------------------

    def screenshot(self) -> NDArray[np.uint8]:
        """Return the screen, (height, width, 3)."""
        self._check()
        return self.display.screenshot()

    def tree(self) -> list[TreeNode]:
        """Return the accessibility tree of what shows: one node per application, with its windows below."""
        self._check()
        return placed(self._accessibility.read())

    def windows(self) -> list[AppWindow]:
        """Return the open windows, the lowest first."""
        self._check()
        return self.display.windows()

    def rest(self, longest: float = LONGEST, quiet: float = QUIET) -> bool:
        """Wait for `quiet` seconds in which nothing is drawn and no application works.

        Looks are counted, not time: on a busy machine this process may sleep while applications do too.
        Return False if that took longer than `longest` seconds.
        """
        self._check()
        looks, end, (work, _) = 0, time.monotonic() + longest, self._work()
        while time.monotonic() < end:
            self.display.wait_for_change(LOOK)
            self._start_requested()
            changed, before = self.display.changed(), work
            work, running = self._work()
            looks = 0 if changed or running or work > before else looks + 1
            if looks * LOOK >= quiet and self._accessibility.responsive():
                return True
        return False

    # Inside --------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Raise BackendError if a part has died."""
        if not self.alive:
            raise BackendError("a part of the desktop has ended")
        for name, code in self._applications.exits().values():
            if code in CRASHES and not self._has_terminal():
                raise BackendError(f"{name} has crashed with exit code {code}")

    def _has_terminal(self) -> bool:
        """Return True if a terminal has been opened: to end an application is then an action like any other."""
        for pid in self._applications.processes():
            with suppress(OSError):  # other applications can open one too
                self._terminal |= Path(f"/proc/{pid}/comm").read_text(errors="replace").strip() == "lxterminal"
        return self._terminal

    def _start_requested(self) -> None:
        """Start the applications that the root menu has asked for."""
        for line in self._folder.requests():
            if line in APPLICATIONS.values():
                program, *arguments = line.split()
                self._start(program, arguments)

    def _work(self) -> tuple[int, bool]:
        """Return the processor time that all parts have used, in clock ticks, and whether a thread could run."""
        total, running = 0, False
        for pid in self.processes():
            with suppress(OSError, IndexError):
                fields = _stat(f"/proc/{pid}/stat")
                total += int(fields[11]) + int(fields[12])
                running |= fields[0] in "RD"
                if not running and fields[17] != "1":
                    tasks = f"/proc/{pid}/task"
                    running = any(_stat(f"{tasks}/{tid}/stat")[0] in "RD" for tid in os.listdir(tasks))
        return total, running

    def _start_servers(self) -> SandboxedShell:
        write_server_settings(self._folder.servers)
        folders = {HOME: self._folder.home, RUNTIME: self._folder.servers, "/tmp/.X11-unix": self._folder.sockets}
        return self._sandbox(SERVERS.format(width=self.size[0], height=self.size[1], runtime=RUNTIME), folders, {})

    def _start_applications(self) -> SandboxedShell:
        sockets = {f"{RUNTIME}/{name}": self._folder.servers / name for name in ("bus", "at-spi")}
        sockets["/tmp/.X11-unix"] = self._folder.sockets
        return self._sandbox(STARTER, {HOME: self._folder.home, RUNTIME: self._folder.runtime}, sockets)

    def _sandbox(self, script: str, writable: dict[str, Path], readable: dict[str, Path]) -> SandboxedShell:
        shell = SandboxedShell(self._folder, script, writable, readable)
        self._parts.append(shell)
        return shell

    def _restart_settings_daemons(self) -> None:
        """End the daemons that keep the last home folder's settings in memory; the bus starts them again."""
        for pid in self._parts[0].processes():
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() in ("xfconfd", "dconf-service"):
                    os.kill(pid, signal.SIGKILL)

    def _make_template(self) -> None:
        """Let LibreOffice make its profile, which takes seconds, and keep it."""
        write_settings(self._folder.home)
        shell = self._sandbox(STARTER, {HOME: self._folder.home, RUNTIME: self._folder.runtime}, {})
        shell.launch(OFFICE_PROGRAM, ["--headless", "--terminate_after_init", *OFFICE])
        wait_until(lambda: bool(shell.exits()), 2 * STARTUP, "LibreOffice's profile")
        shell.kill()
        self._parts.remove(shell)
        empty(self._folder.runtime)
        store_template(self._folder.home)

    def close(self) -> None:
        """End all processes and remove the folder."""
        if self._release.alive:
            self.display.close()
            self._accessibility.close()
            self._release()


def _stat(path: str) -> list[str]:
    """Return the fields of a process or a thread after its name: its state first."""
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _answers(path: Path) -> bool:
    """Return True if a server listens on a socket: its path appears before it does."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.setblocking(False)  # a full queue of connections is no server that answers
        return connection.connect_ex(os.fspath(path)) == 0


def _end(pid: int, folder: DesktopFolder, parts: list[SandboxedShell]) -> None:
    if pid == os.getpid():  # a forked child leaves its parent's desktop alone
        for part in parts:
            part.kill()
        folder.remove()
