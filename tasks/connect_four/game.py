"""Positions of connect four as bits, random play on them, and a search of limited depth."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from lmgym.env.games.state import OVER, GameState

WIDTH, HEIGHT = 7, 6
COLUMN = HEIGHT + 1  # bits of a column: one above the board stays empty, so that lines end at its edges
BOTTOM = tuple(1 << COLUMN * column for column in range(WIDTH))
TOP = tuple(bit << HEIGHT - 1 for bit in BOTTOM)
FULL = sum((1 << HEIGHT) - 1 << COLUMN * column for column in range(WIDTH))
CENTRE = (3, 2, 4, 1, 5, 0, 6)  # columns, best first
NAMES = tuple(str(column) for column in range(WIDTH))
LOST = -1000.0


def connected(stones: int) -> bool:
    """Return True if four stones are in a line."""
    for step in (1, COLUMN, COLUMN - 1, COLUMN + 1):
        pairs = stones & stones >> step
        if pairs & pairs >> 2 * step:
            return True
    return False


@dataclass(frozen=True)
class ConnectFourState:
    """A position: the stones of the player on turn, and all stones. Player 0 begins."""

    own: int = 0
    stones: int = 0

    @cached_property
    def lost(self) -> bool:
        """True if the player on turn has lost."""
        return connected(self.own ^ self.stones)

    @cached_property
    def player(self) -> int:
        """Player on turn."""
        return OVER if self.lost or self.stones == FULL else self.stones.bit_count() % 2

    def actions(self) -> list[str]:
        """Return the columns that are not full."""
        return [name for name, top in zip(NAMES, TOP, strict=True) if not self.stones & top]

    def after(self, action: str) -> ConnectFourState:
        """Return the position after a stone in a column."""
        return ConnectFourState(self.own ^ self.stones, self.stones | self.stones + BOTTOM[int(action)])

    def outcomes(self) -> list[tuple[ConnectFourState, float]]:
        """Return nothing: there is no chance."""
        return []

    def payoff(self) -> float:
        """Return 1 if player 0 won, -1 if player 1 won, 0 for a draw."""
        if not self.lost:
            return 0.0
        return 1.0 if self.stones.bit_count() % 2 else -1.0

    def view(self) -> str:
        """Return the board: nothing is hidden."""
        return f"{self.own} {self.stones}"

    def rows(self) -> list[str]:
        """Return the rows from the top: X for player 0, O for player 1."""
        first = self.own if self.stones.bit_count() % 2 == 0 else self.own ^ self.stones
        rows = []
        for row in reversed(range(HEIGHT)):
            cells = [bottom << row for bottom in BOTTOM]
            rows.append(" ".join("X" if first & bit else "O" if self.stones & bit else "_" for bit in cells))
        return rows


def random_payoff(state: GameState, chance: random.Random) -> float:
    """Return the payoff of player 0 after random play."""
    own, stones = cast(ConnectFourState, state).own, cast(ConnectFourState, state).stones
    mover = stones.bit_count() % 2
    if connected(own ^ stones):
        return 1.0 if mover else -1.0
    draw = chance.random
    while stones != FULL:
        column = int(draw() * WIDTH)
        if stones & TOP[column]:
            continue
        stone = stones + BOTTOM[column] & ~stones
        own, stones = own | stone, stones | stone
        if connected(own):
            return -1.0 if mover else 1.0
        own, mover = own ^ stones, 1 - mover
    return 0.0


def search(state: ConnectFourState, depth: int) -> str:
    """Return the column that alpha-beta search of `depth` stones finds best; ties go to the centre."""
    values = {}
    for column in CENTRE:
        if not state.stones & TOP[column]:
            after = state.after(NAMES[column])
            values[NAMES[column]] = -_value(after.own, after.stones, depth - 1, LOST, -LOST)
    return max(values, key=values.__getitem__)


def _value(own: int, stones: int, depth: int, low: float, high: float) -> float:
    """Return the value for the player on turn; sooner losses are worse."""
    if connected(own ^ stones):
        return LOST - depth
    if stones == FULL or depth == 0:
        return _chances(own, own ^ stones) if stones != FULL else 0.0
    for column in CENTRE:
        if stones & TOP[column]:
            continue
        low = max(low, -_value(own ^ stones, stones | stones + BOTTOM[column], depth - 1, -high, -low))
        if low >= high:
            break
    return low


def _chances(own: int, other: int) -> float:
    """Return the difference of the lines of four that are still open, each counted by its stones."""
    return float(sum(_weight(line, own, other) for line in LINES))


def _weight(line: int, own: int, other: int) -> int:
    mine, theirs = (line & own).bit_count(), (line & other).bit_count()
    if mine and theirs:
        return 0
    return mine * mine - theirs * theirs


def _lines() -> Sequence[int]:
    cells = {(row, column): BOTTOM[column] << row for row in range(HEIGHT) for column in range(WIDTH)}
    steps = ((0, 1), (1, 0), (1, 1), (-1, 1))
    ends = [[(r + a * i, c + b * i) for i in range(4)] for r, c in cells for a, b in steps]
    return [sum(cells[cell] for cell in line) for line in ends if all(cell in cells for cell in line)]


LINES = _lines()  # all 69
