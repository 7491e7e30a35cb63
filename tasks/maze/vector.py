"""Many mazes at once, by tables: `gym.make_vec("lmgym/MazeVector-v0", num_envs=1024)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from lmgym.env.actions import parse_command
from lmgym.env.env import ResetNeeded
from lmgym.env.spaces import clean
from lmgym.tasks.maze.layout import GOAL, MOVES, STARTS, moved

CELLS = (*STARTS, GOAL)
NUMBER = {move: number for number, move in enumerate(MOVES)}
INVALID, AT_GOAL = len(MOVES), len(STARTS)
MOST_ACTIONS = 10_000  # different ones whose move is remembered
Observations = dict[str, tuple[str, ...]]


class _Moves(dict[str, int]):
    """The number of the move that an action makes, INVALID for none; parsed once for each different action."""

    def __missing__(self, action: str) -> int:
        number = NUMBER.get(parse_command(clean(action)).lower(), INVALID)
        if len(self) < MOST_ACTIONS:
            self[action] = number
        return number


class MazeVector(VectorEnv[Observations, Sequence[str], NDArray[Any]]):
    """N mazes that answer as N environments of `lmgym/Maze-v0` in a SyncVectorEnv do, about a hundred times as fast.

    An episode that ends is opened anew by the next step, whose action it ignores. `info` has `valid`, and where
    episodes ended `score` and `success`.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs: int = 1, *, max_turns: int | None = None, **options: Any) -> None:
        """Take the options of `lmgym/Maze-v0`: view, rewards, explained, split and max_turns.

        Raises InstanceError for an unknown option or value.
        """
        self.num_envs = num_envs
        self._single = _single(max_turns=max_turns, **options)
        maze = self._single.unwrapped
        self._most = self._single.max_turns
        self.single_observation_space, self.single_action_space = maze.observation_space, maze.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        plain = _single(**{**options, "explained": False})
        later, first = ([_first_text(env, cell) for cell in STARTS] for env in (plain, self._single))
        self._texts = np.array([*later, "Success", *first], dtype=object)
        self._after = np.array(
            [*([CELLS.index(moved(cell, move)) for cell in STARTS] for move in MOVES), range(len(STARTS))]
        )
        self._rewards: NDArray[np.float64] = np.where(self._after == AT_GOAL, maze.at_goal, maze.per_move)
        self._rewards[INVALID] = maze.per_error
        self._moves = _Moves()
        self._cells = np.zeros(num_envs, dtype=np.intp)
        self._turns = np.zeros(num_envs, dtype=np.intp)
        self._over: NDArray[np.bool_] | None = None  # before the first reset
        self._chances: list[np.random.Generator | None] = [None] * num_envs

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Open all episodes; `seed` and `options` are those of SyncVectorEnv, without `reset_mask`."""
        if seed is not None:
            seeds = [seed + n for n in range(self.num_envs)] if isinstance(seed, int) else seed
            if len(seeds) != self.num_envs:
                raise ValueError(f"{self.num_envs} mazes need as many seeds; got {len(seeds)}")
            for n, each in enumerate(seeds):
                self._chances[n] = self._chances[n] if each is None else seeding.np_random(each)[0]
        if options:
            self._single.reset(options=options)
            self._cells[:] = STARTS.index(self._single.unwrapped.start)
        else:
            for n in range(self.num_envs):
                self._cells[n] = self._drawn(n)
        self._turns[:] = 0
        self._over = np.zeros(self.num_envs, dtype=np.bool_)
        return self._shown(self._cells + len(CELLS)), {"valid": ~self._over, "_valid": ~self._over}

    def step(
        self, actions: Sequence[str]
    ) -> tuple[Observations, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Play one action in each maze; raise ResetNeeded before the first reset."""
        if self._over is None:
            raise ResetNeeded("no episode is open; call reset() first")
        if len(actions) != self.num_envs:
            raise ValueError(f"{self.num_envs} mazes need as many actions; got {len(actions)}")
        moves = np.fromiter(map(self._moves.__getitem__, actions), np.intp, self.num_envs)
        opened = self._over.nonzero()[0]
        self._cells[opened] = 0
        rewards, cells = self._rewards[moves, self._cells], self._after[moves, self._cells]
        self._turns += 1
        valid, texts = moves != INVALID, cells
        if len(opened):
            cells[opened] = [self._drawn(int(n)) for n in opened]
            self._turns[opened], rewards[opened], valid[opened] = 0, 0.0, True
            texts = cells.copy()
            texts[opened] += len(CELLS)
        terminated = cells == AT_GOAL
        truncated = (self._turns >= self._most) & ~terminated
        self._cells, self._over = cells, terminated | truncated
        info = {"valid": valid, "_valid": np.ones(self.num_envs, dtype=np.bool_)}
        if self._over.any():
            score = terminated.astype(np.float64)
            info |= {"score": score, "_score": self._over, "success": terminated, "_success": self._over}
        return self._shown(texts), rewards, terminated, truncated, info

    def _drawn(self, number: int) -> int:
        """Return a start, drawn as the environment of this number draws it."""
        chance = self._chances[number]
        if chance is None:
            chance = self._chances[number] = seeding.np_random()[0]
        return int(chance.integers(len(STARTS)))

    def _shown(self, texts: NDArray[Any]) -> Observations:
        return {"text": tuple(self._texts[texts].tolist())}


def _single(**options: Any) -> Any:
    return gymnasium.make("lmgym/Maze-v0", **options)


def _first_text(env: Any, cell: tuple[int, int]) -> str:
    observation, _ = env.reset(options={"instance": {"start": list(cell)}})
    return str(observation["text"])
