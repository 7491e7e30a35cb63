"""Goals on the desktop: the oracle, doing nothing, saving, and other files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from typing import Any

import numpy as np
import pytest

from lmgym.env.registry import build, find
from lmgym.tasks.desktop import SPEC
from lmgym.tasks.desktop.families import FAMILIES, LEVEL, LEVELS
from lmgym.viewer.play import PlaySession
from tests import components
from tests.sampled import sampled

components.desktop()
FEW = (
    *("append_line", "combine_texts", "create_folder", "count_lines", "pack_folder", "edit_missing_file"),
    *("set_cell", "wrap_lines", "make_heading", "duplicate_slide", "pdf_to_text", "delete_missing_table"),
    *("copy_picture", "linked_page_to_text"),
)


@pytest.fixture(scope="module")
def task() -> Iterator[Any]:
    with closing(build(find("lmgym/Desktop-v0")).unwrapped) as env:
        yield env


def play(task: Any, actions: Any) -> dict[str, Any]:
    info: dict[str, Any] = {}
    for action in actions:
        _, _, over, _, info = task.step(action)
        if over:
            break
    return info


def watched(task: Any) -> Iterator[str]:
    """Play the oracle's actions but the last, and yield them."""
    for action in task.oracle():
        if action in ("done()", "fail()"):
            return
        task.step(action)
        yield action


def opened(task: Any, family: str, index: int = 0) -> None:
    task.families = [family]
    task.reset(seed=0, options={"index": index})


@pytest.mark.parametrize("family", FEW)
def test_oracle_wins(task: Any, family: str) -> None:
    opened(task, family)
    assert play(task, task.oracle())["score"] == 1


def test_a_short_observation_names_elements_by_number_and_the_oracle_does_too() -> None:
    options = {"observe": "names", "listed": False, "level": 1, "applications": "light"}
    with closing(build(find("lmgym/Desktop-v0"), **options).unwrapped) as env:
        assert {"append_line", "count_lines", "show_line_numbers"} <= set(env.families)
        assert not {"copy_missing_file", "add_slide", "pdf_to_text", "delete_line"} & set(env.families)
        opened(env, "show_line_numbers")
        first = env.step("hotkey('escape')")[0]["text"]
        assert "[1] menu 'File'\n" in first
        assert not re.search(r"\d+,\d+|\d+x\d+", first)
        actions = list(watched(env))
        assert re.fullmatch(r"click\(element=\d+\)", actions[1])
        assert env.score_if_cut() == 1


def test_families_that_came_later_stand_last() -> None:
    assert list(FAMILIES).index("new_table") == SPEC.splits["test"] - 1 == 96  # of published entries


@pytest.mark.parametrize("family", FAMILIES)
def test_plans_are_as_long_as_their_level_says(family: str) -> None:
    for index in range(3):
        plan = FAMILIES[family](np.random.default_rng(index)).plan
        assert len(plan) + 1 in LEVELS[LEVEL[family]]


@pytest.mark.parametrize(("index", "family"), sampled(product(range(5), FAMILIES), every=11))
def test_oracle_wins_every_family_on_five_instances(task: Any, family: str, index: int) -> None:
    opened(task, family, index)
    actions = list(watched(task))
    assert task.score_if_cut() == task.goal.feasible
    assert len(actions) + 1 in LEVELS[LEVEL[family]]
    assert play(task, ["done()" if task.goal.feasible else "fail()"])["score"] == 1


@pytest.mark.parametrize("family", sampled(FAMILIES, every=5))
def test_doing_nothing_and_giving_up_on_what_can_be_done_score_zero(task: Any, family: str) -> None:
    for action in ("done()", "fail()"):
        opened(task, family)
        score = play(task, [action])["score"]
        assert score == (not task.goal.feasible and action == "fail()")


