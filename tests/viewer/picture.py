"""The README's picture: `python -m tests.viewer.picture` plays WebShop by mouse and photographs the replay.

Writes docs/pictures/replay.png: a turn of the file that `lmgym replay --html` writes.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from lmgym.backends.browser.process import executable
from lmgym.cli import main as lmgym
from lmgym.env.registry import build
from lmgym.evaluation.record import PictureFolder
from lmgym.policy.load import load_policy
from lmgym.rollout import episodes
from lmgym.rollout.engine import Engine
from lmgym.types import Job

TASK, INDEX, TURN = "lmgym/WebShopBrowser-v0", 3, 2
OPTIONS = {"observe": "none", "pixels": "screenshot"}
TARGET = Path(__file__).parents[2] / "docs/pictures/replay.png"
CLICK = re.compile(r"click\('(\w+)'\)")
actions: list[str] = []


def by_mouse() -> Iterator[str]:
    """The oracle's actions, elements clicked by their places."""
    env = build(TASK, split="test", **OPTIONS)
    env.reset(seed=0, options={"index": INDEX})
    for action in env.unwrapped.oracle():
        if found := CLICK.fullmatch(action):
            tree = env.unwrapped.browser.look("axtree", places=True).text
            place = re.search(rf'\[{found[1]}\] .*at="(\d+),(\d+)"', tree)
            action = env.unwrapped.pointing(float(place[1]), float(place[2])) if place else action
        yield action
        if env.step(action)[2]:
            break
    env.close()


def said(messages: Sequence[Mapping[str, Any]]) -> str:
    """The next of the actions."""
    return actions[sum(message["role"] == "assistant" for message in messages)]


def main() -> None:
    actions.extend(by_mouse())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy = load_policy("python:tests.viewer.picture:said")
        engine = Engine(pictures=PictureFolder(folder / "pictures"))
        kept = list(engine.run(policy, [Job(task=TASK, split="test", index=INDEX, options=OPTIONS)]))
        episodes.write(folder / "episodes.jsonl", kept)
        sys.argv = ["lmgym", "replay", str(folder / "episodes.jsonl"), "--html", str(folder / "out.html")]
        try:
            lmgym()
        except SystemExit as ended:
            if ended.code:
                raise
        photograph(folder / "out.html")


def photograph(page_of: Path) -> None:
    """Take a picture of a turn."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=executable(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 760, "height": 900}, color_scheme="light")
        page.goto(page_of.as_uri())
        page.wait_for_selector(f"html[data-ready] #turn-{TURN}")
        turn = page.locator(f"#turn-{TURN}")
        turn.scroll_into_view_if_needed()
        turn.locator(".picture .point").wait_for()
        turn.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    from tests.viewer import picture

    picture.main()  # under the name by which the policy finds it
