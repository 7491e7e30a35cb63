"""Positions of tic-tac-toe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from lmgym.env.games.state import OVER

EMPTY, MARKS = "_", "XO"
ROWS = tuple(range(start, start + 3) for start in (0, 3, 6))
LINES = (*ROWS, *(range(start, 9, 3) for start in (0, 1, 2)), (0, 4, 8), (2, 4, 6))


@dataclass(frozen=True)
class TicTacToeState:
    """A position; player 0 has X and begins."""

    board: str = EMPTY * 9  # row by row

    @cached_property
    def winner(self) -> str:
        """Mark with three in a row; empty if there is none."""
        for line in LINES:
            marks = {self.board[cell] for cell in line}
            if len(marks) == 1 and EMPTY not in marks:
                return marks.pop()
        return ""

    @cached_property
    def player(self) -> int:
        """Player on turn."""
        if self.winner or EMPTY not in self.board:
            return OVER
        return (9 - self.board.count(EMPTY)) % 2

    @cached_property
    def free(self) -> tuple[str, ...]:
        """Numbers of the free cells."""
        return tuple(str(cell) for cell, mark in enumerate(self.board) if mark == EMPTY)

    def actions(self) -> tuple[str, ...]:
        """Return the numbers of the free cells."""
        return self.free

    def after(self, action: str) -> TicTacToeState:
        """Return the position after a mark in a cell."""
        cell = int(action)
        return position(self.board[:cell] + MARKS[self.player] + self.board[cell + 1 :])

    def outcomes(self) -> list[tuple[TicTacToeState, float]]:
        """Return nothing: there is no chance."""
        return []

    def payoff(self) -> float:
        """Return 1 if X won, -1 if O won, 0 for a draw."""
        return {"X": 1.0, "O": -1.0, "": 0.0}[self.winner]

    def view(self) -> str:
        """Return the board: nothing is hidden."""
        return self.board


@lru_cache(maxsize=8192)  # there are 5,478
def position(board: str) -> TicTacToeState:
    """Return the position with this board."""
    return TicTacToeState(board)
