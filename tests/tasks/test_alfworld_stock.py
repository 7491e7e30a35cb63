"""The stock engine (TextWorld's PddlEnv with ALFWorld's wrappers) says and takes what ours does, byte for byte.

It runs in processes of their own: it swaps `sys.stdout`, leaks a library per game and takes a second to load one.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmgym.tasks.alfworld import oracle
from lmgym.tasks.alfworld.engine import NOTHING, HouseholdGame
from lmgym.tasks.alfworld.households import TYPES, draw, write

pytest.importorskip("alfworld", reason="the alfworld package is not installed")
pytest.importorskip("fast_downward", reason="textworld[pddl] is not installed")

STOCK = """
import json, sys
jobs, answers = sys.argv[1:]
import textworld
from textworld.envs.pddl import PddlEnv
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

def said(state):
    return [state.feedback, state["admissible_commands"], bool(state["won"])]

played = []
for path, commands in json.load(open(jobs)):
    env = AlfredInfos(AlfredDemangler(PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True))))
    env.load(path)
    played.append([said(env.reset()), *(said(env.step(command)[0]) for command in commands)])
json.dump(played, open(answers, "w"))
"""
GARBAGE = (
    "",
    "look around",
    "LOOK",
    " look ",
    "go to mars 1",
    "take apple 1",
    "open fridge 1",
    "go to cabinet 1",
    "help",
)
Said = list[object]  # text, admissible commands, won
Job = tuple[str, list[str]]  # game file, commands

OFFICIAL = Path(os.environ.get("LMGYM_TEST_DATA", Path(__file__).parents[3] / "shared" / "data")) / "alfworld"


def official_games() -> list[Path]:
    """Solvable official games; the stock engine cannot load the unsolvable ones."""
    paths = sorted(OFFICIAL.glob("json_2.1.*/*/*/*/game.tw-pddl"))
    if not paths:
        pytest.skip(f"no official ALFWorld games under {OFFICIAL.name}/ of $LMGYM_TEST_DATA or ../shared/data")
    return [path for path in paths if json.loads(path.read_text())["solvable"]]


def households(folder: Path, count: int, *, shared: bool = False, **size: int) -> Iterator[Path]:
    """Own games of all types in turn, as files; with `shared`, the second receptacle stands where the first does."""
    for index in range(count):
        game = write(draw("train" if index % 2 else "test", index, **{"receptacles": 9, "objects": 8, **size}))
        if shared:
            game["pddl_problem"] = str(game["pddl_problem"]).replace("loc_bar_02)", "loc_bar_01)")
        path = folder / f"{index}-{shared}.json"
        path.write_text(json.dumps(game))
        yield path


def ours(path: Path, *, wander: int, seed: int) -> tuple[list[str], list[Said]]:
    """Play a game here: some random commands, a few of them none, then the oracle's to the end."""
    game, rng = HouseholdGame.read(json.loads(path.read_text())), random.Random(seed)
    commands: list[str] = []
    said: list[Said] = [[game.opening(), game.commands(), game.won]]

    def play(command: str) -> None:
        answer = game.step(command)
        commands.append(command)
        said.append([NOTHING if answer is None else answer, game.commands(), game.won])

    for _ in range(wander):
        hands_on = [c for c in game.commands() if not c.startswith(("go to", "look", "inventory", "examine", "help"))]
        chosen = hands_on if hands_on and rng.random() < 0.6 else game.commands()
        play(rng.choice(GARBAGE) if rng.random() < 0.1 else rng.choice(chosen))
    for command in oracle.play(game):
        play(command)
    return commands, said


def assert_same(paths: list[Path], folder: Path, *, wander: int, seconds: int) -> None:
    """Play all games on both engines; all of them are won, but where wandering led into a dead end."""
    played = [ours(path, wander=wander, seed=seed) for seed, path in enumerate(paths)]
    jobs, answers = folder / "jobs.json", folder / "answers.json"
    jobs.write_text(json.dumps([(str(path), commands) for path, (commands, _) in zip(paths, played, strict=True)]))
    done = subprocess.run(
        [sys.executable, "-c", STOCK, str(jobs), str(answers)], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for path, (commands, said), stock in zip(paths, played, json.loads(answers.read_text()), strict=True):
        for turn, (mine, theirs) in enumerate(zip(said, stock, strict=True)):
            assert mine == theirs, f"{path.parent.name}/{path.name} after {commands[:turn]}"
    assert sum(bool(said[-1][2]) for _, said in played) > len(played) / 2


@pytest.mark.slow
def test_own_games_are_the_stock_engine_s(tmp_path: Path) -> None:
    games = [*households(tmp_path, len(TYPES)), *households(tmp_path, 1, shared=True)]
    assert_same(games, tmp_path, wander=6, seconds=250)


def test_official_games_are_the_stock_engine_s(tmp_path: Path) -> None:
    assert_same(official_games()[::40], tmp_path, wander=4, seconds=250)


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("part", range(6))
def test_every_official_game_is_the_stock_engine_s(tmp_path: Path, part: int) -> None:
    assert_same(official_games()[part::6], tmp_path, wander=40, seconds=900)


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("size", [{}, {"receptacles": 5, "objects": 3}, {"receptacles": 20, "objects": 16}])
@pytest.mark.parametrize("shared", [False, True])
def test_many_own_games_are_the_stock_engine_s(tmp_path: Path, size: dict[str, int], shared: bool) -> None:
    assert_same(list(households(tmp_path, 12, shared=shared, **size)), tmp_path, wander=40, seconds=900)
