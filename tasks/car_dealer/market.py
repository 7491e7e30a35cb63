"""Cars, buyers and what a buyer would pay: our own, in the numbers of LMRL-Gym's release."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BRANDS = ("Aldora", "Brisk", "Corvan", "Delmar", "Estrel", "Falko", "Gravis", "Hallon", "Istra", "Jorvik", "Kestor",
          "Lumen", "Morava")  # fmt: skip
BODIES = ("sedan", "SUV", "pickup", "convertible", "minivan", "hatchback")
FEATURES = ("heated seats", "a sunroof", "a rear camera", "leather seats", "four-wheel drive", "a tow bar",
            "parking sensors", "a navigation system")  # fmt: skip
BUDGETS = (10_000, 30_000, 50_000, 70_000, 90_000)
CARS = 5  # in the yard
AMOUNT = re.compile(
    r"(?<![\d,.])(\d{1,3}(?:,\d{3})+|\d{1,7})(?![\d,]*\d)(\.\d{1,3})?\s?(k\b|thousand\b|grand\b)?", re.IGNORECASE
)
YEARS = range(1950, 2051)  # numbers without a comma that are no price
LOWEST = 1_000  # dollars that are read as a price


@dataclass(frozen=True)
class BuyerType:
    """One of the paper's three types of buyers."""

    words: str  # for a model in the buyer's seat
    opening: str
    share: float  # of the list price that it pays for a car with everything
    missing: float  # taken off that share for every feature that is missing
    patience: int  # answers of the seller


TYPES = {
    "discount": BuyerType(
        "a discount seeker: you buy only at a price clearly below the list price",
        "I am looking for a {body}, and I want a really good deal.",
        0.88, 0.04, 10,
    ),
    "features": BuyerType(
        "a feature seeker: you pay well for a car that has all you want, and hardly anything for another",
        "I am looking for a {body}. It must have all that I need.",
        1.05, 0.15, 8,
    ),
    "impatient": BuyerType(
        "impatient: you want to be done quickly and pay a fair price",
        "I need a {body}, and I have little time.",
        0.98, 0.05, 4,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Car:
    """A car in the yard."""

    brand: str
    body: str
    features: frozenset[str]
    msrp: int  # list price in dollars

    @property
    def name(self) -> str:
        """Brand and body, unique in the yard."""
        return f"{self.brand} {self.body}"

    def line(self) -> str:
        """Return the car as the seller's list shows it."""
        has = ", ".join(each for each in FEATURES if each in self.features) or "no extras"
        return f"- {self.name}, list price ${self.msrp:,}: {has}"


@dataclass(frozen=True)
class Buyer:
    """A buyer's wishes and limits."""

    kind: str  # of TYPES
    brand: str
    body: str
    features: tuple[str, ...]
    budget: int  # dollars

    def limit(self, car: Car) -> int:
        """Return the highest price in dollars that the buyer pays for a car: by type and fit, at most the budget."""
        kind = TYPES[self.kind]
        share = kind.share - kind.missing * len(set(self.features) - car.features)
        share -= 0.2 * (car.body != self.body) + 0.05 * (car.brand != self.brand)
        return int(min(self.budget, max(share, 0.0) * car.msrp)) // 100 * 100


def market(chance: np.random.Generator) -> tuple[Buyer, list[Car]]:
    """Draw a buyer and the cars of a yard, one of which at least is near the wishes and the budget."""
    budget = int(chance.choice(BUDGETS))
    wanted = [FEATURES[int(i)] for i in chance.permutation(len(FEATURES))[: int(chance.integers(1, 5))]]
    brand, body = str(chance.choice(BRANDS)), str(chance.choice(BODIES))
    buyer = Buyer(sorted(TYPES)[int(chance.integers(len(TYPES)))], brand, body, tuple(wanted), budget)
    cars: dict[str, Car] = {}
    while len(cars) < CARS:
        near = not cars
        has = [each for each in FEATURES if chance.random() < (0.85 if near and each in wanted else 0.4)]
        price = int(budget * chance.uniform(0.8, 1.1) if near else budget * chance.uniform(0.5, 1.6)) // 100 * 100
        car = Car(
            brand if near and chance.random() < 0.5 else str(chance.choice(BRANDS)),
            body if near or chance.random() < 0.3 else str(chance.choice(BODIES)),
            frozenset(has),
            price,
        )
        cars.setdefault(car.name, car)
    yard = list(cars.values())
    return buyer, [yard[int(i)] for i in chance.permutation(CARS)]


def amounts_of(text: str) -> list[int]:
    """Return the amounts of dollars in a text, from 1,000 on: $42,000, 42000, 42.5k or 42 thousand."""
    amounts = []
    for digits, fraction, thousands in AMOUNT.findall(text):
        amount = int(digits.replace(",", ""))
        if thousands:
            amount = amount * 1_000 + round(1_000 * float(fraction or 0))
        year = not thousands and "," not in digits and amount in YEARS
        if amount >= LOWEST and not year:
            amounts.append(amount)
    return amounts


def price_of(text: str) -> int | None:
    """Return the last amount of dollars in a text."""
    return next(reversed(amounts_of(text)), None)


def car_of(text: str, cars: Sequence[Car]) -> Car | None:
    """Return the car of the yard that a text names last: brand and body, or its brand if no other car has it."""
    lower = text.lower()
    places = []
    for car in cars:
        alone = sum(other.brand == car.brand for other in cars) == 1
        name = car.brand if alone else car.name
        if (place := lower.rfind(name.lower())) >= 0:
            places.append((place, car.name, car))
    return max(places)[2] if places else None
