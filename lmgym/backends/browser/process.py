"""One Chromium per process, behind synchronous calls.

A background thread owns an event loop, Playwright's asynchronous API and the browser; callers submit a coroutine and
wait. This works from any thread, inside a running event loop, and in a forked child, which starts its own browser. The
browser starts with the first session and stops a few seconds after the last.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import shutil
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cache
from multiprocessing import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lmgym.errors import BackendError, MissingExtra

if TYPE_CHECKING:
    from playwright.async_api import Browser as Chromium
    from playwright.async_api import Playwright

LOG = logging.getLogger(__name__)
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
EXECUTABLE = "LMGYM_CHROMIUM"  # environment variable: the browser to start
IDLE = 5.0  # seconds that an unused browser stays up
FAREWELL = 5.0  # seconds for a browser to close
STARTUP = 60.0  # seconds for a browser to start
MEMORY = 1 << 30  # bytes a page's process may hold
WATCH = 0.25  # seconds between two checks of memory
FLAGS = (
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-frame-rate-limit",
    "--disable-gpu-vsync",
    "--disable-smooth-scrolling",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # a page reaches its gate, and nothing by name
    # MiB: half of it for scripts; what is new in a small space, or a process grows and shrinks by 32
    f"--js-flags=--max-old-space-size={MEMORY >> 21} --max-semi-space-size=2",
)
Result = TypeVar("Result")


def executable() -> str:
    """Return the path of the Chromium to use; raise MissingExtra if there is none."""
    if named := os.environ.get(EXECUTABLE):
        if not Path(named).is_file():
            raise MissingExtra(f"${EXECUTABLE} names {named}, which is no file")
        return named
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise MissingExtra(f"no Chromium found: apt-get install chromium, or set ${EXECUTABLE} to a browser of that family")


class BrowserProcess:
    """A running browser."""

    def __init__(self, playwright: Playwright, chromium: Chromium, pid: int) -> None:
        self.playwright, self.chromium, self.pid = playwright, chromium, pid
        self.profile = _profile(pid)
        self.watch = asyncio.get_running_loop().create_task(self._watch())

    @property
    def alive(self) -> bool:
        """True while the browser is connected."""
        return self.chromium.is_connected()

    async def kill(self) -> None:
        """Stop the browser in any state; leave no process and no profile folder."""
        self.watch.cancel()
        with contextlib.suppress(asyncio.TimeoutError, *_errors()):
            await asyncio.wait_for(self.chromium.close(), FAREWELL)
        below = descendants(self.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(asyncio.TimeoutError, *_errors()):
            await asyncio.wait_for(self.playwright.stop(), FAREWELL)
        if self.profile is not None:
            shutil.rmtree(self.profile, ignore_errors=True)

    async def _watch(self) -> None:
        """Kill renderer processes that use too much memory; their sessions report it."""
        page = os.sysconf("SC_PAGE_SIZE")
        while True:
            await asyncio.sleep(WATCH)
            for pid in descendants(self.pid):
                with contextlib.suppress(OSError, ValueError):
                    held = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
                    if held > MEMORY and b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        LOG.warning("a page's process held %d MiB and was ended", held >> 20)
                        os.kill(pid, signal.SIGKILL)


class BrowserThread:
    """The thread that owns the browser, and calls into it."""

    def __init__(self) -> None:
        self.pid = os.getpid()  # a forked child has no thread behind this object
        self.sessions = 0
        self._running: BrowserProcess | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._starting = asyncio.Lock()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="lmgym-browser", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result], patience: float) -> Result:
        """Run `work` in the browser's thread and return its result.

        It is cancelled if it takes longer than `patience` seconds or the wait is interrupted.
        """
        tasks: list[asyncio.Task[Any]] = []  # an interrupt may come when it runs already and its future is not returned
        given_up = threading.Event()

        async def cancellable() -> Result:
            task = asyncio.current_task()
            assert task is not None
            tasks.append(task)
            if given_up.is_set():
                task.cancel()
            return await work

        def cancel() -> None:
            for task in tasks:
                task.cancel()

        try:
            future = asyncio.run_coroutine_threadsafe(cancellable(), self.loop)
            try:
                return future.result(patience)
            except FutureTimeout as error:
                if not future.done():
                    raise BackendError(f"the browser did not answer within {patience:g} seconds") from error
                raise
        except BaseException:
            given_up.set()
            self.loop.call_soon_threadsafe(cancel)  # nothing, once it is done
            raise

    async def ready(self) -> BrowserProcess:
        """Return the running browser; start one if there is none or the last one died."""
        return await asyncio.shield(self._ready())  # a start that one caller gives up serves the next

    async def _ready(self) -> BrowserProcess:
        async with self._starting:
            if self._running is not None and not self._running.alive:
                await self._stop()
            if self._running is None:
                self._running = await _start()
                self._rest_later()  # unless a session enters
            return self._running

    def enter(self) -> None:
        """Register a session. Call in the browser's thread."""
        self.sessions += 1
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def leave(self) -> None:
        """Unregister a session; after the last one, stop the browser when idle. Call in the browser's thread."""
        self.sessions -= 1
        if not self.sessions:
            self._rest_later()

    def close(self) -> None:
        """Stop the browser and the thread at the end of the process."""
        if self._thread.is_alive():
            with contextlib.suppress(BackendError):
                self.run(self._stop(), 3 * FAREWELL)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(FAREWELL)
        if not self._thread.is_alive():
            self.loop.close()

    def _rest_later(self) -> None:
        self._leaving = self.loop.call_later(IDLE, lambda: self.loop.create_task(self._rest()))

    async def _rest(self) -> None:
        async with self._starting:
            if not self.sessions:
                await self._stop()

    async def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.kill()


