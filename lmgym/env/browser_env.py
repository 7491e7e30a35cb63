"""The part that browser tasks share: how a page is shown, and calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmgym.env.actions import parse_function_call
from lmgym.env.env import TextEnv
from lmgym.env.spaces import Images

OBSERVE, PIXELS = ("axtree", "html", "none"), ("none", "screenshot", "som")


class BrowserEnv(TextEnv):
    """A task in a browser; subclasses make the session `browser` of `lmgym.backends.browser`."""

    window = (1280, 720)  # width and height in pixels
    browser: Any

    def __init__(
        self, *, observe: str = "axtree", pixels: str = "none", places: bool = False, actions: str = "", **common: Any
    ) -> None:
        """Choose the observations and the actions.

        Args:
            observe: "axtree" shows the accessibility tree, "html" short HTML, "none" nothing of the page.
            pixels: "screenshot" adds a picture of the window, "som" one with marks, "none" nothing.
            places: True adds the coordinates of each element's centre, for actions by coordinate.
            actions: names of the actions that are described and allowed, by commas; "" for all of the task's.
            common: options of every task: split, others, render_mode.
        """
        if pixels != "none":
            self.PICTURES = Images(self.window[1], self.window[0])  # type: ignore[misc]  # of this environment
        super().__init__(**common)
        self.check_choices(observe=(observe, OBSERVE), pixels=(pixels, PIXELS))
        self.observe, self.pixels, self.places, self.actions = observe, pixels, places, actions

    def call(self, action: str) -> str:
        """Perform one call, advance the page's clock and return an error message or ""."""
        call = parse_function_call(action)
        if call is None:
            self.browser.wait()
            return "answer with one call, such as click('12')"
        return str(self.browser.do(call.name, call.positional, call.arguments))

    def look(self) -> Any:
        """Return the page as the options show it."""
        return self.browser.look(self.observe, self.pixels, places=self.places)

    def pictures(self) -> tuple[Any, ...]:
        """Return the picture of the page alone, if there are pictures."""
        return () if self.pixels == "none" else tuple(self.browser.look("none", self.pixels).images)

    def pointing(self, x: float, y: float) -> str | None:
        """Return the call that clicks a pixel."""
        call: str | None = self.browser.pointing(x, y)
        return call

    def pressing(self, keys: Sequence[str]) -> str | None:
        """Return the call that types characters or presses one combination."""
        call: str | None = self.browser.pressing(keys)
        return call

    def close(self) -> None:
        """Close the browser's context."""
        self.browser.close()
