"""TextWorld's own behaviour: games built at first use, an interpreter in C, lost games, two views of one state."""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("textworld")

from lmgym.backends import textgame, textgame_build
from lmgym.backends.textgame import TextGame, playable, tidy
from lmgym.env.registry import build
from lmgym.env.spec import TaskSpec
from lmgym.errors import BackendError
from lmgym.tasks import textworld
from lmgym.tasks.textworld import COIN, COOKING, SIMPLE, SPEC, TREASURE, W4O6Q8, W8O12Q4
from lmgym.tasks.textworld.demonstrator import Search
from lmgym.tasks.textworld.games import make, open_game

ALL = (SPEC, *textworld.VARIANTS)
SMALL = {"rooms": 2, "objects": 3, "quest": 4, "goal": "detailed"}
BOILERPLATE = re.compile(r"[$<>\[\]|]|  |\n\n\n|your score|RESTART|-=[^\n]*=-\d", re.IGNORECASE)


def name(spec: TaskSpec) -> str:
    return spec.id.removeprefix("lmgym/")


def played(env: Any, actions: Iterator[str], turns: int = 100) -> tuple[list[str], float, dict[str, Any]]:
    """Texts, return and last info of up to `turns` actions."""
    texts, total, info = [env.unwrapped.latest_text], 0.0, {}
    for action in itertools.islice(actions, turns):
        observation, reward, terminated, truncated, info = env.step(action)
        texts.append(observation["text"])
        total += float(reward)
        if terminated or truncated:
            break
    return texts, total, info


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "textworld"


@pytest.mark.parametrize("spec", ALL, ids=name)
def test_the_oracle_wins_after_a_detour_and_dense_rewards_sum_to_one(spec: TaskSpec, opened: Any) -> None:
    env = opened(spec, split="test", rewards="dense", max_turns=100)
    safe = (a for a in ("look", "inventory", "go east", "go north", "nonsense") if a in env.unwrapped.admissible())
    texts, total, info = played(env, itertools.chain(safe, env.unwrapped.oracle()))
    assert info["success"]
    assert info["score"] == 1.0
    assert total == pytest.approx(1.0, abs=1e-12)
    assert not [text for text in texts if BOILERPLATE.search(text)]


@pytest.mark.parametrize(("spec", "index"), [(SPEC, 242), (W4O6Q8, 46), (W4O6Q8, 59)])
def test_the_oracle_wins_where_the_parser_asks_which_box_is_meant(spec: TaskSpec, index: int, opened: Any) -> None:
    env = opened(spec, index, split="test")
    texts, _, info = played(env, env.unwrapped.oracle())
    assert any("Which do you mean" in text for text in texts)
    assert info["success"]


@pytest.mark.parametrize("spec", [SPEC, W4O6Q8, W8O12Q4, COIN, TREASURE], ids=name)
def test_the_demonstrator_wins_in_time(spec: TaskSpec) -> None:
    env = build(spec, split="test")
    for index in range(3):
        env.reset(options={"index": index})
        assert played(env, env.unwrapped.demonstrator())[2]["success"]
    env.close()


def test_a_search_takes_what_the_goal_names_and_nothing_else() -> None:
    search = Search("Your task is to lift the type 2 key from the floor of the study.")
    assert search.next_action("-= Cellar =-", ["go north", "take key", "take type 2 note"]) == "go north"
    assert search.next_action("-= Study =-", ["go south", "take key", "take type 2 key"]) == "take type 2 key"


def test_a_search_leaves_a_room_it_knows_by_the_way_it_came() -> None:
    """Cellar -north- Study -east- Cellar: the second way back to the cellar closes a circle."""
    search = Search("the coin")
    assert search.next_action("-= Cellar =-", ["go north", "go west"]) == "go north"
    assert search.next_action("-= Study =-", ["go south", "go east"]) == "go east"
    assert search.next_action("-= Cellar =-", ["go north", "go west"]) == "go west"
    assert search.next_action("-= Study =-", ["go south", "go east"]) == "go south"


def test_a_lost_game_is_no_success_and_gives_everything_back(opened: Any) -> None:
    env = opened(SIMPLE, split="test", rewards="dense")
    task = env.unwrapped

    def glutton() -> Iterator[str]:
        for action in task.oracle():
            meals = [command for command in task.admissible() if command.startswith("eat ")]
            wanted = [meal for meal in meals if meal.removeprefix("eat ") in task.latest_text]
            yield wanted[0] if wanted else action

    texts, total, info = played(env, glutton())
    assert texts[-1].endswith("*** You lost! ***")
    assert (info["score"], info["success"]) == (0.0, False)
    assert total == pytest.approx(0.0, abs=1e-12)