class _Shared:
    """The browser of this process; a forked child drops its parent's, which it must not touch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._browser: BrowserThread | None = None
        self._parents: list[BrowserThread] = []  # kept from the garbage collector, which would close their pipes
        os.register_at_fork(after_in_child=self._forget)

    def get(self) -> BrowserThread:
        with self._lock:
            if self._browser is None:
                self._browser = BrowserThread()
                atexit.register(self._browser.close)
                util.Finalize(None, self._browser.close, exitpriority=10)  # a child of multiprocessing runs no atexit
            return self._browser

    def _forget(self) -> None:
        self._lock = threading.Lock()
        if self._browser is not None:
            atexit.unregister(self._browser.close)
            self._parents.append(self._browser)
            self._browser = None


@cache
def _shared() -> _Shared:
    return _Shared()


def shared_browser() -> BrowserThread:
    """Return the browser of this process."""
    return _shared().get()


async def _start() -> BrowserProcess:
    try:
        from playwright.async_api import async_playwright
    except ModuleNotFoundError as error:
        raise MissingExtra("browser tasks need playwright: pip install 'lmgym[web]'") from error
    path, root = executable(), os.geteuid() == 0
    playwright = await async_playwright().start()
    try:
        chromium = await playwright.chromium.launch(
            executable_path=path, chromium_sandbox=not root, args=list(FLAGS), timeout=STARTUP * 1000
        )
        session = await chromium.new_browser_cdp_session()
        processes = await session.send("SystemInfo.getProcessInfo")
        await session.detach()
    except _errors() as error:
        await playwright.stop()
        reason = str(error).partition("\n")[0]
        hint = "" if root else "; its sandbox needs user namespaces, which this system may refuse"
        raise BackendError(f"{path} does not start: {reason}{hint}") from error
    pid = next(int(process["id"]) for process in processes["processInfo"] if process["type"] == "browser")
    sandbox = "without its sandbox, since this is root" if root else "in its own sandbox"
    LOG.info("%s %s runs %s, process %d", path, chromium.version, sandbox, pid)
    return BrowserProcess(playwright, chromium, pid)


def _errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that Playwright raises."""
    from playwright.async_api import Error

    return (Error,)


def _profile(pid: int) -> Path | None:
    """Return the browser's profile folder, read from its command line."""
    with contextlib.suppress(OSError):
        for argument in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            if argument.startswith(b"--user-data-dir="):
                return Path(os.fsdecode(argument.partition(b"=")[2]))
    return None


def descendants(pid: int) -> list[int]:
    """Return all descendant processes of `pid`."""
    with contextlib.suppress(OSError):
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [*children, *(below for child in children for below in descendants(child))]
    return []
