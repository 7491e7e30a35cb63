"""BrowserGym's actions, with its names and argument order. Their docstrings are part of the prompt.

Two differences: `fill` has no `enable_autocomplete_menu`, and the set "python", which runs code, does not exist. An
action that fails raises ActionRefused, whose message is part of the next observation. No action waits for something
that only real time would bring.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lmgym.backends.browser.context import ActionRefused, IsolatedContext
from lmgym.backends.browser.keys import unknown
from lmgym.backends.browser.scripts import DRAWN, script
from lmgym.errors import BackendError

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

Button = Literal["left", "middle", "right"]
Modifier = Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]
BID = re.compile(r"((?:[a-z][A-Z]*)*)(\d{1,9})?")
FRAME = re.compile(r"[a-z][A-Z]*")
PATIENCE = 10_000  # milliseconds for an action on an element that is ready
LOAD = 10_000  # milliseconds for a page to load
FARTHEST = 100_000.0  # pixels
LONGEST = 100_000  # characters filled in
TYPED = 2_000  # characters typed key by key
WAIT = 10_000.0  # milliseconds that noop may wait
OUTSIDE = (-1.0, -1.0)  # releasing a button here clicks nothing


OPTIONS = """(element, wanted) => {
  const list = element instanceof HTMLLabelElement ? element.control : element;
  if (!(list instanceof HTMLSelectElement)) throw new Error('PageElement is not a <select> element');
  const fits = (option, words) => !option.matches(':disabled')
    && [option.value, option.label, option.text].some(text => text.trim() === words);
  return wanted.map(words => [...list.options].findIndex(option => fits(option, words)));
}"""


class Actions:
    """The actions of one browser context, one per public method."""

    def __init__(self, context: IsolatedContext, files: Path | None = None) -> None:
        self._context = context
        self._files = files  # folder whose files may be uploaded

    # By element ------------------------------------------------------------------------------------------------

    async def click(self, bid: str, button: Button = "left", modifiers: Sequence[Modifier] = ()) -> None:
        """Click an element."""
        await self._click(bid, button, modifiers, count=1)

    async def dblclick(self, bid: str, button: Button = "left", modifiers: Sequence[Modifier] = ()) -> None:
        """Click an element twice."""
        await self._click(bid, button, modifiers, count=2)

    async def hover(self, bid: str) -> None:
        """Move the mouse onto an element."""
        await self._page.mouse.move(*await self._point(bid))

    async def fill(self, bid: str, value: str) -> None:
        """Replace what a field holds."""
        if len(value) > LONGEST:
            raise ActionRefused(f"ValueError: {len(value)} characters are more than {LONGEST}")
        await self._with_ready(bid, lambda element: element.fill(value, timeout=PATIENCE), editable=True)

    async def clear(self, bid: str) -> None:
        """Empty a field."""
        await self._with_ready(bid, lambda element: element.fill("", timeout=PATIENCE), editable=True)

    async def check(self, bid: str) -> None:
        """See that a checkbox or radio button is on."""
        await self._with_ready(bid, lambda element: element.check(timeout=PATIENCE), bare=True)

    async def uncheck(self, bid: str) -> None:
        """See that a checkbox is off."""
        await self._with_ready(bid, lambda element: element.uncheck(timeout=PATIENCE), bare=True)

    async def select_option(self, bid: str, options: str | Sequence[str]) -> None:
        """Choose options of a list by their value or label."""
        wanted = [options.strip()] if isinstance(options, str) else [each.strip() for each in options]
        places = await (await self._element(bid)).evaluate(OPTIONS, wanted)
        if -1 in places:
            raise ActionRefused(f"ValueError: element {bid} has no option {wanted[places.index(-1)][:100]!r} to choose")
        await self._with_ready(bid, lambda element: element.select_option(index=places, timeout=PATIENCE))

    async def press(self, bid: str, key_comb: str) -> None:
        """Focus an element and press a key or a combination such as Control+a."""
        _known(unknown(key_comb))
        await (await self._element(bid)).press(key_comb, timeout=PATIENCE)

    async def focus(self, bid: str) -> None:
        """Focus an element."""
        await (await self._element(bid)).focus()

    async def drag_and_drop(self, from_bid: str, to_bid: str) -> None:
        """Drag one element onto another."""
        if await (await self._element(to_bid)).bounding_box() is None:
            raise ActionRefused(f"Error: element {to_bid} is not visible")
        await self._aim(*await self._point(from_bid))
        await self._page.mouse.down()
        place = OUTSIDE  # unless the target still exists
        try:
            place = await self._point(to_bid, covered=True)
        finally:
            await self._page.mouse.move(*place)
            await self._page.mouse.up()

    async def upload_file(self, bid: str, file: str | Sequence[str]) -> None:
        """Give files of the task's folder to a file field."""
        names = [file] if isinstance(file, str) else list(file)
        await (await self._element(bid)).set_input_files([self._file(name) for name in names], timeout=PATIENCE)

    async def scroll(self, delta_x: float, delta_y: float) -> None:
        """Turn the wheel by pixels, right and down."""
        await self._page.mouse.wheel(_pixels(delta_x), _pixels(delta_y))
        await self._context.tab.devtools.send("Runtime.evaluate", {"expression": DRAWN, "awaitPromise": True})

    # By coordinate ---------------------------------------------------------------------------------------------

    async def scroll_at(self, x: float, y: float, delta_x: float, delta_y: float) -> None:
        """Turn the wheel at a place."""
        await self._page.mouse.move(_pixels(x), _pixels(y))
        await self.scroll(delta_x, delta_y)

    async def mouse_move(self, x: float, y: float) -> None:
        """Move the mouse."""
        await self._page.mouse.move(_pixels(x), _pixels(y))

    async def mouse_up(self, x: float, y: float, button: Button = "left") -> None:
        """Move the mouse and release a button."""
        await self._page.mouse.move(_pixels(x), _pixels(y))
        await self._page.mouse.up(button=button)

    async def mouse_down(self, x: float, y: float, button: Button = "left") -> None:
        """Move the mouse and hold a button."""
        await self._aim(x, y)
        await self._page.mouse.down(button=button)

    async def mouse_click(self, x: float, y: float, button: Button = "left") -> None:
        """Click at a place."""
        await self._aim(x, y)
        await self._page.mouse.click(_pixels(x), _pixels(y), button=button)

    async def mouse_dblclick(self, x: float, y: float, button: Button = "left") -> None:
        """Click at a place twice."""
        await self._aim(x, y)
        await self._page.mouse.dblclick(_pixels(x), _pixels(y), button=button)

    async def mouse_drag_and_drop(self, from_x: float, from_y: float, to_x: float, to_y: float) -> None:
        """Drag from one place to another."""
        await self._aim(from_x, from_y)
        await self._page.mouse.down()
        await self._page.mouse.move(_pixels(to_x), _pixels(to_y))
        await self._page.mouse.up()

    async def mouse_upload_file(self, x: float, y: float, file: str | Sequence[str]) -> None:
        """Click at a place that asks for files, and give files of the task's folder."""
        names = [self._file(name) for name in ([file] if isinstance(file, str) else list(file))]
        if not names:
            raise ActionRefused("ValueError: no file is named")
        await self._aim(x, y)
        async with self._page.expect_file_chooser(timeout=PATIENCE) as chooser:
            await self._page.mouse.click(_pixels(x), _pixels(y))
        await (await chooser.value).set_files(names, timeout=PATIENCE)

    async def keyboard_press(self, key: str) -> None:
        """Press a key or a combination."""
        _known(unknown(key))
        await self._page.keyboard.press(key)

    async def keyboard_down(self, key: str) -> None:
        """Hold a key."""
        await self._page.keyboard.down(key)

    async def keyboard_up(self, key: str) -> None:
        """Release a key."""
        await self._page.keyboard.up(key)

    async def keyboard_type(self, text: str) -> None:
        """Type a text, key by key."""
        if len(text) > TYPED:
            raise ActionRefused(f"ValueError: {len(text)} characters are more than {TYPED}; use keyboard_insert_text")
        await self._page.keyboard.type(text)

    async def keyboard_insert_text(self, text: str) -> None:
        """Put a text where the focus is, without keys."""
        if len(text) > LONGEST:
            raise ActionRefused(f"ValueError: {len(text)} characters are more than {LONGEST}")
        await self._page.keyboard.insert_text(text)

    # By address and tab ----------------------------------------------------------------------------------------

    async def goto(self, url: str) -> None:
        """Open an address."""
        if not self._context.allow(url):
            raise ActionRefused(f"ValueError: {url[:200]!r} is outside of this task's sites")
        await self._page.goto(url, timeout=LOAD)

    async def go_back(self) -> None:
        """Go back in the tab's history."""
        await self._page.go_back(timeout=LOAD)

    async def go_forward(self) -> None:
        """Go forward in the tab's history."""
        await self._page.go_forward(timeout=LOAD)

    async def new_tab(self) -> None:
        """Open an empty tab and go there."""
        await self._context.open_tab()

    async def tab_close(self) -> None:
        """Close the tab."""
        await self._context.close_tab()

    async def tab_focus(self, index: int) -> None:
        """Go to another tab."""
        if not 0 <= index < len(self._context.tabs):
            raise ActionRefused(f"ValueError: there is no tab {index}; tabs are 0 to {len(self._context.tabs) - 1}")
        self._context.active = index
        await self._page.bring_to_front()

    # By word ---------------------------------------------------------------------------------------------------

    async def send_msg_to_user(self, text: str) -> None:
        """Say something to the user."""
        self._context.messages.append(text)

    async def report_infeasible(self, reason: str) -> None:
        """Say that the task cannot be done."""
        self._context.infeasible = reason

    async def noop(self, wait_ms: float = 1000) -> None:
        """Do nothing for so many milliseconds of the page's time."""
        if not 0 <= wait_ms <= WAIT:
            raise ActionRefused(f"ValueError: wait_ms is between 0 and {WAIT:g}; got {wait_ms:g}")
        self._context.wait = wait_ms

    # Inside ----------------------------------------------------------------------------------------------------

    @property
    def _page(self) -> Page:
        return self._context.tab.page

    async def _click(self, bid: str, button: Button, modifiers: Sequence[Modifier], count: int) -> None:
        x, y = await self._point(bid)
        await self._aim(x, y)
        for key in modifiers:
            await self._page.keyboard.down(key)
        try:
            await self._page.mouse.click(x, y, button=button, click_count=count)
        finally:
            for key in modifiers:
                await self._page.keyboard.up(key)

    async def _aim(self, x: float, y: float) -> None:
        """Move the mouse and wait for what it triggers: an image shown on hover has no size before it is loaded."""
        await self._page.mouse.move(_pixels(x), _pixels(y))
        await self._context.settle()

    async def _element(self, bid: str) -> ElementHandle:
        match = BID.fullmatch(bid)
        if match is None or not bid:
            raise ActionRefused(f"ValueError: {bid[:50]!r} is no bid")
        frame: Frame | None = self._page.main_frame
        path = ""
        for piece in FRAME.findall(match[1]) if match[2] else FRAME.findall(match[1])[:-1]:
            path += piece
            handle = await frame.query_selector(f'[bid="{path}"]') if frame else None
            frame = await handle.content_frame() if handle else None
        handle = await frame.query_selector(f'[bid="{bid}"]') if frame else None
        if handle is None:
            raise ActionRefused(f"ValueError: no element with bid {bid!r}")
        return handle

    async def _with_ready(
        self, bid: str, act: Callable[[ElementHandle], Awaitable[object]], *, editable: bool = False, bare: bool = False
    ) -> None:
        """Call `act` on an element that is visible, enabled and, if required, editable or not covered.

        Refuse any other element at once: virtual time stands still, so waiting cannot help. Raise BackendError if an
        element is ready and the browser still takes too long.
        """
        from playwright.async_api import TimeoutError

        element = await self._ready(bid, editable=editable, bare=bare)
        try:
            await act(element)
        except TimeoutError as error:
            await self._ready(bid, editable=editable, bare=bare)
            raise BackendError(f"the browser took longer than {PATIENCE / 1000:g} s for an action") from error

    async def _ready(self, bid: str, *, editable: bool, bare: bool) -> ElementHandle:
        element = await self._element(bid)
        if not await element.is_visible():
            raise ActionRefused(f"Error: element {bid} is not visible")
        if not await element.is_enabled():
            raise ActionRefused(f"Error: element {bid} is disabled")
        if editable and not await element.is_editable():
            raise ActionRefused(f"Error: element {bid} cannot be written into")
        if bare:
            await self._point(bid)
        return element

    async def _point(self, bid: str, *, covered: bool = False) -> tuple[float, float]:
        """Return where to click an element: its centre, or another point that nothing covers."""
        element = await self._element(bid)
        place = await element.evaluate(script("point.js"))
        if isinstance(place, str) and covered and (box := await element.bounding_box()):
            return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        if isinstance(place, str):
            raise ActionRefused(f"Error: element {bid} {place}")
        x, y = place
        frame = await element.owner_frame()
        if frame is not None and frame.parent_frame is not None:
            outer = await frame.frame_element()
            around = await outer.bounding_box()
            left, top = await outer.evaluate("frame => [frame.clientLeft, frame.clientTop]")
            return (x + around["x"] + left, y + around["y"] + top) if around else (x, y)
        return x, y

    def _file(self, name: str) -> Path:
        path = (self._files / name).resolve() if self._files and "\0" not in name else None
        if path is None or not path.is_relative_to(Path(self._files or "").resolve()) or not path.is_file():
            raise ActionRefused(f"ValueError: {name[:100]!r} is no file of this task")
        return path


def _pixels(value: float) -> float:
    return max(-FARTHEST, min(FARTHEST, value))


def _known(missing: str | None) -> None:
    """Refuse a key combination with an unknown key before any key is pressed."""
    if missing is not None:
        raise ActionRefused(f"Error: Unknown key: {missing[:50]!r}")
