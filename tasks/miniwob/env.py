"""MiniWoB++: small web pages, one goal each, judged by the page itself."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from lmgym.backends.browser.calls import describe
from lmgym.backends.browser.gate import Sites, origin
from lmgym.backends.browser.session import BrowserSession
from lmgym.env.browser_env import BrowserEnv
from lmgym.env.env import Reply
from lmgym.errors import BackendError, InstanceError, MissingExtra
from lmgym.tasks.miniwob import FLIGHTS, PAGES, SPEC, TEST, TRAIN
from lmgym.tasks.miniwob.pages import HOME, pages

DATA, URL = "MINIWOB_DATA", "MINIWOB_URL"  # environment variables: the pages' folder, or where they are served
HIDDEN = "#reward-display, #sync-task-cover, #click-canvas, #attention-canvas, #query, #query-wrap"
COUNTED = "#query, #query-wrap"  # BrowserGym empties it, and removes the others
FIRST_SEED = {"train": 0, "test": 1_000_000}
READY = 20  # ticks that a page may take until it is ready
BEGIN = """([seed, mode]) => {
  if (core.EP_TIMER !== null) core.endEpisode(0);
  Math.seedrandom(seed);
  core.setDataMode(mode);
  core.startEpisodeReal();
  window.lmgymEpisode = true;  // gone when the page is loaded again
  clearTimeout(core.EP_TIMER);  // no end by time; the timer's name stays, by which the page knows that it plays
  core.clearTimer();
  for (const name of ['reward-display', 'click-canvas']) {  // what is for people only, and makes the page wider
    const shown = document.getElementById(name);
    if (shown) shown.style.display = 'none';
  }
}"""
GOAL = """() => {
  const said = core.getUtterance();
  return typeof said === 'string' ? said : said.utterance;
}"""
STATE = """() => typeof WOB_DONE_GLOBAL === 'undefined' || window.lmgymEpisode !== true ? null
  : [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_GLOBAL, String(WOB_REWARD_REASON || ''), location.pathname]"""


class MiniWoB(BrowserEnv):
    """Pages of MiniWoB++ in a browser; the score is the page's raw reward."""

    SPEC = SPEC

    def __init__(
        self, *, page: str = "", places: bool = True, decay: bool = False, tick: int = 500, **common: Any
    ) -> None:
        """Choose the page and the observations.

        Args:
            page: name of the one page to play; "" plays the split's pages in turn.
            places: True adds the coordinates of each element's centre, for actions by coordinate.
            decay: True lets the reward decrease over time as in the pages: to 0 at a page's time limit.
            tick: milliseconds of the page's clock per action.
            common: options of every browser task: observe, pixels, actions, split, others, render_mode.
        """
        if page and page not in PAGES:
            raise InstanceError(f"MiniWoB++ has no page {page!r}; it has {', '.join(PAGES)}")
        if tick < 0:
            raise InstanceError(f"tick is a time in milliseconds; got {tick}")
        self.window = size(page)
        super().__init__(places=places, **common)
        self.page, self.decay = page, decay
        sites, self._root = _sites()
        self.browser = BrowserSession(
            sites,
            sets=("bid", "coord"),
            only=self.actions,
            size=self.window,
            tick=tick,
            hidden=HIDDEN,
            counted=COUNTED,
        )
        self.goal = ""
        self.opened = ""  # name of the page that is open

    def begin(self, index: int) -> Reply:
        """Open a page: index i is seed i of a single page, or seed i // n of page i % n of n."""
        pages = (self.page,) if self.page else {"train": TRAIN, "test": TEST}[self.split]
        return self._open(pages[index % len(pages)], FIRST_SEED[self.split] + index // len(pages), self.split)

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Open `{"page": name, "seed": n}`; "mode" is train or test, for the pages that have two sets of instances."""
        page, seed, mode = instance.get("page", self.page), instance.get("seed"), instance.get("mode", "train")
        allowed = page in PAGES and (not self.page or page == self.page) and mode in ("train", "test")
        if (
            not allowed
            or not isinstance(seed, int | np.integer)
            or isinstance(seed, bool)
            or not set(instance) <= {"page", "seed", "mode"}
        ):
            raise InstanceError(f"an authored MiniWoB++ instance is {{'page': name, 'seed': n}}; got {instance!r}")
        return self._open(page, int(seed), mode)

    def act(self, action: str) -> Reply:
        """Perform one call, advance the page's clock, and read the page's verdict."""
        wrong = self.call(action)
        state = self.browser.evaluate(STATE)
        if state is None or not state[-1].endswith(path(self.opened)):
            left = "You left the page: the episode is over."
            return Reply(left, done=True, score=0.0, reward={"raw": -1.0}, valid=not wrong)
        done, raw, decayed, reason, _ = state
        if not done:
            return self._reply(f"Error: {wrong}\n\n" if wrong else "", valid=not wrong)
        raw = min(float(raw), 0.0) if wrong else float(raw)  # an action that failed completes nothing
        terms = {"raw": raw, "decay": float(decayed) - raw} if self.decay and not wrong else {"raw": raw}
        verdict = f"The page says: {reason}. " if reason else ""
        text, score = f"{verdict}The episode is over.", max(0.0, min(1.0, raw))
        return Reply(text, images=self.pictures(), reward=terms, done=True, score=score, valid=not wrong)

    def fingerprint(self) -> str:
        """Return page, seed and mode, which define the instance."""
        return f"{self.opened} {self.seed} {self.mode}"

    def _open(self, page: str, seed: int, mode: str) -> Reply:
        self.opened, self.seed, self.mode = page, seed, mode
        self.browser.open(f"{self._root}/{path(page)}")
        self.browser.evaluate(BEGIN, [seed, mode])
        for _ in range(READY):
            self.browser.wait()
            if self.browser.evaluate("() => WOB_TASK_READY"):
                break
        else:
            raise BackendError(f"the page {page} was not ready after {READY} ticks")
        self.goal = str(self.browser.evaluate(GOAL))
        reply = self._reply("")
        prompt = Template(resources.files(__package__).joinpath("prompt.md").read_text(encoding="utf-8"))
        width, height = self.window
        reply.text = prompt.substitute(
            width=width, height=height, actions=describe(self.browser.names), goal=self.goal, page=reply.text
        )
        return reply

    def _reply(self, before: str, *, valid: bool = True) -> Reply:
        seen = self.look()
        return Reply(before + seen.text, images=seen.images, valid=valid)


class Solved(MiniWoB):
    """Pages that have a scripted player."""

    def oracle(self) -> Iterator[str]:
        """Yield the next call of the page's scripted player, which reads the page's own variables.

        It waits where nobody wrote one, and only on the pages of SOLVED does it always win. It clicks at places where
        `click` is not among the actions.
        """
        source = resources.files(__package__).joinpath("oracle.js").read_text(encoding="utf-8")
        memory: Any = None
        while True:
            given = [self.opened, self.goal, memory, self.seed, list(self.browser.names)]
            call, memory = self.browser.evaluate(source, given)
            yield call


def _sites() -> tuple[Sites, str]:
    """Return the sites that pages may load, and the address of their common folder."""
    if served := os.environ.get(URL, "").rstrip("/"):
        if served.startswith("file://"):
            return _of_folder(Path(unquote(urlsplit(served).path)).parent, URL)
        if not origin(served):
            raise InstanceError(f"${URL} is an http:// or file:// address; got {served!r}")
        return Sites(passed=frozenset({origin(served)})), served.rpartition("/")[0]
    if named := os.environ.get(DATA):
        return _of_folder(Path(named), DATA)
    spec = importlib.util.find_spec("miniwob")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(f"the pages of MiniWoB++ come with: pip install 'lmgym[web]' (or set ${DATA})")
    return _of_folder(Path(spec.submodule_search_locations[0]) / "html", "the package miniwob")


def _of_folder(root: Path, origin_of: str) -> tuple[Sites, str]:
    if not (root / "core" / "core.js").is_file():
        raise InstanceError(f"{root}, named by {origin_of}, has no core/core.js: it is not the folder miniwob/html")
    return Sites({HOME: pages(root)}), HOME


def path(page: str) -> str:
    """Return the path of a page below the common folder."""
    if page in FLIGHTS:
        return f"flight/{page.removeprefix('flight-')}/wrapper.html"
    return f"miniwob/{page}.html"


def size(page: str) -> tuple[int, int]:
    """Return width and height of a page's window, in pixels."""
    return (375, 667) if page in FLIGHTS else (160, 210)
