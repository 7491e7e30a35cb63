"""The scripted buyer: rules that hear questions and offers in free English."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lmgym.backends.user.hearing import heard, requests, topics
from lmgym.tasks.car_dealer.market import TYPES, Buyer, Car, car_of, price_of

DECISION = re.compile(
    r"^\s*output:\s*decision\s*=\s*(accept|reject)\b"
    r"(?:\s+msrp\s*=\s*\$?([\d,]{1,12}))?(?:\s+buy price\s*=\s*\$?([\d,]{1,12}))?",
    re.IGNORECASE | re.MULTILINE,
)
PROTOCOL = re.compile(r"^\s*output\s*:.*$", re.IGNORECASE | re.MULTILINE)
TOPICS: Mapping[str, re.Pattern[str]] = {
    "features": re.compile(
        r"\b(features?|extras?|equipment|options|need|want|look(ing)? for|wish(es)?|important|prefer\w*|require\w*)\b"
    ),
    "budget": re.compile(r"\b(budget|spend|afford|price range|how much)\b"),
    "brand": re.compile(r"\b(brands?|makes?|manufacturer)\b"),
    "body": re.compile(r"\b(type of (car|vehicle)|body|kind of (car|vehicle)|sedan or|suv or)\b"),
}
CLOSE = 0.05  # share of the limit by which a price may lie above it to be close


@dataclass
class ScriptedBuyer:
    """A buyer who accepts the first price within the limit and leaves when the patience is used up."""

    buyer: Buyer
    cars: Sequence[Car]
    car: Car | None = field(default=None, init=False)  # that is talked about
    answers: int = field(default=0, init=False)  # of the seller

    def opening(self) -> str:
        """Return the first words."""
        return f"Hello! {TYPES[self.buyer.kind].opening.format(body=self.buyer.body)}"

    def hear(self, text: str) -> int | None:
        """Take the seller's words; return the price if they offer a car for one."""
        self.answers += 1
        self.car = car_of(text, self.cars) or self.car
        return price_of(text) if self.car is not None else None

    def reply(self, text: str, price: int | None, *, last: bool) -> str:
        """Return the answer to the seller's words, with a decision if it falls now; `last` if it must."""
        if price is not None and self.car is not None and price <= self.buyer.limit(self.car):
            return f"Agreed, I take the {self.car.name}.\n{decision('Accept', self.car.msrp, price)}"
        if last or self.answers >= TYPES[self.buyer.kind].patience:
            listed = (self.car or self.cars[0]).msrp
            return f"No, thank you. I have to go.\n{decision('Reject', listed, 0)}"
        parts = [self._told(topic) for topic in topics(heard(text), TOPICS)] if requests(heard(text)) else []
        if price is not None and self.car is not None:
            parts.append(self._judged(self.car, price))
        return " ".join(parts) or "What can you offer me, and at what price?"

    def _told(self, topic: str) -> str:
        wishes = self.buyer
        if topic == "features":
            return f"I would like {' and '.join(wishes.features)}."
        if topic == "budget":
            return f"My budget is ${wishes.budget:,}."
        return f"I would like a {wishes.brand}." if topic == "brand" else f"I want a {wishes.body}."

    def _judged(self, car: Car, price: int) -> str:
        limit = self.buyer.limit(car)
        lacking = [each for each in self.buyer.features if each not in car.features]
        words = (
            "That is close, but still a little too much."
            if price <= limit * (1 + CLOSE)
            else "That is too much for me."
        )
        if lacking and self.buyer.kind == "features":
            words += f" The {car.name} does not have {' and '.join(lacking)}."
        return words


def decision(kind: str, msrp: int, price: int) -> str:
    """Return the line that ends a dialogue."""
    return f"Output: Decision={kind} MSRP=${msrp} Buy Price=${price}"


def without_protocol(text: str) -> str:
    """Return words without lines in the form of a decision, which only the buyer may write."""
    return PROTOCOL.sub("", text).strip()
