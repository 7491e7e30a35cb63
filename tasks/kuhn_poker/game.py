"""Kuhn poker: three cards, one bet (H. W. Kuhn, 1950)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lmgym.env.games.state import CHANCE, OVER

CARDS = ("Jack", "Queen", "King")
DEALS = ((0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1))  # cards of players 0 and 1, in the order of MARS' seeds
TURNS = {"": 0, "p": 1, "b": 1, "pb": 0}  # actions so far, (p)ass or (b)et -> player on turn
OPEN, FACED = ("check", "bet"), ("fold", "call")


@dataclass(frozen=True)
class KuhnState:
    """A position; both players paid one chip, and a bet is one chip more."""

    cards: tuple[int, int] | None = None
    played: str = ""  # p or b for each action

    @cached_property
    def player(self) -> int:
        """Player on turn."""
        return CHANCE if self.cards is None else TURNS.get(self.played, OVER)

    def actions(self) -> tuple[str, str]:
        """Return the legal actions: what passes first, then what bets."""
        return FACED if self.played.endswith("b") else OPEN

    def after(self, action: str) -> KuhnState:
        """Return the position after an action."""
        return KuhnState(self.cards, self.played + "pb"[self.actions().index(action)])

    def outcomes(self) -> list[tuple[KuhnState, float]]:
        """Return the six deals."""
        return [(KuhnState(deal), 1 / len(DEALS)) for deal in DEALS]

    def payoff(self) -> float:
        """Return the chips that player 0 wins."""
        assert self.cards is not None
        if self.played in ("bp", "pbp"):
            return 1.0 if self.played == "bp" else -1.0
        won = 2 if self.played.endswith("bb") else 1
        return float(won if self.cards[0] > self.cards[1] else -won)

    def view(self) -> str:
        """Return the card of the player on turn and the actions so far."""
        assert self.cards is not None
        return f"{CARDS[self.cards[self.player]][0]}{self.played}"
