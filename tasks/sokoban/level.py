"""Sokoban levels: rooms, positions, moves, a generator that plays backwards, and a solver."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

Cell = tuple[int, int]  # row, column
MOVES: dict[str, Cell] = {"Up": (-1, 0), "Down": (1, 0), "Left": (0, -1), "Right": (0, 1)}
STREAM = {"train": 0, "test": 1}
FLOOR = 0.6  # share of the inner cells that are carved at least
SHORTEST = 4  # moves of the longest solution in a room at least
LONGEST = 10  # moves of a solution at most where RAGEN's protocol allows no more


@dataclass(frozen=True)
class Position:
    """The cells of the player and the boxes."""

    player: Cell
    boxes: frozenset[Cell]


@dataclass(frozen=True)
class Puzzle:
    """A room with as many targets as boxes, and the position an episode starts from."""

    side: int
    floor: frozenset[Cell]
    targets: frozenset[Cell]
    start: Position

    def moved(self, position: Position, move: str) -> Position:
        """Return the position after a move, which pushes a box where there is room; else nothing changes."""
        step = MOVES[move]
        ahead, beyond = _after(position.player, step), _after(position.player, step, 2)
        if ahead not in self.floor:
            return position
        if ahead not in position.boxes:
            return Position(ahead, position.boxes)
        if beyond not in self.floor or beyond in position.boxes:
            return position
        return Position(ahead, position.boxes - {ahead} | {beyond})

    def solved(self, position: Position) -> bool:
        """Return True if every box stands on a target."""
        return position.boxes == self.targets

    def draw(self, position: Position) -> str:
        """Return the room as rows of symbols."""
        cells = [(row, column) for row in range(self.side) for column in range(self.side)]
        text = "".join(self._symbol(cell, position) for cell in cells)
        return "\n".join(text[start : start + self.side] for start in range(0, len(text), self.side))

    def _symbol(self, cell: Cell, position: Position) -> str:
        if cell not in self.floor:
            return "#"
        target = cell in self.targets
        if cell == position.player:
            return "S" if target else "P"
        if cell in position.boxes:
            return "√" if target else "X"
        return "O" if target else "_"

    def solution(self, position: Position) -> list[str] | None:
        """Return a shortest list of moves that solves `position`; None where there is none."""
        parents: dict[Position, tuple[Position, str] | None] = {position: None}
        queue = deque([position])
        while queue:
            current = queue.popleft()
            if self.solved(current):
                return _moves_to(current, parents)
            for move in MOVES:
                after = self.moved(current, move)
                if after not in parents:
                    parents[after] = current, move
                    queue.append(after)
        return None


def _after(cell: Cell, step: Cell, times: int = 1) -> Cell:
    return (cell[0] + times * step[0], cell[1] + times * step[1])


def _moves_to(position: Position, parents: dict[Position, tuple[Position, str] | None]) -> list[str]:
    moves = []
    while (parent := parents[position]) is not None:
        position, move = parent
        moves.append(move)
    return moves[::-1]


@lru_cache(maxsize=1024)
def level(split: str, index: int, side: int, boxes: int, most: int | None) -> Puzzle:
    """Draw the level of an instance: a carved room, targets, and a start that takes many moves to solve.

    The start is drawn from the positions with no box on a target whose shortest solution has at least half the
    moves of the longest one in this room, and at most `most`. Levels of the other split are drawn again.
    """
    rng = np.random.default_rng([STREAM[split], index, side, boxes])
    while True:
        floor = _carved(rng, side)
        cells = sorted(floor)
        targets = frozenset(cells[place] for place in rng.choice(len(cells), boxes, replace=False))
        moves = {
            position: distance
            for position, distance in _distances(floor, targets).items()
            if not position.boxes & targets and (most is None or distance <= most)
        }
        longest = max(moves.values(), default=0)
        if longest < SHORTEST:
            continue
        starts = [position for position, distance in moves.items() if 2 * distance >= longest]
        made = Puzzle(side, floor, targets, starts[int(rng.integers(len(starts)))])
        if _split_of(made) == split:
            return made


def _distances(floor: frozenset[Cell], targets: frozenset[Cell]) -> dict[Position, int]:
    """Return the moves to a solution of every position that has one, by pulling backwards from the solved ones."""
    solved = [Position(player, targets) for player in sorted(floor - targets)]
    distances = dict.fromkeys(solved, 0)
    queue = deque(solved)
    while queue:
        current = queue.popleft()
        for step in MOVES.values():
            back, front = _after(current.player, step, -1), _after(current.player, step)
            if back not in floor or back in current.boxes:
                continue
            befores = [Position(back, current.boxes)]
            if front in current.boxes:
                befores.append(Position(back, current.boxes - {front} | {current.player}))
            for before in befores:
                if before not in distances:
                    distances[before] = distances[current] + 1
                    queue.append(before)
    return distances


def _carved(rng: np.random.Generator, side: int) -> frozenset[Cell]:
    """Carve a connected room by a random walk that takes two cells at a time, so that boxes can be turned."""
    steps = list(MOVES.values())
    cell = (int(rng.integers(1, side - 1)), int(rng.integers(1, side - 1)))
    floor = {cell}
    while len(floor) < FLOOR * (side - 2) ** 2:
        step = steps[int(rng.integers(4))]
        for _ in range(2):
            after = _after(cell, step)
            if 0 < after[0] < side - 1 and 0 < after[1] < side - 1:
                cell = after
                floor.add(cell)
    return frozenset(floor)


def _split_of(made: Puzzle) -> str:
    """Return the split that a level belongs to: a fifth of all, by the digest of its drawing, are for testing."""
    digest = hashlib.blake2b(made.draw(made.start).encode(), digest_size=1).digest()
    return "test" if digest[0] < 52 else "train"
