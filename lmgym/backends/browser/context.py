"""One isolated browser context: tabs, virtual time and refused requests. Everything here is asynchronous.

Pages run on Playwright's fake clock, which advances by a fixed amount after each action. Playwright's `run_for` leaves
an init script behind at every call, so the installed clock is advanced directly. Workers have a real clock, so pages
get none, except from sites on the network, which are not reproducible anyway. CSS animations, `document.timeline`,
sound and video run in real time too. The context waits only for what a page has begun: navigations, requests, pop-ups.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from lmgym.backends.browser.gate import EMPTY, Gate, Sites, origin
from lmgym.backends.browser.process import BrowserProcess
from lmgym.backends.browser.scripts import LAID_OUT, POINTED, REFUSE, TURN, WEBRTC, WORKERS
from lmgym.backends.browser.tab import Tab
from lmgym.errors import BackendError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Download, Page, StorageState

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)  # when every page begins
LIFE = 64  # episodes per tab: Playwright keeps a tab's requests in memory until it is closed
TABS = 8  # open at once; further pop-ups are closed
LOAD = 10.0  # seconds for a page to load
FIRST = 45.0  # seconds for the first page: contexts opened at the same time wait for each other
SETTLE = 5.0  # seconds until loading is stopped
STOPS = 20  # times that loading is stopped, 0.1 seconds apart, while a page goes on
ASKED = 2.0  # seconds to wait for a requested navigation to begin: it may be refused
SAID = 20  # messages of dialogs kept
HOLD = frozenset({"keyboard_down", "mouse_down"})  # actions whose effect outlives a reset of the tab


class ActionRefused(Exception):
    """An action that cannot be done; the message tells the policy why."""


class IsolatedContext:
    """A browser context with its proxy and its tabs."""

    def __init__(self, running: BrowserProcess, sites: Sites, *, size: tuple[int, int]) -> None:
        self.running, self.gate, self.size = running, Gate(sites), size
        self.tabs: list[Tab] = []
        self.active = 0
        self.messages: list[str] = []  # to the user
        self.infeasible: str | None = None  # the reason, once it was reported
        self.dialogs: list[str] = []  # by dialogs since the last action
        self.refused: Counter[str] = Counter()
        self.wait: float | None = None  # milliseconds that an action asked for
        self.now = 0.0  # milliseconds of virtual time since the page was opened
        self.worn = True  # whether the tab holds what a page's end does not take away: a pressed key, say
        self.age = 0  # episodes that the tab served
        self._context: BrowserContext | None = None
        self._attaching: set[asyncio.Task[None]] = set()
        self._taken = 0  # tabs that are open or on their way

    @property
    def tab(self) -> Tab:
        """The active tab."""
        return self.tabs[self.active]

    async def start(self) -> None:
        """Create the browser context and its proxy."""
        port = await self.gate.start()
        width, height = self.size
        self._context = context = await self.running.chromium.new_context(
            viewport={"width": width, "height": height},
            proxy={"server": f"http://127.0.0.1:{port}", "bypass": "<-loopback>"},
            service_workers="block",
            accept_downloads=False,
            locale="en-US",
            timezone_id="UTC",
            color_scheme="light",
            reduced_motion="reduce",
            storage_state=cast("StorageState | None", self.gate.sites.stored),
        )
        context.set_default_timeout(LOAD * 1000)
        await context.clock.pause_at(NOON)  # without `install`, from which real time would run to here
        await context.add_init_script(REFUSE % json.dumps(WEBRTC if self.gate.sites.passed else WEBRTC | WORKERS))
        context.on("dialog", self._dialog)
        context.on("page", self._popup)

    async def open(self, url: str) -> None:
        """Open `url` in a single tab with empty history and only the cookies and storage that `sites` defines."""
        place = origin(url) if origin(url) in self.gate.sites.served else None
        worn = self.worn or self.age >= LIFE or len(self.tabs) != 1
        if worn or place is None or not await self._emptied(place):
            self.age = 0
            old, self.tabs, self._taken = self.tabs, [], 0
            await self.open_tab()
            for tab in old:
                await tab.page.close()
            self._taken = len(self.tabs)
            if place is not None:
                await self.tab.page.goto(place + EMPTY, timeout=FIRST * 1000)
                await self.tab.devtools.send("Runtime.evaluate", {"expression": POINTED, "awaitPromise": True})
        self.worn, self.age = False, self.age + 1
        self.messages, self.infeasible, self.dialogs, self.now = [], None, [], 0.0
        self.refused.clear()
        self.gate.blocked.clear()
        if self.gate.sites.stored is None:
            await self._forget()
        await self.tab.devtools.send("Page.resetNavigationHistory")  # what the page is told
        await self.tab.page.goto(url, wait_until="load", timeout=FIRST * 1000)
        await self.tab.devtools.send("Page.resetNavigationHistory")  # nothing lies before it
        await self.settle()

    async def _emptied(self, place: str) -> bool:
        """Reset the tab, which takes half the time of opening a new one; return False if that failed.

        This clears whatever a page can leave in a tab: its name, its history and (with `_forget`) its storage.
        """
        from playwright.async_api import Error

        tab = self.tab
        if origin(tab.page.url) != place:
            return False  # the way to another site is another process
        try:
            async with asyncio.timeout(SETTLE):  # a page may be busy without end
                await tab.devtools.send("Runtime.evaluate", {"expression": "window.name = ''"})
                await tab.page.goto(place + EMPTY)
                await tab.page.mouse.move(0, 0)  # where a new tab's is
                await tab.devtools.send("HeapProfiler.collectGarbage")  # or its process holds twenty of the old pages
        except (Error, TimeoutError):
            return False
        tab.forget()
        return True

    async def _forget(self) -> None:
        """Clear cookies and storage."""
        assert self._context is not None
        await self._context.clear_cookies()
        for place in (*self.gate.sites.served, *self.gate.sites.passed):
            await self.tab.devtools.send(
                "Storage.clearDataForOrigin", {"origin": place, "storageTypes": "local_storage,indexeddb,cache_storage"}
            )

    async def close(self) -> None:
        """Close the context and its proxy; never raise."""
        from playwright.async_api import Error

        for task in self._attaching:
            task.cancel()
        with contextlib.suppress(Error, asyncio.TimeoutError):
            if self._context is not None and self.running.alive:
                await asyncio.wait_for(self._context.close(), SETTLE)
        await self.gate.close()

    async def do(self, name: str, action: Awaitable[None], tick: float) -> str:
        """Perform an action, advance `tick` milliseconds, and return an error message or ""."""
        from playwright.async_api import Error

        self.wait, self.dialogs = None, []
        wrong = ""
        try:
            await action
        except ActionRefused as error:
            wrong = str(error)
        except Error as error:
            self.check()
            wrong = f"{type(error).__name__}: {_first_line(str(error))}"
        self.worn = self.worn or bool(wrong) or name in HOLD
        await self.advance(tick if self.wait is None else self.wait)
        return wrong

    async def advance(self, ms: float) -> None:
        """Wait until pages settle, then advance every page's clock by `ms` milliseconds."""
        from playwright.async_api import Error

        await self.settle()
        for tab in list(self.tabs):
            with contextlib.suppress(Error):  # a page that went away meanwhile
                await tab.devtools.send("Runtime.evaluate", {"expression": TURN % f"{ms:g}", "awaitPromise": True})
        self.now += ms
        await self.settle()

    async def settle(self) -> None:
        """Wait for navigations, requests and pop-ups, and stop those that take too long."""
        from playwright.async_api import Error

        clock = asyncio.get_running_loop().time
        since = clock()
        while True:
            for tab in list(self.tabs):
                with contextlib.suppress(Error):  # also brings in order what the page said before
                    await tab.devtools.send("Runtime.evaluate", {"expression": LAID_OUT})
            self.check()
            passed = clock() - since
            asking = any(tab.asked or tab.opening for tab in self.tabs if not tab.page.is_closed())
            if not self._loading() and (not asking or passed > ASKED):
                break
            if passed > SETTLE:
                await self._stop()
                break
            await self._change(ASKED if not self._loading() else SETTLE - passed)
        for tab in self.tabs:
            tab.stop_waiting()
        await self._lost_tabs()

    async def _stop(self) -> None:
        """Stop loading until pages stay: a stop that comes between two redirects of a page stops neither."""
        from playwright.async_api import Error

        for _ in range(STOPS):
            for tab in list(self.tabs):
                tab.asked.clear()
                with contextlib.suppress(Error):
                    await tab.devtools.send("Page.stopLoading")
            await asyncio.sleep(0.1)
            if not any(tab.moving or tab.asked for tab in self.tabs if not tab.page.is_closed()):
                return

    def check(self) -> None:
        """Raise BackendError if the browser, a page's process or a site has failed."""
        if not self.running.alive:
            raise BackendError("Chromium died", event=f"death of Chromium, process {self.running.pid}")
        if any(tab.crashed for tab in self.tabs):
            raise BackendError("a page's process died: it crashed, was killed, or held too much memory")
        if self.gate.broken is not None:
            raise BackendError(f"a site of this task broke: {self.gate.broken!r}") from self.gate.broken

    def allow(self, url: str) -> bool:
        """Return True if a page may be opened; count a refusal."""
        allowed = self.gate.sites.allow(url)
        self.refused["navigation"] += not allowed
        return allowed

    async def open_tab(self) -> None:
        """Open an empty tab and make it active."""
        assert self._context is not None
        if len(self.tabs) >= TABS:
            raise ActionRefused(f"Error: {TABS} tabs are open already")
        page = await self._context.new_page()
        await asyncio.gather(*self._attaching)
        opened = [i for i, tab in enumerate(self.tabs) if tab.page is page]
        if not opened:  # it was gone before it could be listened to
            self.check()
            raise BackendError("a new tab did not open")
        self.active = opened[0]

    async def close_tab(self) -> None:
        """Close the active tab."""
        await self.tab.page.close()
        await self._lost_tabs()

    async def _lost_tabs(self) -> None:
        """Drop closed tabs; open one if none is left."""
        here = self.tabs[self.active] if self.tabs else None
        self.tabs = [tab for tab in self.tabs if not tab.page.is_closed()]
        self._taken = len(self.tabs)
        if not self.tabs:
            self.active = 0
            await self.open_tab()
        self.active = self.tabs.index(here) if here in self.tabs else len(self.tabs) - 1

    def _loading(self) -> bool:
        moving = any(tab.moving or tab.fetching for tab in self.tabs if not tab.page.is_closed())
        return bool(moving or self.gate.in_flight or self._attaching)

    async def _change(self, patience: float) -> None:
        """Wait until something changes, at most `patience` seconds."""
        self.gate.settled.clear()
        for tab in self.tabs:
            tab.changed.clear()
        events = (self.gate.settled, *(tab.changed for tab in self.tabs))
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        await asyncio.wait([*waits, *self._attaching], return_when=asyncio.FIRST_COMPLETED, timeout=max(0.01, patience))
        for wait in waits:
            wait.cancel()

    def _popup(self, page: Page) -> None:
        self._attaching.add(task := asyncio.get_running_loop().create_task(self._attach(page)))
        task.add_done_callback(self._attaching.discard)

    async def _attach(self, page: Page) -> None:
        """Add a page as a tab, or close it if there are too many."""
        from playwright.async_api import Error

        assert self._context is not None
        with contextlib.suppress(Error):  # a page may close itself before it is known
            for tab in self.tabs:
                tab.opening = max(0, tab.opening - 1)
            self._taken += 1
            if self._taken > TABS:
                self.refused["pop-up"] += 1
                await page.close()
                return
            tab = Tab(page, await self._context.new_cdp_session(page), self.refused)
            page.on("download", self._download)
            page.on("close", lambda _: tab.changed.set())
            await tab.listen()
            self.tabs.append(tab)
            self.active = len(self.tabs) - 1

    async def _dialog(self, dialog: Dialog) -> None:
        from playwright.async_api import Error

        if len(self.dialogs) < SAID:
            self.dialogs.append(f"{dialog.type}: {dialog.message[:500]}")
        with contextlib.suppress(Error):
            await (dialog.accept() if dialog.type in ("alert", "beforeunload") else dialog.dismiss())

    async def _download(self, download: Download) -> None:
        from playwright.async_api import Error

        self.refused["download"] += 1
        with contextlib.suppress(Error):
            await download.cancel()


def _first_line(text: str) -> str:
    """Return the first line of a Playwright error, without its prefix."""
    line = text.partition("\n")[0].partition(": ")
    return (line[2] if line[0].startswith(("Page.", "ElementHandle.", "Mouse.", "Keyboard.")) else "".join(line))[:300]
