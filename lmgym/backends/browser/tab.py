"""One tab of a browser context: pending navigations and requests, and requests that Chromium refused."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

ENDLESS = ("EventSource", "Media", "Ping", "WebSocket")  # types of requests that are not waited for
# Chromium's log entry for an address that it refuses before it asks the gate
NEVER = re.compile(r"Not allowed to (?:load local resource|navigate top frame to [\w ]*URL): (\w+:)")


class Tab:
    """A page and its pending navigations, requests and pop-ups."""

    def __init__(self, page: Page, devtools: CDPSession, refused: Counter[str]) -> None:
        self.page, self.devtools, self.refused = page, devtools, refused
        self.asked: set[str] = set()  # frames that want to go elsewhere
        self.moving: set[str] = set()  # frames that load
        self.fetching: set[str] = set()  # requests under way, those to the browser's own cache too
        self.opening = 0  # pop-ups that were asked for
        self.crashed = False
        self.changed = asyncio.Event()
        self.bids: dict[int, str] = {}  # by the number that Chromium gives an element

    async def listen(self) -> None:
        """Subscribe to the page's events."""
        for name in ("frameRequestedNavigation", "frameScheduledNavigation"):
            self.devtools.on(f"Page.{name}", self._ask)
        self.devtools.on("Page.frameStartedLoading", self._start)
        for name in ("frameStoppedLoading", "frameDetached", "navigatedWithinDocument"):
            self.devtools.on(f"Page.{name}", self._stop)
        self.devtools.on("Network.requestWillBeSent", self._fetch)
        for name in ("loadingFinished", "loadingFailed"):
            self.devtools.on(f"Network.{name}", self._fetched)
        self.devtools.on("Page.windowOpen", self._expect)
        self.devtools.on("Log.entryAdded", self._read)
        self.page.on("crash", lambda _: self._crash())
        await self.devtools.send("Page.enable")
        await self.devtools.send("Log.enable")
        await self.devtools.send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0})

    def stop_waiting(self) -> None:
        """Treat nothing as pending."""
        self.asked.clear()
        self.moving.clear()
        self.fetching.clear()
        self.opening = 0

    def forget(self) -> None:
        """Forget the pages so far."""
        self.stop_waiting()
        self.bids.clear()

    def _ask(self, event: Mapping[str, Any]) -> None:
        if event.get("disposition", "currentTab") == "currentTab" and not event.get("delay"):
            self.asked.add(event["frameId"])

    def _start(self, event: Mapping[str, Any]) -> None:
        self.moving.add(event["frameId"])
        self.asked.discard(event["frameId"])
        self.changed.set()

    def _stop(self, event: Mapping[str, Any]) -> None:
        self.moving.discard(event["frameId"])
        self.asked.discard(event["frameId"])
        self.changed.set()

    def _fetch(self, event: Mapping[str, Any]) -> None:
        if event.get("type") not in ENDLESS:
            self.fetching.add(event["requestId"])

    def _fetched(self, event: Mapping[str, Any]) -> None:
        self.fetching.discard(event["requestId"])
        self.changed.set()

    def _expect(self, event: Mapping[str, Any]) -> None:
        if event["url"].startswith("data:"):  # Chromium opens no window for it, and does not say so
            self.refused["data:"] += 1
        else:
            self.opening += 1

    def _read(self, event: Mapping[str, Any]) -> None:
        """Count a navigation that Chromium refused before it reached the gate."""
        entry = event["entry"]
        if entry["source"] == "security" and (match := NEVER.match(entry["text"])):
            self.refused[match[1]] += 1

    def _crash(self) -> None:
        self.crashed = True
        self.changed.set()
