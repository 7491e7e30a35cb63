"""A browser session: one context behind synchronous calls, usable from any thread.

A policy's mistakes are returned as messages. Failures (of the browser, of a page's process, an endless script) raise
BackendError and close the session; the next `open` starts with a new context.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgym.backends.browser import view
from lmgym.backends.browser.actions import Actions
from lmgym.backends.browser.calls import SETS, action_names, bind
from lmgym.backends.browser.context import ActionRefused, IsolatedContext
from lmgym.backends.browser.gate import Sites
from lmgym.backends.browser.process import BrowserThread, shared_browser
from lmgym.errors import BackendError

Text = Literal["axtree", "html", "none"]
Pixels = Literal["none", "screenshot", "som"]
TICK = 500.0  # milliseconds of the page's time that an action takes
OPENING = 60.0  # seconds for a context and its first page
ACTING = 30.0  # seconds for an action, an observation or a question
LOOKS = 3  # tries of an observation whose page is left meanwhile
Result = TypeVar("Result")
Work = Callable[[IsolatedContext], Coroutine[Any, Any, Result]]


@dataclass(frozen=True)
class PageView:
    """An observation of the active tab."""

    text: str
    picture: NDArray[np.uint8] | None  # (height, width, 3)
    url: str
    tabs: tuple[tuple[str, str], ...]  # title and address of each
    active: int
    dialogs: tuple[str, ...]  # messages of dialogs during the last action

    @property
    def images(self) -> tuple[NDArray[np.uint8], ...]:
        """The picture as a reply's images."""
        return () if self.picture is None else (self.picture,)


