"""Five hundred malformed actions a task: answered, never raised. Where Chromium takes its time, a sample by default."""

from __future__ import annotations

from typing import Any

import pytest
from malformed import DOZEN, MALFORMED, torment

from lmgym.env.registry import build
from lmgym.tasks.webshop.view import MODES
from tests.components import chromium
from tests.sampled import sampled

IN_PROCESS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("WebShop-v0", {"mode": mode}) for mode in MODES),
    ("WebShopHuman-v0", {}),
    *((task, {}) for task in ("ClickTarget-v0", "ClickTargetDesktop-v0", "VisualSearch-v0", "VisualSearchLarge-v0")),
    *((task, {}) for task in ("VisualSearchMGPO-v0", "VisualSearchViGoRL-v0")),
)
IN_CHROMIUM: tuple[tuple[str, dict[str, Any]], ...] = (
    ("WebShopBrowser-v0", {}),
    ("Phone-v0", {}),
    ("WebForms-v0", {}),
    ("WebFormsArena-v0", {}),
    ("MiniWoB-v0", {"split": "train", "each": 8}),  # 500 of 8 a page: each page in turn
    ("MiniWoB-v0", {"split": "test", "each": 8}),
)
PAGES = [(f"MiniWoB-{page}-v0", {}) for page in DOZEN]


def answered(task: str, every: int, *, each: int = 50, **options: Any) -> None:
    env = build(task, max_turns=10_000, **options)
    seen = torment(env, MALFORMED[::every], each=each)
    env.close()
    assert seen[False] > seen.total() / 4  # MGPO takes whatever is said in the second turn for an answer
    assert seen[True] > 0


def test_there_are_five_hundred_and_few_are_alike():
    assert len(MALFORMED) == 500
    assert len(set(MALFORMED)) > 450
    for part in ("\\ud800", "\ud800", "nan", "1e308", "'999999'", "click('", "search[", "crop(", "<think>", '{"name"'):
        assert any(part in action for action in MALFORMED), part


@pytest.mark.parametrize(("task", "options"), IN_PROCESS)
def test_500_malformed_actions_never_raise(task, options):
    answered(task, 1, **options)


@pytest.fixture(scope="module", name="chromium")
def there() -> str:
    return chromium()


@pytest.mark.parametrize(("task", "every"), [("WebShopBrowser-v0", 25), ("WebForms-v0", 10), ("MiniWoB-v0", 10)])
def test_some_of_them_never_raise_in_chromium(chromium, task, every):
    answered(task, every, each=10)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("task", "options"),
    [*(pytest.param(*case, marks=pytest.mark.slow) for case in IN_CHROMIUM), *sampled(PAGES, every=4)],
)
def test_500_malformed_actions_never_raise_in_chromium(chromium, task, options):
    answered(task, 1, **options)
