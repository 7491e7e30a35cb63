"""Leduc poker as an environment."""

from __future__ import annotations

from importlib.resources import files
from itertools import permutations
from typing import cast

from lmgym.env.games.hidden import HiddenCardsEnv
from lmgym.env.games.state import CHANCE, GameState
from lmgym.tasks.leduc_poker import SPEC
from lmgym.tasks.leduc_poker.game import CARDS, LeducState

DEALS = tuple(permutations(range(6), 3))  # cards of players 0 and 1 and the public card; two of each rank
STRIDE = 37  # between deals, without a common factor with their number: the first few have all cards
DONE = {"f": "folds", "c": "checks", "r": "raises"}


class LeducPoker(HiddenCardsEnv):
    """Win chips with one private and one public card; the payoff is at most 13 chips."""

    SPEC = SPEC
    MOST = 13.0
    RULES = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
    ROOT = LeducState()
    state: LeducState

    def opening(self, number: int) -> LeducState:
        """Deal the cards of game `number`."""
        *cards, self.public = (card // 2 for card in DEALS[number * STRIDE % len(DEALS)])
        return LeducState(tuple(cards))

    def settled(self, state: GameState) -> GameState:
        """Reveal the public card after the first round."""
        return cast(LeducState, state).reveal(self.public) if state.player == CHANCE else state

    def read(self, choice: str) -> str:
        """Return the action; to check is to call nothing, and to bet is to raise nothing."""
        facing = self.state.rounds[-1].endswith("r")
        if choice == "check" and not facing:
            return "call"
        return "raise" if choice == "bet" and not facing else choice

    def stake(self, player: int) -> float:
        """Return the chips that a player has paid."""
        return float(self.state.stakes()[player])

    def fingerprint(self) -> str:
        """Return the agent's seat and all three cards."""
        return f"{self.me} {self.state} {self.public}"

    def describe(self, player: int) -> str:
        """Return the cards, the actions so far, the stakes and the legal actions."""
        mine, theirs = (self.state.stakes()[each] for each in (player, 1 - player))
        card = f"Your card: {CARDS[self.state.cards[player]]}."
        *legal, last = self.state.actions()
        answer = f"{', '.join(legal)} or {last}" if legal else last
        chips = f"You have paid {mine}, the opponent {theirs}."
        return f"You are player {player + 1}. {card}{self._history()} {chips} Answer {answer}."

    def result(self) -> str:
        """Return the actions, the winner and, unless one folded, the cards."""
        payoff = int(self.state.payoff())
        first, second = (CARDS[card] for card in self.state.cards)
        folded = self.state.rounds[-1].endswith("f")
        cards = "" if folded else f" Player 1: {first}. Player 2: {second}."
        chips = f"{abs(payoff)} chip{'s' if abs(payoff) > 1 else ''}"
        winner = f"Player {1 if payoff > 0 else 2} wins {chips}." if payoff else "Nobody wins."
        return f"{self._history().strip()}{cards} {winner}"

    def _history(self) -> str:
        texts = []
        for number, played in enumerate(self.state.rounds):
            if number == 1:
                texts.append(f" Public card: {CARDS[self.public]}.")
            for turn, letter in enumerate(played):
                calls = letter == "c" and "r" in played[:turn]
                texts.append(f" Player {turn % 2 + 1} {'calls' if calls else DONE[letter]}.")
        return "".join(texts)
