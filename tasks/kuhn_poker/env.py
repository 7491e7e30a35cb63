"""Kuhn poker as an environment."""

from __future__ import annotations

from importlib.resources import files

from lmgym.env.games.hidden import HiddenCardsEnv
from lmgym.tasks.kuhn_poker import SPEC
from lmgym.tasks.kuhn_poker.game import CARDS, DEALS, KuhnState

DONE = {"check": "checks", "bet": "bets", "fold": "folds", "call": "calls"}


class KuhnPoker(HiddenCardsEnv):
    """Win chips with one of three cards; the payoff is 1 or 2 chips."""

    SPEC = SPEC
    MOST = 2.0
    RULES = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
    ROOT = KuhnState()
    state: KuhnState

    def opening(self, number: int) -> KuhnState:
        """Deal the cards of game `number`: MARS' six deals in turn."""
        return KuhnState(DEALS[number % len(DEALS)])

    def read(self, choice: str) -> str:
        """Return the action; OpenSpiel's pass and bet, which MARS prints, are understood as well."""
        if choice == "pass":
            return self.state.actions()[0]
        return self.state.actions()[1] if choice == "bet" else choice

    def stake(self, player: int) -> float:
        """Return the chip that a player paid before the cards."""
        return 1.0

    def describe(self, player: int) -> str:
        """Return the player's card, the actions so far and the legal ones."""
        assert self.state.cards is not None
        first, second = self.state.actions()
        card = CARDS[self.state.cards[player]]
        return f"You are player {player + 1}. Your card: {card}.{self._history()} Answer {first} or {second}."

    def result(self) -> str:
        """Return the actions, the winner and, unless one folded, the cards."""
        assert self.state.cards is not None
        payoff = self.state.payoff()
        first, second = (CARDS[card] for card in self.state.cards)
        cards = "" if self.state.played.endswith("bp") else f" Player 1: {first}. Player 2: {second}."
        chips = "1 chip" if abs(payoff) == 1 else "2 chips"
        return f"{self._history().strip()}{cards} Player {1 if payoff > 0 else 2} wins {chips}."

    def _history(self) -> str:
        state = KuhnState(self.state.cards)
        text = ""
        for number, letter in enumerate(self.state.played):
            action = state.actions()["pb".index(letter)]
            text += f" Player {number % 2 + 1} {DONE[action]}."
            state = state.after(action)
        return text