def test_cooking_scores_its_points_also_when_it_is_cut(opened: Any) -> None:
    env = opened(COOKING, split="valid", max_turns=8)
    _, total, info = played(env, env.unwrapped.oracle())
    assert total == 0.0
    assert 0.0 < info["score"] < 1.0
    assert not info["success"]


def test_progress_that_is_undone_is_taken_back(opened: Any) -> None:
    env = opened(SPEC, split="test", rewards="dense")
    task = env.unwrapped
    first = next(task.oracle())
    assert first == "go east" or task.game.logic.progress() == 0.0
    before = task.admissible()
    _, gained, _ = played(env, iter([first]))
    back = next(iter(set(task.admissible()) - set(before)))
    assert gained == pytest.approx(0.25)
    assert played(env, iter([back]))[1] <= 0.25


def test_what_leaves_the_game_is_no_command() -> None:
    for command in ("save", "Restart", "script on", "undo", "tw-print max_score", "print_state", "\\q", "a\x00b", "é"):
        assert not playable(command)
    assert not playable("take key. open chest")
    assert not playable("take key then open chest")
    assert not playable("x " * 100)
    assert playable("take Henderson's type-2 box from dish-pit")


def test_hostile_commands_write_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any) -> None:
    env = opened(SPEC, split="test", max_turns=100)
    monkeypatch.chdir(tmp_path)
    for action in ("save", "game", "script", "transcript on", "\\r\n\\s", "\x00", "yes\nquit", "#record on", "restore"):
        _, _, terminated, _, info = env.step(action)
        assert not terminated
        assert not info["valid"]
    assert env.step("look")[4]["valid"]
    assert not list(tmp_path.iterdir())


def test_the_last_line_is_the_command(opened: Any) -> None:
    env = opened(SPEC, split="test")
    assert env.step("I should look around.\n> look")[4]["valid"]
    assert env.step("Action: inventory")[0]["text"].startswith("You are carrying")


def test_the_logic_follows_a_door_that_is_entered() -> None:
    game = TextGame(open_game("custom", {"rooms": 4, "objects": 6, "quest": 8, "goal": "detailed"}, 4))
    for command in ("open suitcase", "take key from suitcase", "go north", "unlock hatch with key", "open hatch"):
        assert game.step(command).understood
    assert game.step("enter hatch").text.startswith("-= Cookery =-")
    assert game.logic.plan() == ["take napkin from rack", "put napkin on chair"]


def test_the_state_view_shows_room_and_inventory_every_turn() -> None:
    env = build(SPEC, split="test", view="state", instructions=False)
    observation, _ = env.reset(options={"index": 0})
    texts, _, _ = played(env, iter(["nonsense", "inventory", "look"]))
    env.close()
    assert texts[0] == observation["text"]
    assert all(text.count("-= ") == 1 and text.count("You are carrying") == 1 for text in texts)


def test_goals_tell_every_step_or_the_last_or_nothing() -> None:
    words = {}
    for goal in ("detailed", "brief", "none"):
        env = build(SPEC, split="test", goal=goal, instructions=False)
        env.reset(options={"index": 0})
        words[goal] = len(env.unwrapped.latest_text.partition("-=")[0].split())
        env.close()
    assert words["none"] == 0 < words["brief"] < words["detailed"]


def test_an_authored_seed_is_the_game_of_that_seed_and_its_text_is_tidy() -> None:
    env, other = build(SPEC, split="test"), build(SPEC, split="train")
    assert env.reset(options={"index": 2})[0] == other.reset(options={"instance": {"seed": 3}})[0]
    assert tidy("\n\n  a   b \n\n\n\n c\n d \n") == "a b\n\nc\nd"


def test_the_compiled_game_is_the_stock_one_byte_for_byte(tmp_path: Path) -> None:
    """`textworld.generator.compile_game` as `tw-make custom` calls it, without our short cuts."""
    game = make("custom", SMALL, 50_001)
    with textgame_build.generating(0):
        from textworld import GameOptions
        from textworld.generator import compile_game, make_game

        options = GameOptions()
        options.seeds, options.path = 50_001, str(tmp_path / "stock.z8")
        options.nb_rooms, options.nb_objects, options.quest_length = 2, 3, 4
        options.chaining.min_breadth, options.chaining.max_breadth, options.chaining.min_depth = 1, 5, 1
        stock = Path(compile_game(make_game(options), options)).read_bytes()
    assert textgame_build.compile_game(game).z8 == stock