def test_what_is_not_saved_or_changes_another_file_scores_zero(task: Any) -> None:
    opened(task, "append_line")
    *typed, save, done = task.oracle()
    assert play(task, [*typed, done])["score"] == 0
    opened(task, "append_line")
    (task.desktop.home / "Documents" / "other.txt").write_text("x")
    assert play(task, [*typed, save, done])["score"] == 0


def test_keys_of_a_browser_are_actions(task: Any) -> None:
    opened(task, "append_line")
    for keys in (["Control+End"], list('grün "x"'), ["Enter"], ["Control+s"]):
        assert task.step(task.unwrapped.pressing(keys))[4]["valid"], keys
    assert any(file.read_text().endswith('grün "x"\n') for file in task.desktop.home.rglob("*.txt"))


def test_the_pointer_moves_by_a_distance_and_stays_on_the_screen(task: Any) -> None:
    opened(task, "count_lines")
    task.step("pyautogui.moveTo(100, 100)\npyautogui.moveRel(30, -20)")
    assert task.desktop.display.pointer() == (130, 80)
    info = task.step("pyautogui.move(-9999, 5)")[4]
    assert task.desktop.display.pointer() == (0, 85)
    assert "points" not in info


def test_a_zoom_shows_a_region_in_the_size_of_the_screen_and_moves_nothing() -> None:
    with closing(build(find("lmgym/Desktop-v0"), pixels="screenshot", observe="none")) as env:
        before, _ = env.reset(options={"index": 0})
        place = env.unwrapped.desktop.display.pointer()
        after = env.step('{"action": "zoom", "region": [0, 0, 640, 400]}')
        assert after[4]["valid"]
        assert env.unwrapped.desktop.display.pointer() == place
        assert after[0]["images"].shape == before["images"].shape
        wanted = np.repeat(np.repeat(before["images"][0][:400, :640], 2, axis=0), 2, axis=1).astype(int)
        assert (
            np.abs(after[0]["images"][0].astype(int) - wanted).mean() < 10 < np.abs(before["images"][0] - wanted).mean()
        )
        assert not env.step('{"action": "zoom", "region": [5, 5, 5, 5]}')[4]["valid"]
        assert np.array_equal(env.step("wait(0)")[0]["images"], before["images"])


def test_malformed_actions_are_answered(task: Any) -> None:
    opened(task, "count_lines")
    actions = [
        "click(1e18, 2)",
        "click(element=99999)",
        "press('no such key')",
        "type('\\x00')",
        "hotkey([])",
        "drag(1)",
    ]
    actions += ['{"type": "drag", "path": [{"x": 1}]}', "pyautogui.keyDown('')", "press('')"]
    actions += ['{"action_type": "KEY_UP", "parameters": {"key": ""}}']
    actions += ["drag(1)", "wait(1e9)", "scroll('sideways')", "click(1, 2, button='left ')", f"type({'x' * 6000!r})"]
    for action in actions:
        observation, _, over, _, info = task.step(action)
        assert observation["text"].startswith("Error: ")
        assert not over
        assert not info["valid"]
    for action in ("hotkey('ctrl+alt+backspace')", "hotkey('ctrl+alt+f1')", "hotkey('alt+f4')", "type('exit\\n')"):
        assert task.step(action)[4]["valid"]
    assert play(task, ["done()"])["score"] == 0


@pytest.mark.slow
def test_clicks_and_keys_of_the_play_page_reach_the_desktop() -> None:
    game = PlaySession(build(find("lmgym/Desktop-v0"), pixels="screenshot", family="append_line"), index=0)
    with closing(game):
        state = game.state()
        x, y = next(map(int, place) for place in re.findall(r"menu 'File' at (\d+),(\d+)", state["text"]))
        action = game.pointing(x, y)
        assert action is not None
        assert len(game.pictures) == 1
        assert "'Save'" in game.act(0, action)["text"]
        game.act(1, "press('escape')")
        assert "hello 漢" in game.act(2, "type('hello 漢')")["text"]
