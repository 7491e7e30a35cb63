"""The sale as an environment with two seats: the agent sells, the buyer decides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from lmgym.env.env import Reply, TextEnv
from lmgym.tasks.car_dealer import SPEC
from lmgym.tasks.car_dealer.buyer import DECISION, ScriptedBuyer, without_protocol
from lmgym.tasks.car_dealer.market import TYPES, Car, amounts_of, market
from lmgym.types import FIRST_SEAT

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
BUYER_PROMPT = Template(files(__package__).joinpath("buyer.md").read_text(encoding="utf-8").strip())
STREAM = {"train": 0, "test": 1}
BUYER = "buyer"
TEXTS = 50  # of a dialogue, those of both sides; one more must be the buyer's decision
LONGEST = 2_000  # characters of a text that are heard
REWARDS = ("fancy", "revenue")
SELLERS = ("careful", "fixed", "hasty")  # manners of the demonstrator


class CarDealer(TextEnv):
    """Sell a car; the reward falls at the buyer's decision, by the release's formulas.

    `rewards="fancy"`: price / mean(budget, list price) for a sale, -(budget - list price) / list price for none.
    `"revenue"`: price / 1000, or 0. The buyer is the seat "buyer". `seller` is the manner of the demonstrator:
    "careful" asks and goes down slowly, "fixed" asks and stays at its price, "hasty" offers any car and goes down fast,
    and "mixed" is one of the three in each episode.
    """

    SPEC = SPEC

    def __init__(self, *, rewards: str = "fancy", seller: str = "careful", **common: Any) -> None:
        super().__init__(**common)
        self.check_choices(rewards=(rewards, REWARDS), seller=(seller, (*SELLERS, "mixed")))
        self.rewards, self.seller = rewards, seller

    def begin(self, index: int) -> Reply:
        """Draw a buyer and the cars; the buyer speaks first."""
        chance = np.random.default_rng([211, STREAM[self.split], index])
        self.buyer, self.cars = market(chance)
        self.script = ScriptedBuyer(self.buyer, self.cars)
        self.texts = 0
        self.seat = BUYER
        self.offer: int | None = None  # the latest price for the car that is talked about
        self.lowest_offer = 0
        self.next_words: str | None = self.script.opening()
        self.buyer_words = ""  # all of them, as the seller heard them
        self.sold = 0  # price of the sale
        self.share = 0.0  # of the list price
        return Reply("Start", seat=BUYER)

    def act(self, action: str) -> Reply:
        """Take the words of the side on turn."""
        self.texts += 1
        return self._bought(action[:LONGEST]) if self.seat == BUYER else self._offered(action[:LONGEST])

    def scripted(self, seat: str) -> str:
        """Return the scripted buyer's answer to the seller's latest words."""
        return self.next_words or ""

    def prompts(self) -> dict[str, str]:
        """Return the instructions of a model in the buyer's seat."""
        kind = TYPES[self.buyer.kind]
        return {
            BUYER: BUYER_PROMPT.substitute(
                kind=kind.words,
                body=self.buyer.body,
                brand=self.buyer.brand,
                features=", ".join(self.buyer.features),
                budget=self.buyer.budget,
                share=round(100 * kind.share),
                patience=kind.patience,
            )
        }

    def solved(self, score: float) -> bool:
        """Return True if a car was sold."""
        return score > 0.0

    def figures_if_cut(self) -> dict[str, float]:
        """Return the sale, its share of the list price and the number of texts."""
        return {"sold": float(self.sold > 0), "share_of_list_price": self.share, "texts": float(self.texts)}

    def oracle(self) -> Iterator[str]:
        """Offer the car for which the buyer pays most, at the buyer's limit."""
        while True:
            best = max(self.cars, key=self.buyer.limit)
            yield _offer(best, self.buyer.limit(best))

    def demonstrator(self) -> Iterator[str]:
        """Sell in the manner of the option `seller`, by what the buyer has said."""
        manner = self.seller if self.seller != "mixed" else SELLERS[int(self.np_random.integers(len(SELLERS)))]
        any_car = self.cars[int(self.np_random.integers(len(self.cars)))] if manner == "hasty" else None
        while True:
            if any_car is not None:
                car, start = any_car, any_car.msrp
            elif (budget := self._budget()) is not None:
                car = max(self.cars, key=partial(self._fit, budget=budget))
                start = min(car.msrp, budget)
            else:
                yield "What features and which brand do you want, and what is your budget?"
                continue
            hurried = "little time" in self.buyer_words
            step = {"careful": 0.05 if hurried else 0.03, "fixed": 0.0, "hasty": 0.15}[manner]
            first = 0.96 if manner == "careful" and hurried else 1.0
            price = self.lowest_offer - step * start if self.lowest_offer else start * first
            yield _offer(car, max(int(price) // 100 * 100, 100))

    # Turns -----------------------------------------------------------------------------------------------------

    def _offered(self, text: str) -> Reply:
        words = without_protocol(text)
        price = self.script.hear(words)
        if price is not None:
            self.offer = price
            self.lowest_offer = min(price, self.lowest_offer or price)
        self.next_words = self.script.reply(words, price, last=self.texts >= TEXTS)
        self.seat = BUYER
        valid = bool(words)
        return Reply(f"The dealer: {words or '(nothing)'}", seat=BUYER, valid=valid)

    def _bought(self, text: str) -> Reply:
        first = self.texts == 1
        self.seat = FIRST_SEAT
        ending = DECISION.search(text)
        words = without_protocol(text)
        if ending is None and self.texts <= TEXTS:
            self.buyer_words += f" {words}"
            text = f"Buyer: {words or '(nothing)'}"
            if first:
                cars = "\n".join(car.line() for car in self.cars)
                text = f"{PROMPT.substitute(cars=cars, example=self.cars[0].name)}\n\n{text}"
            return Reply(text)
        car = self.script.car or self.cars[0]
        price = 0
        if ending is not None and ending[1].lower() == "accept":  # the price is what the buyer wrote, else the offer
            price = int((ending[3] or "").replace(",", "") or 0) or self.offer or 0
        self.sold, self.share = price, price / car.msrp
        reward = 0.0 if ending is None else self._reward(car, price)
        best = max(self.buyer.limit(each) for each in self.cars)
        score = max(0.0, min(1.0, price / best))
        end = f"Buyer: {words}\n" + (f"Sold for ${price:,}." if price else "No sale.")
        others = {FIRST_SEAT: reward} if reward else {}
        return Reply(end, done=True, score=score, others=others)

    def _reward(self, car: Car, price: int) -> float:
        if self.rewards == "revenue":
            return price / 1_000
        if price:
            return price / ((self.buyer.budget + car.msrp) / 2)
        return -(self.buyer.budget - car.msrp) / car.msrp

    # Players ---------------------------------------------------------------------------------------------------

    def _budget(self) -> int | None:
        """Return the first amount after "budget is" in the buyer's words."""
        return next(iter(amounts_of(self.buyer_words.partition("budget is")[2])), None)

    def _fit(self, car: Car, budget: int) -> float:
        """Return what a car may bring, by what the buyer has said."""
        words = self.buyer_words.lower()
        features = sum(each in words for each in car.features)
        fit = 0.15 * features + 0.2 * (car.body.lower() in words) + 0.05 * (car.brand.lower() in words)
        return min(car.msrp, budget) / budget + fit


def _offer(car: Car, price: int) -> str:
    return f"I can offer you the {car.name} for ${price:,}."