ELSEWHERE = """
import random, sys, warnings, numpy as np
warnings.simplefilter("error")
random.seed(1), np.random.seed(1)
from lmgym.env.registry import build
import hashlib
said = hashlib.sha256()
for name in sys.argv[1:]:
    env = build(name, split="test", rewards="dense", view="state", max_turns=6)
    said.update(repr(env.reset(options={"index": 0})).encode())
    for _ in range(6):
        said.update(repr(env.unwrapped.admissible()).encode())
        said.update(repr(env.step(next(env.unwrapped.oracle()))).encode())
    env.close()
print(said.hexdigest(), random.random(), np.random.random())
"""


def test_other_processes_build_the_same_game_quietly_and_leave_global_chance_alone(tmp_path: Path) -> None:
    """Sets of strings iterate differently under another hash seed: the texts must not show it."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", ELSEWHERE, COOKING.id],
            env={**os.environ, "LMGYM_CACHE": str(tmp_path / seed), "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed in ("1", "2")
    ]
    first, second = (process.communicate(timeout=250)[0] for process in started)
    assert first == second
    assert first.split()[1:] == [str(random.Random(1).random()), str(np.random.RandomState(1).random_sample())]


def test_a_damaged_file_is_built_anew(cache: Path) -> None:
    whole = open_game("custom", SMALL, 5)
    (path,) = cache.iterdir()
    for damage in (path.read_bytes()[:1000], b"", path.read_bytes()[:5000] + b"xxxx" + path.read_bytes()[5004:]):
        path.write_bytes(damage)
        assert textgame_build._read(path) is None
    again = open_game("custom", SMALL, 5)
    assert again == whole
    assert textgame_build._read(path) == whole
    assert [kept.name for kept in cache.iterdir()] == [path.name]


def test_a_cached_game_whose_content_was_replaced_is_built_anew(cache: Path) -> None:
    whole, other = open_game("custom", SMALL, 5), open_game("custom", SMALL, 6)
    first, _ = sorted(cache.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    with zipfile.ZipFile(first) as kept:
        digest = kept.comment
    with zipfile.ZipFile(first, "w") as planted:  # another game under the digest of this one
        planted.writestr("game.z8", other.z8)
        planted.writestr("game.json", other.game)
        planted.comment = digest
    assert open_game("custom", SMALL, 5) == whole


def test_builders_of_one_game_at_once_agree(cache: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: open_game("custom", SMALL, 7), range(2))
    assert one == other
    assert len(list(cache.iterdir())) == 1


def test_a_compiler_that_is_missing_is_a_backend_error(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("INFORM_HOME", "/nowhere")
    with pytest.raises(BackendError, match="Inform"):
        open_game("custom", SMALL, 8)
    assert not any(cache.iterdir())


def test_a_story_that_is_none_is_a_backend_error() -> None:
    with pytest.raises(BackendError):
        TextGame(textgame.Story(b"", "{}"))


def resident() -> float:
    """MiB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.slow
def test_a_thousand_episodes_leak_nothing() -> None:
    env = build(SPEC, split="test")

    def episode(index: int) -> None:
        env.reset(options={"index": index % 3})
        played(env, env.unwrapped.oracle())

    for index in range(50):
        episode(index)
    before, files = resident(), len(os.listdir("/proc/self/fd"))
    for index in range(1000):
        episode(index)
    assert resident() - before < 8
    assert len(os.listdir("/proc/self/fd")) == files


@pytest.mark.slow
@pytest.mark.parametrize("spec", ALL, ids=name)
def test_admissible_commands_work_in_the_game(spec: TaskSpec) -> None:
    """Each is tried in a copy of the interpreter's state; "prepare meal" is the engine's own exception."""
    env = build(spec, split="test", max_turns=300)
    chance = random.Random(0)
    env.reset(options={"index": 1})
    task = env.unwrapped
    for _ in range(60):
        frotz, commands = task.game._frotz, task.admissible()
        here = frotz.get_state()
        for command in commands:
            said = frotz.step(command)[0]
            frotz.set_state(here)
            assert textgame.SUCCEEDED in said or command == "prepare meal", command
        if env.step(chance.choice(commands))[2]:
            env.reset(options={"index": 1})
    env.close()
