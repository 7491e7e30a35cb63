"""The part that browser tasks with an address bar share: tabs, and the end of an episode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources
from string import Template
from typing import Any

from lmgym.backends.browser.calls import describe
from lmgym.backends.browser.gate import Sites
from lmgym.backends.browser.session import BrowserSession
from lmgym.env.browser_env import BrowserEnv
from lmgym.env.env import Reply

SETS = ("bid", "nav", "tab", "chat", "infeas")
SELECTED = """selector => {
  const found = document.querySelector(selector);
  return found && found.getAttribute('bid');
}"""


class Browsing(BrowserEnv):
    """A browser task with tabs and addresses; subclasses open it and judge its end."""

    def __init__(self, *, tick: int = 500, **common: Any) -> None:
        """Choose the observations; `tick` is the time in milliseconds of the page's clock per action."""
        super().__init__(**common)
        self.browser = BrowserSession(Sites(), sets=SETS, only=self.actions, size=self.window, tick=tick)
        self.goal = ""

    def judged(self) -> float:
        """Return the score of an episode that the policy ended."""
        raise NotImplementedError

    def watched(self) -> float | None:
        """Return the score if the episode has ended without a message to the user, else None."""
        return None

    def act(self, action: str) -> Reply:
        """Perform one call; a message to the user or a report ends the episode."""
        wrong = self.call(action)
        if not wrong:  # an action that failed completes nothing
            over = self.browser.messages or self.browser.infeasible is not None
            score = self.judged() if over else self.watched()
            if score is not None:
                return Reply("The episode is over.", done=True, score=score, reward=score, images=self.pictures())
        return self._reply(f"Error: {wrong}\n\n" if wrong else "", valid=not wrong)

    def begin_at(self, sites: Sites, urls: Iterable[str], goal: str) -> Reply:
        """Return the first observation of an episode that starts at these addresses, one tab each."""
        self.close()
        self.browser.sites = sites
        first, *more = urls
        self.browser.open(first)
        for url in more:
            self.browser.do_as_task("new_tab")
            self.browser.do_as_task("goto", url)
        self.browser.do_as_task("tab_focus", 0)
        self.goal = goal
        prompt = Template(resources.files(__package__).joinpath("prompt.md").read_text(encoding="utf-8"))
        reply = self._reply("")
        reply.text = prompt.substitute(actions=describe(self.browser.names), goal=goal, page=reply.text)
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
        seen = self.look()
        lines = [f"Address: {seen.url}", *(f"Dialog: {message}" for message in seen.dialogs), "", seen.text]
        if len(seen.tabs) > 1:
            current = {seen.active: " (current)"}
            tabs = enumerate(seen.tabs)
            lines[:0] = [f"Tab {number}{current.get(number, '')}: {name or url}" for number, (name, url) in tabs]
        return Reply(before + "\n".join(lines), images=seen.images, valid=valid)
