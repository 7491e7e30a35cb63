"""Our maze, alone and a thousand at once, and Text-Nav beside the work that LMRL-Gym's release does for them.

The release is no package and needs a TextWorld of its own, so its work is done anew here: its Text-Nav builds and
compiles its game at every reset and asks for the inventory by a second command after each; its maze returns the text of
the last forty messages. Neither has Gymnasium's interface, checks or records.
"""

from __future__ import annotations

import itertools
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import speeds

from lmgym.env import golden
from lmgym.tasks.maze.layout import FREE, GOAL, MOVES, SIDES, STARTS
from lmgym.tasks.text_nav.house import furnished

ROUNDS = 3
AT_ONCE = 1024  # mazes of the vector environment
KEPT = 40  # messages that a step of the release's maze returns
Step = Callable[[str], bool]  # plays an action and returns True at the end of the episode


def rows(seconds: float) -> Iterator[tuple[str, str, str, str]]:
    """Yield task, our steps/s, those of the release's way, and the ratio: medians of rounds in turn."""
    for task, released in (("lmgym/Maze-v0", maze), ("lmgym/MazeVector-v0", maze), ("lmgym/TextNav-v0", text_nav)):
        with closing(gymnasium.make(task.replace("Vector", ""))) as env:
            instances = range(env.unwrapped.size())
            games = [golden.play(env, lambda each: each.oracle(), index=index).actions for index in instances]
            actions = [action for game in games for action in game]
            ours_of = vector_rate if "Vector" in task else partial(speeds.task_rate, env)
            rounds = [(ours_of(seconds, actions), released(seconds, games)) for _ in range(ROUNDS)]
        ours, theirs = (statistics.median(rates) for rates in zip(*rounds, strict=True))
        yield task, f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.2f}"


def vector_rate(seconds: float, actions: Sequence[str]) -> float:
    """Return steps/s of many mazes at once, those of all together; the steps that open episodes do not count."""
    with closing(gymnasium.make_vec("lmgym/MazeVector-v0", num_envs=AT_ONCE)) as envs:
        envs.reset(seed=0)
        chance = np.random.default_rng(0)
        said = [[actions[n] for n in chance.integers(len(actions), size=AT_ONCE)] for _ in range(100)]
        steps, opening, start = 0, 0, time.perf_counter()
        for row in itertools.cycle(said):
            _, _, terminated, truncated, _ = envs.step(row)
            steps += AT_ONCE - opening
            opening = int((terminated | truncated).sum())
            if time.perf_counter() >= start + seconds:
                return steps / (time.perf_counter() - start)
    raise AssertionError("no step was made")


def maze(seconds: float, games: Sequence[Sequence[str]]) -> float:
    """Return steps/s of the maze in the release's way: an array of walls, three sentences, the last messages."""
    walls = np.ones((10, 13), dtype=np.int64)
    walls[tuple(zip(*FREE, strict=True))] = 0
    goal = ", ".join(str(number) for number in GOAL)

    def described(row: int, column: int) -> str:
        seen = [side for side, (down, right) in SIDES.items() if walls[row + down, column + right]]
        said = f"There are walls {', '.join(seen)}." if len(seen) > 1 else f"There is a wall {''.join(seen)}."
        return f"The goal is at position {goal}. Your position is {row}, {column}. {said}\n"

    def reset(index: int) -> Step:
        cell = STARTS[index]
        random.choice(np.argwhere(walls == 0).tolist())
        history = [described(*cell)]

        def step(action: str) -> bool:
            nonlocal cell, history
            down, right = MOVES[action]
            if not walls[cell[0] + down, cell[1] + right]:
                cell = (cell[0] + down, cell[1] + right)
            history = [*history, action, described(*cell)][-KEPT:]
            return cell == GOAL

        return step

    return _rate(seconds, games, reset)


def text_nav(seconds: float, games: Sequence[Sequence[str]]) -> float:
    """Return steps/s of Text-Nav in the release's way, on our house: compiled at each reset, played by TextWorld."""
    import textworld
    from textworld.generator import compile_game

    infos = textworld.EnvInfos(description=True, admissible_commands=True, location=True, inventory=True)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jericho's, of games that it has no score for

        def reset(index: int) -> Step:
            options = textworld.GameOptions()
            options.path = str(Path(folder) / f"{index}.z8")
            options.force_recompile = True
            game = textworld.start(compile_game(furnished(index), options), infos)
            game.reset()

            def step(command: str) -> bool:
                state, _, done = game.step(command)
                if not done:
                    game.step("inventory")
                return bool(done or state["done"])

            return step

        return _rate(seconds, games, reset)


def _rate(seconds: float, games: Sequence[Sequence[str]], reset: Callable[[int], Step]) -> float:
    """Return steps/s of the games in turn, resets included, until the first that ends after `seconds`."""
    steps, start = 0, time.perf_counter()
    for index in itertools.cycle(range(len(games))):
        step = reset(index)
        steps += next(number for number, action in enumerate(games[index], start=1) if step(action))
        if time.perf_counter() >= start + seconds:
            return steps / (time.perf_counter() - start)
    raise AssertionError("a task without instances was opened")
