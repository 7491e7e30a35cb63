"""Every task keeps the promises that `check_task` lists; `make check` covers those that need extra data as well."""

import pytest

from lmgym.env.registry import specs
from lmgym.env.testing import check_task
from tests.components import chromium, desktop, stockfish

FAMILIES = (
    "babyai",
    "chess",
    "click_target",
    "doctor",
    "connect_four",
    "frozen_lake",
    "guess_number",
    "kuhn_poker",
    "leduc_poker",
    "maze",
    "negotiate",
    "retail_desk",
    "mini_hanabi",
    "sokoban",
    "text_craft",
    "text_nav",
    "try_again",
    "tic_tac_toe",
    "visual_search",
    "wordle",
)
IN_CHROMIUM = ("lmgym/Phone-v0", "lmgym/WebForms-v0", "lmgym/WebFormsArena-v0", "lmgym/WebShopBrowser-v0")
SLOW = (
    "lmgym/BabyAI-v0",
    "lmgym/Chess-v0",
    "lmgym/ChessGreedy-v0",
    "lmgym/ClickTargetDesktop-v0",
    "lmgym/VisualSearchLarge-v0",
)
WITHOUT_FILES = (
    "lmgym/ScreenSpot-v0",
    "lmgym/TextCraftOfficial-v0",
    "lmgym/TextNavOfficial-v0",
    "lmgym/TryAgainReasoningGym-v0",
)
IDS = [spec.id for spec in specs().values() if spec.name in FAMILIES and spec.id not in WITHOUT_FILES]


@pytest.mark.parametrize(
    "task",
    [
        *("lmgym/WebShop-v0", "lmgym/WebShopHuman-v0"),
        *(pytest.param(task, marks=[pytest.mark.slow] if task in SLOW else []) for task in IDS),
    ],
)
def test_a_task_keeps_what_every_task_promises(task):
    if task == "lmgym/Chess-v0":
        stockfish()
    check_task(task)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", IN_CHROMIUM)
def test_a_task_in_chromium_keeps_what_every_task_promises(task):
    chromium()
    check_task(task)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", ["lmgym/TextArena-v0", "lmgym/TextArena-Nim-v0", "lmgym/TextArena-Sokoban-v0"])
def test_a_game_of_textarena_keeps_what_every_task_promises(task):
    check_task(task)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_task_on_the_desktop_keeps_what_every_task_promises():
    desktop()
    check_task("lmgym/Desktop-v0")
