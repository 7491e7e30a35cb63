"""Tasks in WebArena's layout: ours on the portal, or the official ones on real sites."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from lmgym.backends.browser.gate import Sites, origin
from lmgym.env.env import Reply, python_function
from lmgym.errors import BackendError
from lmgym.tasks.webforms import helpers, official
from lmgym.tasks.webforms.browsing import Browsing
from lmgym.tasks.webforms.evaluators import EpisodeEnd, Judge, Scoring, evaluate
from lmgym.tasks.webforms.portal import HOME, Portal, furnished

RESET = "WEBARENA_RESET"  # environment variable: an address that restores the official sites
AND = " |AND| "
FURNITURE = [63]  # seed of the portal that our tasks are about
SCORINGS = ("strict", "official")
RESTORE = 600.0  # seconds that restoring the official sites may take


class Arena(Browsing):
    """A task in WebArena's layout; the score is 1 if all its evaluators pass."""

    def __init__(self, *, scoring: str = "strict", judge: str = "", **common: Any) -> None:
        """Choose the scoring rules.

        Args:
            scoring: "strict" closes known holes of the benchmark, "official" keeps them.
            judge: "python:module:function", asked (task, reference, answer, "fuzzy_match") whether an answer means
                the same as a reference and (task, reason, answer, "ua_match") whether it gives the reason why a task
                cannot be done; "" leaves out the tasks that need the first, and no reason passes for a report.
            common: options of every browser task: observe, pixels, places, tick, split.
        """
        super().__init__(**common)
        self.check_choices(scoring=(scoring, SCORINGS))
        self.scoring: Scoring = "strict" if scoring == "strict" else "official"
        self.judge: Judge | None = python_function(judge, "judge takes no models") if judge else None
        self.item: Mapping[str, Any] = {}

    def items(self) -> tuple[Mapping[str, Any], ...]:
        """Return all tasks of the split."""
        raise NotImplementedError

    def opened(self, item: Mapping[str, Any]) -> Sites:
        """Reset the sites and return those that may be loaded."""
        raise NotImplementedError

    def size(self) -> int:
        """Return the number of tasks that can be judged."""
        return len(self.items())

    def begin(self, index: int) -> Reply:
        """Open a task."""
        self.item = self.items()[index]
        return self.begin_at(self.opened(self.item), self.item["start_url"].split(AND), self.item["intent"])

    def judged(self) -> float:
        """Return the product of the task's evaluators."""
        messages, url = self.browser.messages, self.browser.look("none").url
        answer = messages[-1] if messages else None
        ending = EpisodeEnd(answer, self.browser.infeasible is not None, url, self._read)
        return evaluate(self.item, ending, scoring=self.scoring, judge=self.judge)

    def score_if_cut(self) -> float:
        """Return the official score of an answer "N/A" with `scoring="official"`, else 0."""
        return self.judged() if self.scoring == "official" else 0.0

    def fingerprint(self) -> str:
        """Return the task's number and intent."""
        return f"{self.item['task_id']} {self.item['intent']}"

    def _read(self, url: str, locator: str, prepare: Any) -> str:
        """Return what a locator evaluates to on a page, or the page's HTML."""
        if url != "last" and not self._opened(url):
            return ""
        for script in prepare:
            self.browser.evaluate(f"() => {{ try {{ {script} }} catch (error) {{}} }}")
        if not locator.strip():
            return str(self.browser.evaluate("() => document.documentElement.outerHTML"))
        if locator.startswith(helpers.PREFIX):
            return helpers.ask(locator, self._live())
        return str(
            self.browser.evaluate(f"() => {{ try {{ return {locator}; }} catch (error) {{ return ''; }} }}") or ""
        )

    def _opened(self, url: str) -> bool:
        """Open a page for an evaluator; return False if a helper leads to no page."""
        computed = url.startswith(helpers.PREFIX)
        there = helpers.ask(url, self._live()) if computed else url
        wrong = self.browser.do_as_task("goto", there)
        if wrong and not computed:
            raise BackendError(f"the evaluator cannot open {there}: {wrong}")
        return not wrong

    def _live(self) -> helpers.LivePage:
        return helpers.LivePage(self.browser.look("none").url, self.browser.evaluate)


class PortalArena(Arena):
    """Our tasks in WebArena's layout; each starts from a newly furnished portal."""

    def items(self) -> tuple[Mapping[str, Any], ...]:
        """Return our tasks."""
        return own_tasks()

    def opened(self, item: Mapping[str, Any]) -> Sites:
        """Furnish the portal; sign in the user if the task requires it."""
        state = furnished(FURNITURE)
        state.user = "ada" if item["require_login"] else ""
        self.portal = Portal(state)
        return Sites({HOME: self.portal})

    def oracle(self) -> Iterator[str]:
        """Yield the calls of the task's plan."""
        return self.played([tuple(step) for step in self.item["plan"]], HOME)


class WebArena(Arena):
    """The official tasks on real sites, which a given address resets."""

    def items(self) -> tuple[Mapping[str, Any], ...]:
        """Return the official tasks that can be played here."""
        return official.chosen(judged=self.judge is not None).tasks

    def opened(self, item: Mapping[str, Any]) -> Sites:
        """Reset the sites through $WEBARENA_RESET and allow all of them."""
        if reset := os.environ.get(RESET):
            try:
                with urllib.request.urlopen(reset, timeout=RESTORE) as answer:
                    answer.read()
            except OSError as error:
                raise BackendError(f"${RESET} {reset}: {error}") from error
        there = frozenset(origin(url) for name in official.PLACES if (url := official.address(name)))
        return Sites(passed=there, stored=official.signed_in(item))


@cache
def own_tasks() -> tuple[Mapping[str, Any], ...]:
    """Return our tasks from `arena.json`, with the portal's address filled in."""
    text = resources.files(__package__).joinpath("arena.json").read_text(encoding="utf-8")
    return tuple(json.loads(text.replace("__PORTAL__", HOME)))
