"""Hanabi of two players as an environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from lmgym.env.actions import parse_choice
from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.mini_hanabi import SPEC
from lmgym.tasks.mini_hanabi.game import COLORS, Card, HanabiState, Held, Rules, deal
from lmgym.tasks.mini_hanabi.players import best_line, careful
from lmgym.types import FIRST_SEAT

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
STREAM = {"train": 0, "test": 1}
PARTNER = "partner"  # name of the other seat
FREE = {"game": 2, "mars": 0}  # reward scheme -> invalid answers in a row without consequence
FORMAT = -10.0  # MARS' penalty for an invalid answer, on top of the points
MARS = re.compile(r"\bcard (?=\d)|player \+1 ")  # words of MARS' actions that ours leave out
SIZES = {"colors": (2, 5), "ranks": (2, 5), "hand": (2, 5), "information": (1, 8), "lives": (1, 3)}


class MiniHanabi(TextEnv):
    """Build a stack of each color from 1 up with a partner; every card that fits pays both seats 1.

    The loss of the last life takes the points back. The third invalid answer in a row ends the game as well, and with
    `reward="mars"` the first one, at a cost of 10 for its player alone. The agent begins in even instances, unless
    `first` names a seat. `colors`, `ranks`, `hand` (cards), `information` (tokens) and `lives` set the size.
    """

    SPEC = SPEC

    def __init__(
        self,
        *,
        reward: str = "game",
        first: str = "both",
        colors: int = 2,
        ranks: int = 2,
        hand: int = 3,
        information: int = 3,
        lives: int = 3,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.check_choices(reward=(reward, FREE), first=(first, ("both", FIRST_SEAT, PARTNER)))
        self.rules = Rules(colors, ranks, hand, information, lives)
        for name, (low, high) in SIZES.items():
            if not low <= getattr(self.rules, name) <= high:
                raise InstanceError(f"{self.task.id}: {name} is {low} to {high}; got {getattr(self.rules, name)}")
        if len(self.rules.cards()) < 2 * hand:
            raise InstanceError(f"{self.task.id}: hands of {hand} need {2 * hand} cards; got {len(self.rules.cards())}")
        self.reward, self.first = reward, first

    def begin(self, index: int) -> Reply:
        """Shuffle and deal the cards of this instance."""
        chance = np.random.default_rng([STREAM[self.split], index])
        cards = self.rules.cards()
        self.cards: list[Card] = [cards[int(number)] for number in chance.permutation(len(cards))]
        self.me = index % 2 if self.first == "both" else int(self.first == PARTNER)
        self.state = deal(self.rules, self.cards)
        self.invalid = 0  # answers in a row
        self.briefed = [False, False]
        return self._turn("")

    def act(self, action: str) -> Reply:
        """Play, discard or hint."""
        before, player = self.state, self.state.player
        choice = MARS.sub("", parse_choice(action))
        if choice not in before.actions():
            return self._refuse(player)
        self.invalid = 0
        self.state = before.after(choice)
        gained = float(self.state.points - before.points)
        if not self.state.lives:
            gained = -float(before.points)
        note = f"Player {player + 1}: {choice}.{self._outcome(before, choice)} "
        reply = self._end(note) if self.state.over else self._turn(note)
        reply.reward, reply.others = gained, {self._seat_of(1 - player): gained}
        return reply

    def score_if_cut(self) -> dict[str, float]:
        """Return the share of the points so far, for both seats."""
        return self._scores(self.state.score)

    def admissible(self) -> list[str]:
        """Return the legal actions."""
        return self.state.actions()

    def scripted(self, seat: str) -> str:
        """Play the partner, who knows what a player may know."""
        return careful(self.state)

    def oracle(self) -> Iterator[str]:
        """Play the best line, with all cards in sight."""
        while True:
            line = best_line(self.state, self.state.player)
            yield line[0] if line else careful(self.state)

    def demonstrator(self) -> Iterator[str]:
        """Play as the scripted partner does."""
        while True:
            yield careful(self.state)

    def fingerprint(self) -> str:
        """Return the order of the cards and the agent's seat."""
        return f"{self.me} {self.rules} {self.cards}"

    def _seat_of(self, player: int) -> str:
        return FIRST_SEAT if player == self.me else PARTNER

    def _scores(self, points: int) -> dict[str, float]:
        share = points / (self.rules.colors * self.rules.ranks)
        return {FIRST_SEAT: share, PARTNER: share}

    def _turn(self, note: str) -> Reply:
        player = self.state.player
        text = f"{note}{self._describe(player)}"
        if not self.briefed[player]:
            self.briefed[player] = True
            sizes = self.rules
            names = ", ".join(COLORS[: sizes.colors])
            first = PROMPT.substitute(colors=names, ranks=sizes.ranks, lives=sizes.lives, information=sizes.information)
            text = f"{first}\n\n{text}"
        return Reply(text, seat=self._seat_of(player))

    def _end(self, note: str) -> Reply:
        most = self.rules.colors * self.rules.ranks
        points = self.state.score
        return Reply(f"{note}The game is over: {points} of {most} points.", done=True, score=self._scores(points))

    def _refuse(self, player: int) -> Reply:
        """Answer an invalid action, which ends the game if there were too many."""
        self.invalid += 1
        if self.invalid <= FREE[self.reward]:
            reply = self._turn("That is not one legal action. ")
        else:
            lost = -float(self.state.points)
            reply = Reply(f"Player {player + 1} ends the game by an invalid action.", done=True, score=self._scores(0))
            mars = self.reward == "mars"
            reply.reward = {"reward": lost, "format": FORMAT} if mars else lost
            reply.others = {self._seat_of(1 - player): 0.0 if mars else lost}
        reply.valid = False
        return reply

    def _outcome(self, before: HanabiState, choice: str) -> str:
        """Return what became of a card that was played or discarded."""
        kind, *words = choice.split()
        if kind == "reveal":
            return ""
        color, rank = before.hands[before.player][int(words[0])].card
        card = f" It was {COLORS[color]} {rank + 1}"
        if kind == "discard":
            return f"{card}."
        return f"{card} and fits." if self.state.points > before.points else f"{card} and does not fit: a life is lost."

    def _describe(self, player: int) -> str:
        """Return what a player sees: tokens, stacks, the partner's cards, and what is known of the own ones."""
        state = self.state
        stacks = ", ".join(f"{COLORS[color]} {size}" for color, size in enumerate(state.stacks))
        partner = ", ".join(f"{COLORS[held.card[0]]} {held.card[1] + 1}" for held in state.hands[1 - player])
        own = ", ".join(f"{number}: {self._hints(held)}" for number, held in enumerate(state.hands[player]))
        discards = ", ".join(f"{COLORS[color]} {rank + 1}" for color, rank in state.discards) or "none"
        return (
            f"You are player {player + 1}. Lives: {state.lives}. Information: {state.information}. "
            f"Deck: {len(state.deck)}.\nStacks: {stacks}.\nDiscards: {discards}.\nPartner's cards: {partner}.\n"
            f"Your cards: {own}.\nLegal: {', '.join(state.actions())}."
        )

    def _hints(self, held: Held) -> str:
        colors = [COLORS[color] for color in sorted(held.colors)]
        ranks = [str(rank + 1) for rank in sorted(held.ranks)]
        return f"{'/'.join(colors)} {'/'.join(ranks)}"
