"""The part that browser tasks with an address bar share: observations, actions, the end of an episode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources
from string import Template
from typing import Any

from lmgym.backends.browser.calls import describe
from lmgym.backends.browser.gate import Sites
from lmgym.backends.browser.session import BrowserSession, PageView, check_view
from lmgym.env.actions import parse_function_call
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.errors import InstanceError

WINDOW = (1280, 720)  # width and height in pixels
SETS = ("bid", "nav", "tab", "chat", "infeas")
SELECTED = """selector => {
  const found = document.querySelector(selector);
  return found && found.getAttribute('bid');
}"""


class Browsing(TextEnv):
    """A browser task; subclasses open it and judge its end."""

    def __init__(
        self, *, observe: str = "axtree", pixels: str = "none", places: bool = False, tick: int = 500, **common: Any
    ) -> None:
        """Choose the observations.

        Args:
            observe: "axtree" shows the accessibility tree, "html" short HTML, "none" addresses only.
            pixels: "screenshot" adds a picture of the window, "som" one with marks, "none" nothing.
            places: True adds the coordinates of each element's centre.
            tick: milliseconds of the page's clock per action.
            common: options of every task: split, others, render_mode.
        """
        check_view(observe, pixels)
        if pixels != "none":
            self.PICTURES = Images(WINDOW[1], WINDOW[0])  # type: ignore[misc]  # of this environment
        super().__init__(**common)
        self.observe, self.pixels, self.places, self.tick = observe, pixels, places, tick
        self.session: BrowserSession | None = None
        self.goal = ""

    def judged(self) -> float:
        """Return the score of an episode that the policy ended."""
        raise NotImplementedError

    def watched(self) -> float | None:
        """Return the score if the episode has ended without a message to the user, else None."""
        return None

    def act(self, action: str) -> Reply:
        """Perform one call; a message to the user or a report ends the episode."""
        session = self.browser
        call = parse_function_call(action)
        if call is None:
            session.wait()
            return self._reply("Error: answer with one call, such as click('12')\n\n", valid=False)
        wrong = session.do(call.name, call.positional, call.arguments)
        if not wrong:  # an action that failed completes nothing
            over = session.messages or session.infeasible is not None
            score = self.judged() if over else self.watched()
            if score is not None:
                return Reply("The episode is over.", done=True, score=score, reward=score, images=self._pictures())
        return self._reply(f"Error: {wrong}\n\n" if wrong else "", valid=not wrong)

    def pointing(self, x: float, y: float) -> str | None:
        """Return the call that clicks a pixel."""
        return self.browser.pointing(x, y)

    def close(self) -> None:
        """Close the browser's context."""
        if self.session is not None:
            self.session.close()

    @property
    def browser(self) -> BrowserSession:
        """The session of the open episode."""
        if self.session is None:
            raise InstanceError("no episode is open; call reset() first")
        return self.session

    def begin_at(self, sites: Sites, urls: Iterable[str], goal: str) -> Reply:
        """Return the first observation of an episode that starts at these addresses, one tab each."""
        self.close()
        self.session = BrowserSession(sites, sets=SETS, size=WINDOW, tick=self.tick)
        first, *more = urls
        self.session.open(first)
        for url in more:
            self.session.do("new_tab")
            self.session.do("goto", [url])
        self.session.do("tab_focus", [0])
        self.goal = goal
        prompt = Template(resources.files(__package__).joinpath("prompt.md").read_text(encoding="utf-8"))
        reply = self._reply("")
        reply.text = prompt.substitute(actions=describe(self.session.names), goal=goal, page=reply.text)
        return reply

    def played(self, plan: Iterable[tuple[str, ...]], home: str) -> Iterator[str]:
        """Yield the calls of a plan; "#id" stands for the bid of an element, "/path" for an address of `home`."""
        for name, *arguments in plan:
            if arguments and arguments[0].startswith("#"):
                arguments[0] = self.browser.evaluate(SELECTED, arguments[0])
            elif name == "goto" and arguments[0].startswith("/"):
                arguments[0] = home + arguments[0]
            yield f"{name}({', '.join(map(repr, arguments))})"

    def _reply(self, before: str, *, valid: bool = True) -> Reply:
        seen = self.browser.look(self.observe, self.pixels, places=self.places)  # type: ignore[arg-type]  # checked
        return Reply(before + _shown(seen), images=seen.images, valid=valid)

    def _pictures(self) -> tuple[Any, ...]:
        if self.pixels == "none":
            return ()
        return (self.browser.look("none", self.pixels).picture,)  # type: ignore[arg-type]  # checked


def _shown(seen: PageView) -> str:
    """Return the text of an observation: tabs, address, dialogs, page."""
    lines = [
        f"Tab {i}{' (current)' if i == seen.active else ''}: {name or url}" for i, (name, url) in enumerate(seen.tabs)
    ]
    head = lines if len(lines) > 1 else []
    return "\n".join(
        [*head, f"Address: {seen.url}", *(f"Dialog: {message}" for message in seen.dialogs), "", seen.text]
    )
