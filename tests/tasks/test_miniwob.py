"""What is odd about MiniWoB++: pages that judge themselves, virtual time, players of single pages."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("playwright")

from lmgym.backends import browser
from lmgym.env import golden
from lmgym.env.golden import play
from lmgym.env.registry import build, find, specs
from lmgym.env.testing import check_task
from lmgym.errors import BackendError, InstanceError
from lmgym.tasks.miniwob import FLIGHTS, PAGES, SOLVED, TEST, TRAIN, UNLISTED

try:
    browser.executable()
except BackendError as missing:
    pytest.skip(str(missing), allow_module_level=True)

DOZEN = (
    *("click-button", "click-checkboxes", "click-menu", "choose-list", "drag-box", "email-inbox-reply", "enter-date"),
    *("find-greatest", "form-sequence", "login-user-popup", "read-table", "stock-market"),
)


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


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SOLVED)
def test_the_player_of_a_page_solves_twenty_seeds(name):
    env = page(name)
    lost = [i for i in range(20) if not play(env, lambda env: env.oracle(), index=i).infos[-1].get("success")]
    env.close()
    assert lost == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_owes_what_every_task_owes(name):
    check_task(f"lmgym/MiniWoB-{name}-v0")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_whole_owes_what_every_task_owes():
    check_task("lmgym/MiniWoB-v0")


def test_train_and_test_share_no_page_and_test_begins_with_five_seeds_of_each():
    env = build("lmgym/MiniWoB-v0", split="test", observe="none")
    opened = []
    for index in (0, 62, 63, 314):
        env.reset(options={"index": index})
        opened.append((env.unwrapped.opened, env.unwrapped.seed))
    env.close()
    assert opened == [(TEST[0], 1_000_000), (TEST[62], 1_000_000), (TEST[0], 1_000_001), (TEST[62], 1_000_004)]
    assert find("miniwob").standard.instances == 5 * 63


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


def test_the_partial_rewards_of_a_page_are_its_score_and_no_success():
    env = page("find-greatest")
    env.reset(options={"index": 0})
    worst = env.unwrapped.session.evaluate(
        """() => [...document.querySelectorAll('.card')]
        .sort((a, b) => parseInt(a.textContent) - parseInt(b.textContent))[0].getAttribute('bid')"""
    )
    env.step(f"click('{worst}')")
    submit = env.unwrapped.session.evaluate("document.querySelector('#submit').getAttribute('bid')")
    _, reward, terminated, _, info = env.step(f"click('{submit}')")
    env.close()
    assert (reward, terminated, info["score"], info["success"]) == (0.1, True, 0.1, False)


def test_a_negative_raw_reward_is_the_reward_and_scores_nothing(button):
    button.reset(options={"index": 0})
    wrong = button.unwrapped.session.evaluate(
        """goal => [...document.querySelectorAll('button')]
        .find(button => !goal.includes('"' + button.textContent + '"')).getAttribute('bid')""",
        button.unwrapped.goal,
    )
    _, reward, terminated, _, info = button.step(f"click('{wrong}')")
    assert (reward, terminated, info["score"]) == (-1.0, True, 0.0)


def test_decay_is_a_term_in_virtual_time_and_leaves_the_score():
    env = page("click-test", decay=True)
    env.reset(options={"index": 0})
    env.step("noop(3500)")  # 0.5 s passed at the start, 3.5 s here: 4 of the page's 10 s are over when it is clicked
    _, reward, _, _, info = env.step(next(env.unwrapped.oracle()))
    env.close()
    assert info["reward_terms"]["raw"] == 1.0
    assert info["reward_terms"]["decay"] == pytest.approx(-0.4)
    assert reward == pytest.approx(0.6)
    assert (info["score"], info["success"]) == (1.0, True)


def test_no_time_limit_of_the_page_ends_an_episode(button):
    button.reset(options={"index": 0})
    for _ in range(3):
        _, _, terminated, truncated, _ = button.step("noop(10000)")
        assert terminated is truncated is False


def test_leaving_the_page_ends_the_episode_with_nothing(button):
    button.reset(options={"index": 0})
    button.unwrapped.session.evaluate("location.href = '/miniwob/click-test.html'")
    _, reward, terminated, _, info = button.step("noop(100)")
    assert (reward, terminated, info["score"]) == (-1.0, True, 0.0)


def test_the_goal_is_told_once_and_belongs_to_no_tree(button):
    observation, _ = button.reset(options={"index": 0})
    goal = button.unwrapped.goal
    assert f"Goal: {goal}" in observation["text"]
    assert goal not in button.step("noop()")[0]["text"]


def test_authored_instances_open_any_seed(button):
    first, _ = button.reset(options={"instance": {"page": "click-button", "seed": 3}})
    second, _ = button.reset(options={"index": 3})
    assert first == second
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


def fuzzed(count: int) -> Iterator[str]:
    """Calls that are nearly right: other names, arguments, numbers, characters."""
    chance = random.Random(6)
    names = ("click", "fill", "mouse_click", "press", "drag_and_drop", "keyboard_type", "noop", "scroll", "eval", "")
    values = (
        *("'13'", "13", "'999999'", "'a1'", "''", "None", "1e308", "-1e308", "1e999", "float('nan')", "[1, [2]]", "{}"),
        *("'\\ud800'", "'\\x00'", "'é漢🙂'", '"\'; --"', "'Control+Alt+Delete'", "b'x'", "True", "x", "*a", "9" * 400),
    )
    for _ in range(count):
        inside = ", ".join(chance.choice(values) for _ in range(chance.randrange(4)))
        call = f"{chance.choice(names)}({inside})"
        yield chance.choice(
            (call, call, f"I think\n{call}", f"```\n{call}\n```", call[: chance.randrange(len(call) + 1)])
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", DOZEN)
def test_500_malformed_actions_never_raise(name):
    env = page(name, max_turns=10_000)
    env.reset(options={"index": 0})
    for action in itertools.chain(fuzzed(500)):
        observation, reward, terminated, truncated, _ = env.step(action)
        assert observation in env.observation_space
        assert abs(reward) <= 1
        if terminated or truncated:
            env.reset(options={"index": 0})
    env.close()


def test_malformed_actions_never_raise(button):
    button.reset(options={"index": 0})
    seen: Counter[bool] = Counter()
    for action in fuzzed(30):
        _, _, terminated, truncated, info = button.step(action)
        seen[info["valid"]] += 1
        if terminated or truncated:
            button.reset(options={"index": 0})
    assert seen[False] > 15
