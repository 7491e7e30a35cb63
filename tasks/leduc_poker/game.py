"""Leduc poker: six cards of three ranks, two rounds, two raises a round (Southey et al., UAI 2005)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from lmgym.env.games.state import CHANCE, OVER

CARDS = ("Jack", "Queen", "King")  # two of each
RAISES = (2, 4)  # chips, by round
MOST_RAISES = 2  # of a round


@dataclass(frozen=True)
class LeducState:
    """A position; both players paid one chip. Cards are ranks 0 to 2; `public` is revealed before the second round."""

    cards: tuple[int, ...] = ()
    public: int | None = None
    rounds: tuple[str, ...] = ("",)  # actions of each round: f, c or r

    @cached_property
    def player(self) -> int:
        """Player on turn."""
        if len(self.cards) < 2:
            return CHANCE
        played = self.rounds[-1]
        if played.endswith("f"):
            return OVER
        if len(played) > 1 and played.endswith("c"):
            return OVER if len(self.rounds) == 2 else CHANCE
        return len(played) % 2

    def actions(self) -> list[str]:
        """Return the legal actions: fold if there is a bet to meet, call, raise if there may be one more."""
        played = self.rounds[-1]
        raises = ["raise"] if played.count("r") < MOST_RAISES else []
        return ["fold", "call", *raises] if played.endswith("r") else ["call", *raises]

    def after(self, action: str) -> LeducState:
        """Return the position after an action."""
        return replace(self, rounds=(*self.rounds[:-1], self.rounds[-1] + action[0]))

    def reveal(self, card: int) -> LeducState:
        """Return the position in which the public card is revealed."""
        return replace(self, public=card, rounds=(*self.rounds, ""))

    def outcomes(self) -> list[tuple[LeducState, float]]:
        """Return the deals of the next card by rank."""
        left = [2 - self.cards.count(rank) for rank in range(3)]
        dealt = [(rank, count / sum(left)) for rank, count in enumerate(left) if count]
        if len(self.cards) < 2:
            return [(replace(self, cards=(*self.cards, rank)), chance) for rank, chance in dealt]
        return [(self.reveal(rank), chance) for rank, chance in dealt]

    def stakes(self) -> tuple[int, int]:
        """Return the chips that players 0 and 1 have paid."""
        paid = [1, 1]
        for size, played in zip(RAISES, self.rounds, strict=False):
            for number, letter in enumerate(played):
                if letter != "f":
                    paid[number % 2] = max(paid) + (size if letter == "r" else 0)
        return paid[0], paid[1]

    def payoff(self) -> float:
        """Return the chips that player 0 wins."""
        played = self.rounds[-1]
        if played.endswith("f"):
            loser = (len(played) - 1) % 2
            return float(self.stakes()[loser] * (-1 if loser == 0 else 1))
        first, second = (card + 3 * (card == self.public) for card in self.cards)  # a pair beats any other card
        return float(self.stakes()[0] * ((first > second) - (first < second)))

    def view(self) -> str:
        """Return the card of the player on turn, the public card and the actions so far."""
        public = "" if self.public is None else CARDS[self.public][0]
        return f"{CARDS[self.cards[self.player]][0]}{public}:{'/'.join(self.rounds)}"