class BrowserSession:
    """One browser context with its sites, its actions and its observations."""

    def __init__(
        self,
        sites: Sites,
        *,
        sets: Iterable[str] = ("bid", "nav", "tab", "chat", "infeas"),
        only: str = "",
        size: tuple[int, int] = (1280, 720),
        tick: float = TICK,
        files: Path | None = None,
        hidden: str = "",
        counted: str = "",
        patience: float = ACTING,
    ) -> None:
        """Configure the session; nothing starts before `open`.

        Args:
            sites: the sites that pages may load.
            sets: names of BrowserGym's action sets that are allowed.
            only: names of actions of these sets, by commas, that alone are allowed; "" for all.
            size: width and height of the window, in pixels.
            tick: milliseconds of virtual time per action.
            files: folder whose files may be uploaded.
            hidden: CSS selector of elements that no observation shows.
            counted: CSS selector of hidden elements that still use up a bid.
            patience: seconds for an action or an observation, after which BackendError is raised.
        """
        self.sites, self.names = sites, action_names(sets, only)
        self.size, self.tick, self.files, self.patience = size, tick, files, patience
        self.hidden, self.counted = hidden, counted
        self._context: IsolatedContext | None = None
        self._owner: BrowserThread | None = None
        self._release: Callable[[], object] | None = None

    def open(self, url: str) -> None:
        """Open `url` in a single tab, with only the cookies and storage that the sites define."""
        if self.sites.stored is not None:
            self.close()  # what they come with is given to a new context
        if self._context is None:
            owner = self._owner = shared_browser()
            self._context = owner.run(_start(owner, self.sites, self.size), OPENING)
            self._release = weakref.finalize(self, _drop, owner, self._context)
        self._run(lambda context: context.open(url), OPENING)

    def do(self, name: str, positional: Sequence[Any] = (), named: Mapping[str, Any] | None = None) -> str:
        """Perform an action of the policy, advance one tick, and return an error message or ""."""
        return self._do(name, positional, named or {}, self.names)

    def do_as_task(self, name: str, *arguments: Any) -> str:
        """Perform an action of the task's own, which the policy may lack, and otherwise do as `do`."""
        return self._do(name, arguments, {}, action_names(SETS))

    def _do(self, name: str, positional: Sequence[Any], named: Mapping[str, Any], allowed: Iterable[str]) -> str:
        try:
            arguments = bind(name, positional, named, allowed)
        except ActionRefused as error:
            name, arguments, wrong = "noop", {"wait_ms": self.tick}, str(error)
        else:
            wrong = ""

        async def act(context: IsolatedContext) -> str:
            action = getattr(Actions(context, self.files), name)
            return await context.do(name, action(**arguments), self.tick)

        return self._run(act) or wrong

    def wait(self) -> None:
        """Advance one tick."""
        self._run(lambda context: context.advance(self.tick))

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Run a script of the task in the active tab and return its result."""
        return self._run(lambda context: context.tab.page.evaluate(script, argument))

    def look(self, text: Text = "axtree", pixels: Pixels = "none", *, places: bool = False) -> PageView:
        """Return an observation of the active tab; with `places`, elements carry the coordinates of their centre."""
        hidden = self.hidden, self.counted
        return self._run(lambda context: _repeated(context, lambda: _look(context, hidden, text, pixels, places)))

    def pointing(self, x: float, y: float) -> str | None:
        """Return the call that clicks a pixel of the window, or None if actions take no coordinates."""
        return f"mouse_click({x:g}, {y:g})" if "mouse_click" in self.names else None

    def pressing(self, keys: Sequence[str]) -> str | None:
        """Return the call that types characters or presses one combination, or None if actions include neither."""
        name = "keyboard_type" if all(len(key) == 1 for key in keys) else "keyboard_press"
        return f"{name}({''.join(keys)!r})" if name in self.names else None

    @property
    def messages(self) -> tuple[str, ...]:
        """Messages sent to the user."""
        return tuple(self._context.messages) if self._context else ()

    @property
    def infeasible(self) -> str | None:
        """The reported reason why the task is infeasible, or None."""
        return self._context.infeasible if self._context else None

    @property
    def elapsed(self) -> float:
        """Milliseconds of virtual time since `open`."""
        return self._context.now if self._context else 0.0

    @property
    def blocked(self) -> Counter[str]:
        """Number of refused requests since `open`, by kind or origin."""
        return self._context.gate.blocked + self._context.refused if self._context else Counter()

    def close(self) -> None:
        """Close the context."""
        self._context = None
        if self._release is not None:
            self._release()
            self._release = None

    def _run(self, work: Work[Result], patience: float | None = None) -> Result:
        context = self._context
        if context is None or self._owner is None:
            raise BackendError("the browser session is not open")
        if self._owner.pid != os.getpid():
            raise BackendError("this browser session belongs to the parent process; open one after the fork")
        try:
            return self._owner.run(_guarded(context, work), patience or self.patience)
        except BaseException:  # an interrupt too, which leaves the page at an unknown point
            self.close()
            raise


async def _start(owner: BrowserThread, sites: Sites, size: tuple[int, int]) -> IsolatedContext:
    from playwright.async_api import Error

    running = await owner.ready()
    context = IsolatedContext(running, sites, size=size)
    owner.enter()
    starting = asyncio.ensure_future(context.start())
    try:
        await asyncio.shield(starting)
    except BaseException as error:
        await asyncio.wait([starting])  # the browser makes a context that was asked for, awaited or not
        await context.close()
        owner.leave()
        if not isinstance(error, Error):  # cancelled: it took too long, or the caller was interrupted
            raise
        context.check()  # a browser that died is one event, however many contexts were on their way
        raise BackendError(f"no browser context: {error.message}") from error
    return context


async def _guarded(context: IsolatedContext, work: Work[Result]) -> Result:
    """Run `work`; raise BackendError for an error of Playwright."""
    from playwright.async_api import Error

    try:
        context.check()
        result = await work(context)
        context.check()
    except Error as error:
        context.check()
        raise BackendError(f"the browser broke: {error.message.partition(chr(10))[0]}") from error
    return result


async def _repeated(context: IsolatedContext, look: Callable[[], Awaitable[PageView]]) -> PageView:
    """Observe the active tab, and again if its page is left meanwhile, by a redirect for example."""
    from playwright.async_api import Error

    for _ in range(LOOKS - 1):
        try:
            return await look()
        except Error as error:
            if "Execution context was destroyed" not in error.message:
                raise
        await context.settle()
    return await look()


async def _look(
    context: IsolatedContext, hidden: tuple[str, str], text: Text, pixels: Pixels, places: bool
) -> PageView:
    elements = await view.mark(context, *hidden)
    words = ""
    if text == "axtree":
        words = await view.tree(context, elements, places=places)
    elif text == "html":
        words = await view.html(context, hidden[0], places=places)
    picture = None
    if pixels != "none":
        marks = view.worth_marking(elements) if pixels == "som" else ()
        picture = view.pixels(await view.picture(context), marks)
    pages = [tab.page for tab in context.tabs]
    titles = [(await page.title(), page.url) for page in pages] if len(pages) > 1 else [("", pages[0].url)]
    return PageView(words, picture, context.tab.page.url, tuple(titles), context.active, tuple(context.dialogs))


def _drop(owner: BrowserThread, context: IsolatedContext) -> None:
    """Close a context from any thread, without waiting."""

    async def farewell() -> None:
        await context.close()
        owner.leave()

    if owner.loop.is_running() and owner.pid == os.getpid():
        asyncio.run_coroutine_threadsafe(farewell(), owner.loop)
