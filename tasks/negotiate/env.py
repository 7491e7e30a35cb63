"""The negotiation: offers in turn, an agreement or none, and a test for leaked limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from string import Template

import numpy as np

from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.tasks.negotiate import SPEC
from lmgym.tasks.negotiate.bargain import (
    OFFER,
    Deal,
    Party,
    best,
    counter_offer,
    demand,
    offer_text,
    parties,
    possible,
)
from lmgym.types import FIRST_SEAT

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
STREAM = {"train": 0, "test": 1}
PARTNER = "partner"
TURNS = 10  # of each side
LONGEST = 4_000  # characters of an answer that are read


class Negotiate(TextEnv):
    """Reach an agreement; both seats are scored by their own values, and 0 for none or one below the own limit.

    A side that writes its limit loses half of its score: that number was to be kept.
    """

    SPEC = SPEC

    def begin(self, index: int) -> Reply:
        """Draw the values and let the partner make the first offer."""
        chance = np.random.default_rng([310, STREAM[self.split], index])
        mine, theirs = parties(chance)
        self.sides: dict[str, Party] = {FIRST_SEAT: mine, PARTNER: theirs}
        self.offers: dict[str, Deal | None] = dict.fromkeys(self.sides)
        self.turns = dict.fromkeys(self.sides, 0)
        self.leaks = dict.fromkeys(self.sides, False)
        self.deal: Deal | None = None
        self.seat, self.opened = PARTNER, False
        return Reply(f"{self._prompt(PARTNER)}\n\nYou begin.", seat=PARTNER)

    def act(self, action: str) -> Reply:
        """Take the words of the side on turn."""
        actor, other = (PARTNER, FIRST_SEAT) if self.seat == PARTNER else (FIRST_SEAT, PARTNER)
        self.turns[actor] += 1
        text = action[-LONGEST:]
        self.leaks[actor] |= re.search(rf"(?<!\d){self.sides[actor].limit}(?!\d)", OFFER.sub("", text)) is not None
        command = parse_command(text).upper().rstrip(".!")
        offers = OFFER.findall(text)
        if command == "LEAVE":
            return self._finish(actor)
        if command == "ACCEPT" and self.offers[other] is not None:
            self.deal = self.offers[other]
            return self._finish(actor)
        valid = len(offers) == 1 and command.startswith("OFFER")
        if valid:
            price, delivery, warranty = map(int, offers[0])
            self.offers[actor] = (price, delivery, warranty)
        if self.turns[FIRST_SEAT] >= TURNS and self.turns[PARTNER] >= TURNS:
            return self._finish(actor, valid=valid)
        if not valid and self.turns[actor] >= TURNS:
            return self._finish(actor, valid=False)
        if not valid:
            problem = "Make one offer on the last line, or write ACCEPT to an offer, or LEAVE."
            return Reply(problem, valid=False, seat=actor)
        self.seat = other
        words = f"Your partner: {text.strip()}"
        if other == FIRST_SEAT and not self.opened:
            self.opened = True
            words = f"{self._prompt(FIRST_SEAT)}\n\n{words}"
        return Reply(words, seat=other)

    def scripted(self, seat: str) -> str:
        """Concede step by step; accept what is worth the present demand."""
        party, latest = self.sides[PARTNER], self.offers[FIRST_SEAT]
        target = demand(party, self.turns[PARTNER], TURNS)
        if latest is not None and party.value(latest) >= min(target, self._best_left(latest)):
            return "That suits me.\nACCEPT"
        return f"I could agree to this.\n{offer_text(counter_offer(party, target, latest))}"

    def score_if_cut(self) -> Mapping[str, float]:
        """Return 0 for both: there is no agreement."""
        return dict.fromkeys(self.sides, 0.0)

    def figures_if_cut(self) -> dict[str, float]:
        """Return the agreement, its share of the best joint value and the leaks of both sides."""
        mine, theirs = self.sides[FIRST_SEAT], self.sides[PARTNER]
        joint = 0.0
        if self.deal is not None:
            top = max(mine.value(deal) + theirs.value(deal) for deal in possible(mine, theirs))
            joint = (mine.value(self.deal) + theirs.value(self.deal)) / top
        return {
            "agreement": float(self.deal is not None),
            "joint_value": joint,
            "leaked_limit": float(self.leaks[FIRST_SEAT]),
            "partner_leaked_limit": float(self.leaks[PARTNER]),
        }

    def solved(self, score: float) -> bool:
        """Return True if there is an agreement above the own limit."""
        return score > 0.0

    def oracle(self) -> Iterator[str]:
        """Insist on the best deal that the partner's limit allows until it is accepted."""
        while True:
            goal = best(self.sides[FIRST_SEAT], self.sides[PARTNER])
            yield "ACCEPT" if self.offers[PARTNER] == goal else offer_text(goal)

    def demonstrator(self) -> Iterator[str]:
        """Concede from the own best deal towards the limit, knowing the own values alone."""
        while True:
            party, latest = self.sides[FIRST_SEAT], self.offers[PARTNER]
            target = demand(party, self.turns[FIRST_SEAT], TURNS)
            if latest is not None and party.value(latest) > party.limit and party.value(latest) >= target:
                yield "ACCEPT"
            else:
                yield offer_text(counter_offer(party, target, latest))

    # Parts -----------------------------------------------------------------------------------------------------

    def _prompt(self, seat: str) -> str:
        party = self.sides[seat]
        return PROMPT.substitute(table=party.table(), limit=party.limit, turns=TURNS)

    def _best_left(self, latest: Deal) -> float:
        """Return the value at which the scripted partner gives in: any above its limit in its last turns."""
        party = self.sides[PARTNER]
        late = self.turns[PARTNER] >= TURNS - 2
        return party.limit + 1 if late and party.value(latest) > party.limit else float("inf")

    def _finish(self, actor: str, *, valid: bool = True) -> Reply:
        scores = {seat: self._score(seat) for seat in self.sides}
        text = "No agreement." if self.deal is None else f"Agreed. {offer_text(self.deal)}"
        others = {seat: score for seat, score in scores.items() if seat != actor}
        return Reply(text, reward=scores[actor], others=others, done=True, score=scores, valid=valid)

    def _score(self, seat: str) -> float:
        if self.deal is None:
            return 0.0
        party = self.sides[seat]
        rival = self.sides[PARTNER if seat == FIRST_SEAT else FIRST_SEAT]
        top = party.value(best(party, rival))
        share = (party.value(self.deal) - party.limit) / (top - party.limit)
        return max(0.0, min(1.0, share)) * (0.5 if self.leaks[seat] else 1.0)
