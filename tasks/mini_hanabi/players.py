"""Players of Hanabi: one that knows what a player may know, and the best line with a partner of that kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from lmgym.tasks.mini_hanabi.game import COLORS, Card, HanabiState, Held

NODES = 20_000  # positions that the search for the best line visits at most


def _possible(state: HanabiState, held: Held) -> list[Card]:
    """Return the cards that an own card may be, by the hints and by the cards in sight."""
    seen = Counter(state.discards) + Counter(each.card for each in state.hands[1 - state.player])
    for color, size in enumerate(state.stacks):
        seen += Counter((color, rank) for rank in range(size))
    copies = Counter(state.rules.cards())
    return [card for card in product(sorted(held.colors), sorted(held.ranks)) if copies[card] > seen[card]]


def _needed(state: HanabiState, card: Card) -> bool:
    return state.stacks[card[0]] <= card[1]


def _hint(state: HanabiState) -> str | None:
    """Return a hint that tells something new of a card that the partner can play, or else needs, the lowest first."""
    cards = [held for held in state.hands[1 - state.player] if _needed(state, held.card)]
    for held in sorted(cards, key=lambda held: (not state.playable(held.card), held.card[1])):
        if len(held.ranks) > 1:
            return f"reveal rank {held.card[1] + 1}"
        if len(held.colors) > 1:
            return f"reveal color {COLORS[held.card[0]]}"
    return None


def careful(state: HanabiState) -> str:
    """Return the action of a player who plays what must be playable, hints at needed cards, and else discards."""
    hand = [_possible(state, held) for held in state.hands[state.player]]
    for number, cards in enumerate(hand):
        if cards and all(state.playable(card) for card in cards):
            return f"play {number}"
    if state.information and (hint := _hint(state)):
        return hint
    if state.information == state.rules.information:
        return state.actions()[-1]  # a hint, as nothing may be discarded
    useless = [number for number, cards in enumerate(hand) if not any(_needed(state, card) for card in cards)]
    return f"discard {useless[0] if useless else 0}"


@lru_cache(maxsize=4096)
def best_line(state: HanabiState, me: int) -> tuple[str, ...]:
    """Return the actions of player `me`, who sees all cards, that reach the most points with a careful partner.

    Depth-first, sensible actions first; cards that do not continue a stack are never played. The search ends at a
    perfect game, or after NODES positions with the best line so far.
    """
    best: tuple[int, tuple[str, ...]] = (-1, ())
    most, visited = state.rules.colors * state.rules.ranks, 0
    waiting: list[tuple[HanabiState, tuple[str, ...]]] = [(state, ())]
    seen: set[HanabiState] = set()
    while waiting and best[0] < most and visited < NODES:
        position, line = waiting.pop()
        while not position.over and position.player != me:
            position = position.after(careful(position))
        if position in seen:
            continue
        seen.add(position)
        visited += 1
        if position.over:
            best = max(best, (position.score, line), key=lambda each: each[0])
        else:
            waiting += [(position.after(action), (*line, action)) for action in reversed(list(_sensible(position)))]
    return best[1]


def _sensible(state: HanabiState) -> Iterator[str]:
    """Yield the actions of a player who sees all cards, promising ones first."""
    hand = [held.card for held in state.hands[state.player]]
    yield from (f"play {number}" for number, card in enumerate(hand) if state.playable(card))
    hint = _hint(state) if state.information else None
    if hint:
        yield hint
    actions = state.actions()
    discards = [number for number in range(len(hand)) if f"discard {number}" in actions]
    yield from (f"discard {n}" for n in sorted(discards, key=lambda n: (_needed(state, hand[n]), -hand[n][1])))
    yield from (action for action in actions if action.startswith("reveal") and action != hint)
