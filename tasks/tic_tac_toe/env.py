"""Tic-tac-toe as an environment."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from lmgym.env.games.opponents import Opponent, StrategyPlayer, best_response, board_opponent, perfect
from lmgym.env.games.two_players import TwoPlayerEnv
from lmgym.tasks.tic_tac_toe import SPEC
from lmgym.tasks.tic_tac_toe.game import EMPTY, MARKS, ROWS, TicTacToeState, position

COORDINATES = re.compile(r"([xo])?\(([0-2]), ?([0-2])\)")  # MARS' actions, such as X(0,2)


class TicTacToe(TwoPlayerEnv):
    """Get three marks in a row; X begins."""

    SPEC = SPEC
    DRAW = 0.1
    RULES = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
    state: TicTacToeState

    def __init__(self, *, opponent: str = "random", **common: Any) -> None:
        super().__init__(opponent=opponent, **common)

    def opponent_named(self, name: str) -> Opponent:
        """Return the player of random moves, perfect play or tree search."""
        return board_opponent(name, task=self.task.id, names=("random", "minimax", "mcts:N"))

    def opening(self, number: int) -> TicTacToeState:
        """Return the empty board."""
        return position(EMPTY * 9)

    def read(self, choice: str) -> str:
        """Return the number of a cell, also from its row and column, as MARS writes them, with the own mark."""
        if (cell := COORDINATES.fullmatch(choice)) and cell[1] in (None, MARKS[self.state.player].lower()):
            return str(3 * int(cell[2]) + int(cell[3]))
        return choice

    def describe(self, player: int) -> str:
        """Return the board, with the numbers of free cells."""
        return f"You are {MARKS[player]}.\n{self._board()}"

    def result(self) -> str:
        """Return the board and the winner."""
        return f"{self._board()}\n{f'{self.state.winner} wins.' if self.state.winner else 'A draw.'}"

    def best_action(self) -> str:
        """Return the best answer to a strategy, or perfect play against a search."""
        opponent = self.opponent
        return best_response(self.state, opponent.strategy if isinstance(opponent, StrategyPlayer) else perfect)

    def _board(self) -> str:
        cells = [str(cell) if mark == EMPTY else mark for cell, mark in enumerate(self.state.board)]
        return "\n".join(" ".join(cells[cell] for cell in row) for row in ROWS)
