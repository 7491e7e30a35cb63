"""Text-Nav: the errand's rules in our house, and in the house of the release where its file is present."""

import os
from pathlib import Path

import pytest

from lmgym.env.golden import play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.text_nav.house import EXITS, ROOMS

DATA = Path(os.environ.get("LMGYM_TEST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "lmrl"
needs_official = pytest.mark.skipif(
    not (DATA / "textnav_game.json").is_file(), reason="no textnav_game.json: set LMGYM_TEST_DATA"
)
ERRAND = ("take old pie from bench", "go east", "go east", "open icebox", "insert old pie into icebox", "close icebox")


@pytest.fixture
def env():
    with_inventory = build("text_nav")
    yield with_inventory
    with_inventory.close()


def texts(env, *actions, index=1):
    observation, _ = env.reset(seed=0, options={"index": index})
    return [observation["text"], *(env.step(action)[0]["text"] for action in actions)]


def test_every_room_can_be_reached():
    reached = {ROOMS[0]}
    for _ in ROOMS:
        reached |= {other for room, _, other in EXITS if room in reached}
        reached |= {room for room, _, other in EXITS if other in reached}
    assert reached == set(ROOMS)


@pytest.mark.parametrize(
    ("actions", "reward", "over"),
    [
        (ERRAND, 1.0, True),
        (("take old pie", "eat old pie"), 0.0, True),
        (("take new pie", "eat new pie"), 0.0, False),
        ([action.replace("old", "new") for action in ERRAND], 0.0, False),
    ],
    ids=["errand", "food eaten", "other food eaten", "other food stored"],
)
def test_the_errand_alone_wins_and_eating_its_food_loses(env, actions, reward, over):
    env.reset(seed=0, options={"index": 1})
    *before, last = [env.step(action) for action in actions]
    assert [step[1:3] for step in before] == [(0.0, False)] * len(before)
    assert last[1:4] == (reward, over, False)
    assert last[4]["valid"]
    assert (last[4].get("score"), last[4].get("success")) == ((reward, reward == 1.0) if over else (None, None))


def test_an_observation_lists_what_is_carried_and_the_commands(env):
    start, taken = texts(env, "take old pie from bench")
    assert "-=" not in start + taken
    assert start.splitlines()[-3] == "You are carrying: nothing."
    assert taken.splitlines()[-3] == "You are carrying: old pie."
    assert "eat old pie, go east, go north, go west" in taken.splitlines()[-1]
    assert "examine" not in taken.splitlines()[-1]


def test_the_partial_view_hides_what_is_carried():
    env = build("TextNavPartial-v0")
    assert not any("carrying" in text for text in texts(env, "take old pie"))
    env.close()


@pytest.mark.parametrize(
    "detour",
    [
        ("take old pie", "drop old pie", "go north"),
        ("take old pie", "go north", "open trunk", "insert old pie into trunk", "close trunk", "go south"),
        ("take old pie", "go east", "put old pie on sideboard"),
        ("take old pie", "go east", "go east", "open icebox", "insert old pie into icebox", "go east"),
    ],
)
def test_the_oracle_finishes_from_any_state(detour):
    env = build("text_nav", max_turns=40)
    env.reset(seed=0, options={"index": 1})
    for action in detour:
        assert env.step(action)[4]["valid"]
    for action in env.unwrapped.oracle():
        _, reward, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    assert (reward, terminated) == (1.0, True)
    env.close()


@needs_official
def test_the_official_house_is_played_by_the_stated_rules(tmp_path, monkeypatch):
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path))
    env = build("TextNavOfficial-v0", data=DATA, split="test")
    traces = [play(env, lambda env: env.oracle(), index=index) for index in range(8)]
    assert [trace.infos[-1]["score"] for trace in traces] == [1.0] * 8
    start, *_, kitchen = texts(env, "go west", "go west", "go west", index=0)
    assert "You see a bowl on the table." in start
    assert "closed fridge" in kitchen  # where the file's own quest would be won
    assert texts(env, "take stale food", "eat stale food", index=1)[-1].endswith("*** You lost! ***")
    env.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("__import__('os').system('touch planted')", "ValueError"),
        ("{'infos': []", "SyntaxError"),
        ("{'infos': []}", "KeyError"),
        ("[" * 5000, "(MemoryError|SyntaxError|RecursionError)"),
        (" " * 1_000_001, "1000001 bytes"),
    ],
)
def test_a_file_that_is_no_house_is_refused_and_never_evaluated(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "textnav_game.json").write_text(content)
    with pytest.raises(InstanceError, match=message):
        build("TextNavOfficial-v0", data=tmp_path)
    assert not (tmp_path / "planted").exists()


def test_a_missing_house_names_the_remedy(monkeypatch):
    monkeypatch.delenv("LMRL_DATA", raising=False)
    with pytest.raises(InstanceError, match="git clone .*LMRL-Gym, and set LMRL_DATA"):
        build("TextNavOfficial-v0")
