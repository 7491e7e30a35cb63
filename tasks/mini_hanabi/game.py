"""The rules of Hanabi for two players, as in the Hanabi Learning Environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

PLAYERS = 2
COLORS = ("red", "yellow", "green", "white", "blue")
FIRST_COPIES, COPIES, LAST_COPIES = 3, 2, 1  # of the lowest rank, the ranks between and the highest one

Card = tuple[int, int]  # color, rank from 0


@dataclass(frozen=True)
class Rules:
    """Sizes of a game."""

    colors: int = 2
    ranks: int = 2
    hand: int = 3  # cards
    information: int = 3  # tokens
    lives: int = 3

    def cards(self) -> list[Card]:
        """Return all cards, in order."""
        copies = [FIRST_COPIES, *[COPIES] * (self.ranks - 2), LAST_COPIES]
        return [
            (color, rank) for color in range(self.colors) for rank in range(self.ranks) for _ in range(copies[rank])
        ]


@dataclass(frozen=True)
class Held:
    """A card in a hand and what its owner was told of it."""

    card: Card
    colors: frozenset[int]  # that it may have
    ranks: frozenset[int]

    def told(self, action: str, number: int) -> Held:
        """Return the card after a hint that names a color or rank."""
        if action == "color":
            hinted = self.card[0] == number
            return replace(self, colors=self.colors & {number} if hinted else self.colors - {number})
        hinted = self.card[1] == number
        return replace(self, ranks=self.ranks & {number} if hinted else self.ranks - {number})


@dataclass(frozen=True)
class HanabiState:
    """A position; immutable. Cards leave a hand to the left, and new ones come in at the right."""

    rules: Rules
    deck: tuple[Card, ...]
    hands: tuple[tuple[Held, ...], ...] = ((), ())
    stacks: tuple[int, ...] = ()  # cards on each color's stack
    information: int = 0
    lives: int = 0
    player: int = 0  # on turn
    left: int = PLAYERS  # turns after the last card was drawn
    discards: tuple[Card, ...] = field(default=())

    @property
    def points(self) -> int:
        """Number of cards on the stacks."""
        return sum(self.stacks)

    @property
    def score(self) -> int:
        """Points of the game if it ended now: none without lives."""
        return self.points if self.lives else 0

    @property
    def over(self) -> bool:
        """True if no life, no card to play or no turn is left."""
        return not self.lives or self.points == self.rules.colors * self.rules.ranks or not self.left

    def playable(self, card: Card) -> bool:
        """Return True if a card continues its stack."""
        return self.stacks[card[0]] == card[1]

    def actions(self) -> list[str]:
        """Return the legal actions of the player on turn."""
        own, other = self.hands[self.player], self.hands[1 - self.player]
        plays = [f"play {number}" for number in range(len(own))]
        discards = (
            [f"discard {number}" for number in range(len(own))] if self.information < self.rules.information else []
        )
        if not self.information:
            return discards + plays
        colors = sorted({held.card[0] for held in other})
        ranks = sorted({held.card[1] for held in other})
        hints = [*(f"reveal color {COLORS[color]}" for color in colors), *(f"reveal rank {rank + 1}" for rank in ranks)]
        return discards + plays + hints

    def after(self, action: str) -> HanabiState:
        """Return the position after a legal action."""
        kind, *words = action.split()
        if kind == "reveal":
            number = COLORS.index(words[1]) if words[0] == "color" else int(words[1]) - 1
            other = tuple(held.told(words[0], number) for held in self.hands[1 - self.player])
            state = replace(self, hands=self._with_hand(1 - self.player, other), information=self.information - 1)
        else:
            state = self._without(int(words[0]), played=kind == "play")
        left = self.left - (not self.deck)
        return replace(state, player=1 - self.player, left=left)

    def _without(self, number: int, *, played: bool) -> HanabiState:
        """Return the position after a card of the player on turn was played or discarded, and another one drawn."""
        hand = self.hands[self.player]
        card = hand[number].card
        rest = (*hand[:number], *hand[number + 1 :], *(new_card(self.rules, drawn) for drawn in self.deck[:1]))
        state = replace(self, hands=self._with_hand(self.player, rest), deck=self.deck[1:])
        full = self.rules.information
        if played and self.playable(card):
            stacks = tuple(size + (color == card[0]) for color, size in enumerate(self.stacks))
            bonus = stacks[card[0]] == self.rules.ranks
            return replace(state, stacks=stacks, information=min(self.information + bonus, full))
        state = replace(state, discards=(*self.discards, card))
        if played:
            return replace(state, lives=self.lives - 1)
        return replace(state, information=min(self.information + 1, full))

    def _with_hand(self, player: int, hand: Sequence[Held]) -> tuple[tuple[Held, ...], ...]:
        return tuple(tuple(hand) if number == player else held for number, held in enumerate(self.hands))


def new_card(rules: Rules, card: Card) -> Held:
    """Return a card that its owner knows nothing of."""
    return Held(card, frozenset(range(rules.colors)), frozenset(range(rules.ranks)))


def deal(rules: Rules, cards: Sequence[Card], player: int = 0) -> HanabiState:
    """Return the first position: player 0 gets the first hand of the shuffled cards, player 1 the next."""
    hands = tuple(tuple(new_card(rules, c) for c in cards[i * rules.hand :][: rules.hand]) for i in range(PLAYERS))
    state = HanabiState(rules, tuple(cards[PLAYERS * rules.hand :]), hands, player=player)
    return replace(state, stacks=(0,) * rules.colors, information=rules.information, lives=rules.lives)
