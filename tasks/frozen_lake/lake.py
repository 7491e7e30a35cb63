"""Maps of frozen lakes, how a step moves, and the best policy on a map."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product

import numpy as np
import numpy.typing as npt

ACTIONS = ("Left", "Down", "Right", "Up")  # Gymnasium's order: neighbours are perpendicular
STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))
STREAM = {"train": 0, "test": 1}
FROZEN = 0.8  # probability of a tile, as in RAGEN

Cell = tuple[int, int]  # row, column


@dataclass(frozen=True)
class Lake:
    """A square map with one start and one goal."""

    side: int
    holes: frozenset[Cell]
    start: Cell
    goal: Cell

    def moved(self, cell: Cell, action: int) -> Cell:
        """Return the tile that an action leads to where nobody slips; the edge stops."""
        row, column = cell[0] + STEPS[action][0], cell[1] + STEPS[action][1]
        return (min(max(row, 0), self.side - 1), min(max(column, 0), self.side - 1))

    def outcomes(self, cell: Cell, action: int, *, slippery: bool) -> list[Cell]:
        """Return the tiles that an action leads to, each as likely as the others."""
        directions = ((action - 1) % 4, action, (action + 1) % 4) if slippery else (action,)
        return [self.moved(cell, direction) for direction in directions]

    def draw(self, cell: Cell, mark: str) -> str:
        """Return the map as rows of symbols, with `mark` where the player is."""
        symbols = {**dict.fromkeys(self.holes, "O"), self.goal: "G", cell: mark}
        rows = range(self.side)
        return "\n".join(" ".join(symbols.get((row, column), "_") for column in rows) for row in rows)


@lru_cache(maxsize=1024)
def lake(split: str, index: int, side: int) -> Lake:
    """Draw the map of an instance: every tile is frozen with probability 0.8.

    Maps without a path, and maps of the other split, are drawn again.
    """
    rng = np.random.default_rng([STREAM[split], index, side])
    while True:
        frozen = rng.random((side, side)) < FROZEN
        start, goal = (divmod(int(tile), side) for tile in rng.choice(side * side, 2, replace=False))
        holes = frozenset(
            (row, column)
            for row in range(side)
            for column in range(side)
            if not frozen[row, column] and (row, column) not in (start, goal)
        )
        made = Lake(side, holes, start, goal)
        if _has_path(made) and _split_of(made) == split:
            return made


def _split_of(made: Lake) -> str:
    """Return the split that a map belongs to: a fifth of all maps, by their digest, are for testing."""
    digest = hashlib.blake2b(made.draw(made.start, "P").encode(), digest_size=1).digest()
    return "test" if digest[0] < 52 else "train"


def _has_path(made: Lake) -> bool:
    reached, frontier = {made.start}, [made.start]
    while frontier:
        cell = frontier.pop()
        for action in range(4):
            after = made.moved(cell, action)
            if after not in reached and after not in made.holes:
                reached.add(after)
                frontier.append(after)
    return made.goal in reached


@dataclass(frozen=True)
class BestPlay:
    """The best play on a map: win probabilities and answers by turns and steps left.

    An answer is a sequence of up to `per_turn` actions, chosen before the first of them is seen to slip.
    """

    sequences: tuple[tuple[int, ...], ...]
    value: npt.NDArray[np.float64]  # (turns + 1, steps + 1, tiles): probability of reaching the goal
    answer: npt.NDArray[np.int64]  # (turns + 1, steps + 1, tiles): index into `sequences`


@lru_cache(maxsize=1024)
def best_play(made: Lake, *, slippery: bool, turns: int, steps: int, per_turn: int) -> BestPlay:
    """Solve a map by dynamic programming over turns left and steps left."""
    transition = np.stack([_transition(made, action, slippery=slippery) for action in range(4)])  # (4, tiles, tiles)
    sequences = [sequence for n in range(1, per_turn + 1) for sequence in product(range(4), repeat=n)]
    moved = np.stack([reduce(np.matmul, transition[list(sequence)]) for sequence in sequences])
    length = np.array([len(sequence) for sequence in sequences])
    tiles = made.side**2
    value = np.zeros((turns + 1, steps + 1, tiles))
    value[:, :, made.goal[0] * made.side + made.goal[1]] = 1.0
    answer = np.zeros((turns + 1, steps + 1, tiles), np.int64)
    for turn in range(1, turns + 1):
        for left in range(1, steps + 1):
            allowed = np.flatnonzero(length <= left)
            after = value[turn - 1, left - length[allowed]]  # (sequences, tiles)
            won = np.einsum("sij,sj->si", moved[allowed], after)
            best = won.argmax(0)
            value[turn, left], answer[turn, left] = won.max(0), allowed[best]
    return BestPlay(tuple(sequences), value, answer)


def _transition(made: Lake, action: int, *, slippery: bool) -> npt.NDArray[np.float64]:
    """Return the probabilities (tiles, tiles) of going from one tile to another; goal and holes keep the player."""
    matrix = np.zeros((made.side**2, made.side**2))
    for tile in range(made.side**2):
        cell = divmod(tile, made.side)
        stays = cell == made.goal or cell in made.holes
        for row, column in [cell] if stays else made.outcomes(cell, action, slippery=slippery):
            matrix[tile, row * made.side + column] += 1.0
    normalised: npt.NDArray[np.float64] = matrix / matrix.sum(1, keepdims=True)
    return normalised
