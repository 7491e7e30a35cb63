"""Two parties with values for the options of three issues, their limits, and the deals between them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ISSUES = ("price", "delivery", "warranty")
OPTIONS = 5  # of each issue, named 1 to 5
Deal = tuple[int, int, int]  # an option of each issue, from 1
RANGE = range(1, OPTIONS + 1)
DEALS: tuple[Deal, ...] = tuple(itertools.product(RANGE, RANGE, RANGE))
OFFER = re.compile(
    r"offer:\s*price\s*=?\s*([1-5])\s*,\s*delivery\s*=?\s*([1-5])\s*,\s*warranty\s*=?\s*([1-5])(?!\d)", re.I
)
FIRST, LAST = 0.95, 0.35  # share of the way from limit to maximum that the scripted partner asks at first and at last


@dataclass(frozen=True)
class Party:
    """One side's private goal."""

    values: tuple[tuple[int, ...], ...]  # points of each option of each issue
    limit: int  # points below which no agreement is better

    def value(self, deal: Deal) -> int:
        """Return the points of a deal."""
        return sum(points[option - 1] for points, option in zip(self.values, deal, strict=True))

    @property
    def most(self) -> int:
        """Points of the best deal."""
        return sum(map(max, self.values))

    def table(self) -> str:
        """Return the values as text."""
        rows = [
            f"- {issue}: " + ", ".join(f"{n} -> {p}" for n, p in enumerate(points, start=1))
            for issue, points in zip(ISSUES, self.values, strict=True)
        ]
        return "\n".join(rows)


def parties(chance: np.random.Generator) -> tuple[Party, Party]:
    """Return two parties whose wishes oppose each other on every issue, with weights of their own."""
    while True:
        rising = [
            tuple(
                tuple(int(weight * option + (option > 0) * chance.integers(2)) for option in range(OPTIONS))
                for weight in chance.permutation([2, 5, 10])
            )
            for _ in range(2)
        ]
        mine, theirs = rising[0], tuple(tuple(reversed(points)) for points in rising[1])
        limits = [int(each) for each in chance.integers(18, 31, size=2)]
        both = Party(mine, limits[0]), Party(theirs, limits[1])
        if len(possible(*both)) >= 4:
            return both


def possible(one: Party, other: Party) -> list[Deal]:
    """Return the deals that are above both limits."""
    return [deal for deal in DEALS if one.value(deal) > one.limit and other.value(deal) > other.limit]


def best(one: Party, other: Party) -> Deal:
    """Return the deal that is best for `one` among those above the limit of both; ties go to the other's better one."""
    return max(possible(one, other), key=lambda deal: (one.value(deal), other.value(deal), deal))


def demand(party: Party, turn: int, turns: int) -> float:
    """Return the points that the scripted partner asks for in its turn, from 0."""
    share = FIRST + (LAST - FIRST) * min(1.0, turn / max(1, turns - 1))
    return party.limit + share * (party.most - party.limit)


def counter_offer(party: Party, target: float, latest: Deal | None) -> Deal:
    """Return a deal of at least `target` points, the nearest to the other side's latest offer."""
    fitting = [deal for deal in DEALS if party.value(deal) >= target] or [max(DEALS, key=party.value)]
    wish: Sequence[int] = latest or (OPTIONS, OPTIONS, OPTIONS)
    return min(fitting, key=lambda deal: (sum(abs(a - b) for a, b in zip(deal, wish, strict=True)), -party.value(deal)))


def offer_text(deal: Deal) -> str:
    """Return an offer as both sides write it."""
    return "OFFER: " + ", ".join(f"{issue}={option}" for issue, option in zip(ISSUES, deal, strict=True))
