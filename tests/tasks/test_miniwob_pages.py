"""All pages of MiniWoB++: what depends on the page on each of them, and all that a task owes on a few of every kind.

All that a task owes on all pages, and the players on twenty seeds, are marked `whole`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

import pytest

from lmgym.env import golden
from lmgym.env.checks import Subject, account, difference
from lmgym.env.golden import given, play, turns
from lmgym.env.registry import build, find
from lmgym.env.testing import check_task, spec_and_card
from lmgym.tasks.miniwob import PAGES, SOLVED
from tests.components import chromium
from tests.sampled import sampled

chromium()

KINDS = {
    "stock-market": "moves by itself",
    "tic-tac-toe": "answers by chance",
    "drag-shapes": "is dragged by coordinates",
    "click-menu": "opens as the mouse goes over it",
}


def spec(name: str) -> Any:
    return find(f"lmgym/MiniWoB-{name}-v0")


def recorded(envs: Sequence[Any], episode: Mapping[str, Any]) -> None:
    """Hold a golden episode, played turn by turn in environments at once, to what was recorded and to each other."""
    where = f"{episode['player']} {episode['split']}/{episode['index']}"
    plays = [turns(env, given(episode["actions"]), index=episode["index"]) for env in envs]
    *_, (first, *others) = zip(*plays, strict=True)
    assert [difference(first, other) for other in others] == [None] * len(others), where
    assert list(account(first)) == [], where
    end = first.infos[-1]
    assert first.rewards == pytest.approx(episode["rewards"]), where
    assert (first.terminated, first.truncated) == (episode["terminated"], episode["truncated"]), where
    assert (end.get("score"), end.get("success")) == (episode["score"], episode["success"]), where
    assert episode["player"] != "oracle" or all(info["valid"] for info in first.infos), where


def lost(env: Any, seeds: range) -> list[int]:
    """Seeds on which the page's player does not win."""
    return [seed for seed in seeds if not play(env, lambda env: env.oracle(), index=seed).infos[-1].get("success")]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sampled(PAGES, every=4))
def test_a_page_plays_as_recorded_repeats_to_the_letter_and_pays_nothing_for_nothing(name):
    page = spec(name)
    assert list(spec_and_card(Subject(page, tuple(page.splits)))) == []
    episodes = golden.read(page)
    assert {episode["split"] for episode in episodes} == set(page.splits)
    assert {episode["split"] for episode in episodes if episode["player"] == "oracle" and episode["success"]} == (
        set(page.splits) if name in SOLVED else set()
    )
    for (split, limit), same in itertools.groupby(episodes, lambda episode: (episode["split"], episode["max_turns"])):
        with ExitStack() as stack:
            count = 2 if split == "train" else 1
            envs = [stack.enter_context(closing(build(page, split=split, max_turns=limit))) for _ in range(count)]
            for env in envs[1:]:
                env.reset(options={"index": 7})  # it has a past
            for episode in same:
                again = episode["index"] == 0 and episode["player"] != "malformed"
                recorded(envs if again else envs[:1], episode)
            if (split, limit) == ("train", page.max_turns):
                idle = play(envs[0], lambda env: itertools.repeat(""), index=0)
                assert (idle.over, idle.infos[-1]["score"]) == (True, 0.0)
                assert name not in SOLVED or lost(envs[0], range(2, 5)) == []


@pytest.mark.whole
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SOLVED)
def test_the_player_of_a_page_solves_twenty_seeds(name):
    with closing(build(spec(name))) as env:
        assert lost(env, range(20)) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", ["lmgym/MiniWoB-v0", *(f"lmgym/MiniWoB-{name}-v0" for name in KINDS)])
def test_a_page_of_each_kind_owes_what_every_task_owes(task):
    check_task(task)


@pytest.mark.whole
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_owes_what_every_task_owes(name):
    check_task(spec(name))


def test_the_oracle_of_the_family_plays_every_page_that_somebody_wrote_a_player_for_and_waits_on_the_others():
    with closing(build("lmgym/MiniWoB-v0", page="right-angle")) as env:
        assert play(env, lambda env: env.oracle(), index=0).infos[-1]["score"] > 0.99  # few seeds have a pixel for 1
    with closing(build("lmgym/MiniWoB-v0", page="text-editor", max_turns=2)) as env:
        idle = play(env, lambda env: env.oracle(), index=0)
    assert (idle.actions, idle.infos[-1]["score"]) == (["noop()", "noop()"], 0.0)
    assert all(info["valid"] for info in idle.infos)
