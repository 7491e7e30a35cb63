"""The protocol of a position in a zero-sum game of two players."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

CHANCE, OVER = -1, -2  # values of `player` where nobody is on turn


class GameState(Protocol):
    """A position; immutable."""

    def __hash__(self) -> int:
        """Return a hash of the position."""

    @property
    def player(self) -> int:
        """Player on turn, 0 or 1; CHANCE or OVER if there is none."""

    def actions(self) -> Sequence[str]:
        """Return the legal actions of the player on turn, in a fixed order."""

    def after(self, action: str) -> GameState:
        """Return the position after a legal action."""

    def outcomes(self) -> Sequence[tuple[GameState, float]]:
        """Return the positions that chance may choose, with their probabilities."""

    def payoff(self) -> float:
        """Return what player 0 wins and player 1 loses, once the game is over."""

    def view(self) -> str:
        """Return the information set of the player on turn: all that this player knows, the own actions included."""


Strategy = Callable[[GameState], Sequence[float]]  # a position -> probabilities of its `actions()`


def uniform(state: GameState) -> list[float]:
    """Return the same probability for every legal action."""
    count = len(state.actions())
    return [1 / count] * count
