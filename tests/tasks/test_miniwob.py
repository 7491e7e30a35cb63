"""MiniWoB++'s own behaviour: pages that judge themselves, virtual time, players of single pages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from malformed import DOZEN

from lmgym.env import golden
from lmgym.env.checks import OF_EPISODES, Subject
from lmgym.env.golden import play
from lmgym.env.registry import build, find, specs
from lmgym.errors import InstanceError
from lmgym.evaluation.protocol import protocol
from lmgym.tasks.miniwob import FLIGHTS, PAGES, SOLVED, TEST, TRAIN, UNLISTED
from tests.components import chromium

chromium()


def page(name: str, **options: Any) -> Any:
    return build(f"lmgym/MiniWoB-{name}-v0", **options)


@pytest.fixture(scope="module")
def button() -> Iterator[Any]:
    env = page("click-button")
    yield env
    env.close()


def test_there_is_an_id_for_every_page():
    assert (len(TRAIN), len(TEST), len(UNLISTED), len(FLIGHTS), len(PAGES)) == (62, 63, 5, 3, 133)
    assert not set(TRAIN) & set(TEST)
    assert {f"lmgym/MiniWoB-{name}-v0" for name in PAGES} < set(specs())
    assert len(SOLVED) >= 60
    assert set(SOLVED) < set(PAGES)


@pytest.mark.parametrize("name", DOZEN)
def test_the_player_of_a_page_solves_it_and_it_repeats_to_the_letter(name):
    env = page(name)
    first = play(env, lambda env: env.oracle(), index=3)
    again = play(env, golden.given(first.actions), index=3)
    env.close()
    assert first.infos[-1]["success"] is again.infos[-1]["success"] is True
    assert first.infos[-1]["reward_terms"] == {"raw": 1.0}
    assert [seen["text"] for seen in first.observations] == [seen["text"] for seen in again.observations]


@pytest.mark.parametrize(("name", "check"), [*zip(cycle(DOZEN), OF_EPISODES, strict=False)])
def test_each_check_of_every_task_passes_on_a_page_of_the_dozen(name, check):
    spec = find(f"lmgym/MiniWoB-{name}-v0")
    assert list(check(Subject(spec, tuple(spec.splits)))) == []


def test_train_and_test_share_no_page_and_test_begins_with_five_seeds_of_each():
    env = build("lmgym/MiniWoB-v0", split="test", observe="none")
    opened = []
    for index in (0, 62, 63, 314):
        env.reset(options={"index": index})
        opened.append((env.unwrapped.opened, env.unwrapped.seed))
    env.close()
    assert opened == [(TEST[0], 1_000_000), (TEST[62], 1_000_000), (TEST[0], 1_000_001), (TEST[62], 1_000_004)]
    assert protocol("miniwob").instances == 5 * 63


@pytest.mark.parametrize("name", ["stock-market", "moving-items", "chase-circle", "terminal", "simon-says"])
def test_pages_that_move_by_themselves_repeat(name):
    texts = []
    for _ in range(2):
        env = page(name, observe="html", places=True)
        trace = play(env, lambda env: ["noop(700)", "mouse_click(80, 120)", "noop(1100)"], index=1)
        texts.append([seen["text"] for seen in trace.observations])
        env.close()
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1


def test_the_partial_rewards_of_a_page_are_its_score_and_no_success(opened):
    env = opened("lmgym/MiniWoB-find-greatest-v0")
    worst = env.unwrapped.browser.evaluate(
        """() => [...document.querySelectorAll('.card')]
        .sort((a, b) => parseInt(a.textContent) - parseInt(b.textContent))[0].getAttribute('bid')"""
    )
    env.step(f"click('{worst}')")
    submit = env.unwrapped.browser.evaluate("document.querySelector('#submit').getAttribute('bid')")
    _, reward, terminated, _, info = env.step(f"click('{submit}')")
    assert (reward, terminated, info["score"], info["success"]) == (0.1, True, 0.1, False)


def middles(env: Any, selector: str) -> list[tuple[str, float, float]]:
    """Text and middle of the elements that a selector finds."""
    found: list[tuple[str, float, float]] = env.unwrapped.browser.evaluate(
        """selector => [...document.querySelectorAll(selector)].map(element => {
        const box = element.getBoundingClientRect();
        return [element.textContent, box.left + box.width / 2, box.top + box.height / 2];
        })""",
        selector,
    )
    return found


@pytest.mark.parametrize(("right", "raw"), [(0, -1.0), (1, 0.2), (3, 0.6)])  # of five
def test_ascending_numbers_pays_for_the_numbers_before_a_wrong_one(right, raw, opened):
    env = opened("lmgym/MiniWoB-ascending-numbers-v0")
    places = middles(env, "svg text")  # in ascending order
    info: dict[str, Any] = {}
    for _, x, y in (*places[:right], places[-1]):
        *_, info = env.step(f"mouse_click({x}, {y})")
    assert info["reward_terms"] == {"raw": pytest.approx(raw)}
    assert (info["score"], info["success"]) == (pytest.approx(max(0.0, raw)), False)


@pytest.mark.parametrize(
    ("wrong", "blank", "raw"),
    [(0, 0, 1.0), (1, 0, 1 / 3), (2, 0, -1 / 3), (3, 0, -1.0), (0, 1, 1 / 3)],  # the page takes a blank for a mistake
)
def test_odd_or_even_pays_for_right_numbers_less_wrong_ones(wrong, blank, raw, opened):
    env = opened("lmgym/MiniWoB-odd-or-even-v0")
    rows = [int(text) % 2 for text, *_ in middles(env, ".display-number")]
    buttons = [middles(env, name) for name in (".even", ".odd")]
    for row, odd in list(enumerate(rows))[blank:]:
        _, x, y = buttons[odd if row >= wrong else 1 - odd][row]
        env.step(f"mouse_click({x}, {y})")
    ((_, x, y),) = middles(env, "#submit")
    _, reward, terminated, _, info = env.step(f"mouse_click({x}, {y})")
    assert (reward, terminated, info["score"]) == (pytest.approx(raw), True, pytest.approx(max(0.0, raw)))
    assert info["success"] is (raw == 1.0)


@pytest.mark.parametrize(("contact", "detail", "raw"), [(0, 0, 1.0), (0, 1, 0.4), (1, 0, -0.4), (1, 1, -1.0)])
def test_phone_book_pays_for_the_contact_and_for_the_detail(contact, detail, raw, opened):
    env = opened("lmgym/MiniWoB-phone-book-v0")
    name, _, asked = env.unwrapped.goal.removeprefix("Find ").partition(" in the contact book and click on their ")
    details = ["phone", "email", "address"]
    wanted = details[(details.index(asked.split()[0].strip(".")) + detail) % 3]
    while (middles(env, ".name")[0][0] == name) is (contact == 1):
        ((_, x, y),) = middles(env, ".page-item.next, .next")[-1:]
        env.step(f"mouse_click({x}, {y})")
    ((_, x, y),) = middles(env, f"a.{wanted}")
    _, reward, terminated, _, info = env.step(f"mouse_click({x}, {y})")
    assert (reward, terminated, info["score"]) == (pytest.approx(raw), True, pytest.approx(max(0.0, raw)))
    assert info["success"] is (raw == 1.0)


def test_a_negative_raw_reward_is_the_reward_and_scores_nothing(button):
    button.reset(options={"index": 0})
    wrong = button.unwrapped.browser.evaluate(
        """goal => [...document.querySelectorAll('button')]
        .find(button => !goal.includes('"' + button.textContent + '"')).getAttribute('bid')""",
        button.unwrapped.goal,
    )
    _, reward, terminated, _, info = button.step(f"click('{wrong}')")
    assert (reward, terminated, info["score"]) == (-1.0, True, 0.0)


def test_decay_is_a_term_in_virtual_time_and_leaves_the_score(opened):
    env = opened("lmgym/MiniWoB-click-test-v0", decay=True)
    env.step("noop(3500)")  # 0.5 s passed at the start, 3.5 s here: 4 of the page's 10 s are over when it is clicked
    _, reward, _, _, info = env.step(next(env.unwrapped.oracle()))
    assert info["reward_terms"]["raw"] == 1.0
    assert info["reward_terms"]["decay"] == pytest.approx(-0.4)
    assert reward == pytest.approx(0.6)
    assert (info["score"], info["success"]) == (1.0, True)


def test_players_click_at_places_where_actions_have_no_bids(opened):
    env = opened("lmgym/MiniWoB-v0", page="click-test-2", actions="mouse_click")
    call = next(env.unwrapped.oracle())
    assert call.startswith("mouse_click(")
    assert env.step(call)[1] == 1.0


@pytest.mark.parametrize(("call", "score"), [("click('999')", 0.0), ("hello", 0.0), ("noop()", 1.0)])
def test_an_action_that_failed_never_completes_a_task(button, call, score):
    button.reset(options={"index": 0})
    button.unwrapped.browser.evaluate("() => { WOB_DONE_GLOBAL = true; WOB_RAW_REWARD_GLOBAL = 1; }")
    _, reward, terminated, _, info = button.step(call)
    assert (reward, terminated, info["score"], info["success"]) == (score, True, score, score == 1.0)
    assert info["valid"] is (score == 1.0)


def test_a_combination_with_an_unknown_key_presses_no_button(button):
    button.reset(options={"index": 0})
    bid = button.unwrapped.browser.evaluate(
        """goal => [...document.querySelectorAll('button')]
        .find(button => goal.includes('"' + button.textContent + '"')).getAttribute('bid')""",
        button.unwrapped.goal,
    )
    for keys, over in (("Enter+Nope", False), ("Enter", True)):
        *_, terminated, _, info = button.step(f"press('{bid}', '{keys}')")
        assert (terminated, info["valid"]) == (over, over)
    assert info["success"]


def test_only_leaving_the_page_and_no_time_limit_of_it_ends_an_episode(button):
    button.reset(options={"index": 0})
    for _ in range(3):
        _, _, terminated, truncated, _ = button.step("noop(10000)")
        assert terminated is truncated is False
    button.reset(options={"index": 0})
    button.unwrapped.browser.evaluate("location.href = '/miniwob/click-test.html'")
    _, reward, terminated, _, info = button.step("noop(100)")
    assert (reward, terminated, info["score"]) == (-1.0, True, 0.0)


def test_the_goal_is_told_once_and_belongs_to_no_tree(button):
    observation, _ = button.reset(options={"index": 0})
    goal = button.unwrapped.goal
    assert f"Goal: {goal}" in observation["text"]
    assert goal not in button.step("noop()")[0]["text"]


def test_authored_instances_open_any_seed(button):
    first, _ = button.reset(options={"instance": {"page": "click-button", "seed": 3}})
    for options in ({"index": 3}, {"instance": {"seed": np.int64(3)}}):
        assert button.reset(options=options)[0] == first
    for wrong in (
        {"page": "no-such", "seed": 1},
        {"page": "click-test", "seed": 1},
        {"seed": "1"},
        {"seed": 1, "x": 2},
    ):
        with pytest.raises(InstanceError, match="authored MiniWoB"):
            button.reset(options={"instance": wrong})


def test_pages_that_know_two_sets_of_instances_draw_from_the_split_s(button):
    goals = {}
    for split in ("train", "test"):
        env = page("click-test-transfer", split=split, observe="none")
        env.reset(options={"index": 0})
        goals[split] = env.unwrapped.goal
        env.close()
    assert goals == {"train": "Click button ONE.", "test": "Click button TWO."}


@pytest.mark.parametrize("name", FLIGHTS)
def test_airlines_stand_in_a_frame(name):
    env = page(name)
    observation, _ = env.reset(options={"index": 0})
    env.close()
    assert "[a] Iframe" in observation["text"]
    assert "textbox" in observation["text"]
    assert json.loads(env.unwrapped.goal)


def test_pictures_are_of_the_page_s_size():
    env = page("click-shape", pixels="som", observe="none")
    observation, _ = env.reset(options={"index": 0})
    assert observation in env.observation_space
    assert observation["images"].shape == (1, 210, 160, 3)
    after, *_ = env.step("mouse_click(80, 20)")
    assert after["images"].dtype == np.uint8
    env.close()


def test_pages_come_from_a_folder_in_the_official_layout(monkeypatch, tmp_path):
    package = Path(next(iter(find_spec("miniwob").submodule_search_locations)))
    (tmp_path / "html").mkdir()
    for part in ("core", "common"):
        (tmp_path / "html" / part).symlink_to(package / "html" / part)
    (tmp_path / "html" / "miniwob").mkdir()
    shutil.copy(package / "html" / "miniwob" / "click-test.html", tmp_path / "html" / "miniwob")
    monkeypatch.setenv("MINIWOB_DATA", str(package / "html"))
    env = page("click-test")
    assert play(env, lambda env: env.oracle(), index=0).infos[-1]["success"]
    env.close()
    monkeypatch.delenv("MINIWOB_DATA")
    monkeypatch.setenv("MINIWOB_URL", f"file://{package}/html/miniwob/")
    env = page("click-test")
    assert play(env, lambda env: env.oracle(), index=0).infos[-1]["success"]
    env.close()
    monkeypatch.delenv("MINIWOB_URL")
    monkeypatch.setenv("MINIWOB_DATA", str(tmp_path))
    with pytest.raises(InstanceError, match="it is not the folder miniwob/html"):
        page("click-test")
