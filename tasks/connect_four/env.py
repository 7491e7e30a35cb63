"""Connect four as an environment."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from lmgym.env.games.opponents import Opponent, board_opponent
from lmgym.env.games.two_players import TwoPlayerEnv
from lmgym.tasks.connect_four import SPEC
from lmgym.tasks.connect_four.game import NAMES, ConnectFourState, random_payoff, search

MARKS = "XO"
DEPTH = 4  # stones that the oracle looks ahead
COLUMN = re.compile(r"(?:([xo])\(([0-6])\)|col ([0-6]))")  # as MARS and TextArena write it


class ConnectFour(TwoPlayerEnv):
    """Get four stones in a line by dropping them into columns; X begins."""

    SPEC = SPEC
    DRAW = 0.1
    RULES = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
    state: ConnectFourState

    def __init__(self, *, opponent: str = "random", **common: Any) -> None:
        super().__init__(opponent=opponent, **common)

    def opponent_named(self, name: str) -> Opponent:
        """Return the player of random moves or tree search; the game is too large for minimax."""
        return board_opponent(name, task=self.task.id, names=("random", "mcts:N"), rollout=random_payoff)

    def opening(self, number: int) -> ConnectFourState:
        """Return the empty board."""
        return ConnectFourState()

    def read(self, choice: str) -> str:
        """Return the number of a column."""
        if (column := COLUMN.fullmatch(choice)) and column[1] in (None, MARKS[self.state.player].lower()):
            return column[2] or column[3]
        return choice

    def describe(self, player: int) -> str:
        """Return the board under the numbers of its columns."""
        return f"You are {MARKS[player]}.\n{self._board()}"

    def result(self) -> str:
        """Return the board and the winner."""
        payoff = self.state.payoff()
        return f"{self._board()}\n{f'{MARKS[payoff < 0]} wins.' if payoff else 'A draw.'}"

    def best_action(self) -> str:
        """Return the choice of a search four stones deep."""
        return search(self.state, DEPTH)

    def _board(self) -> str:
        return "\n".join([" ".join(NAMES), *self.state.rows()])
