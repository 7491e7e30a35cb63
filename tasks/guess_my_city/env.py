"""Guess My City as an environment."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.resources import files
from typing import Any

from lmgym.env.games.guessing import OPEN_OPENERS, REFUSAL, GuessingEnv
from lmgym.env.games.questions import Table, plain
from lmgym.tasks.guess_my_city import SPEC
from lmgym.tasks.guess_my_city.cities import CONTINENTS, City, countries, our_cities, read_cities, table_of

ABOUT = {  # topics of open questions
    "continent": re.compile(r"\b(continent|part of the world|region|hemisphere)\b"),
    "language": re.compile(r"\b(languages?|speak|spoken)\b"),
    "size": re.compile(r"\b(population|inhabitants|how (big|large|many people)|size)\b"),
    "fame": re.compile(
        r"\b(known for|famous for|landmarks?|attractions?|special|visit|do there|like (most )?about|describe|tell me)\b"
    ),
    "country": re.compile(r"\bcountry\b"),
}
POLITE = re.compile(r"^(can|could|would|will) you (please )?(?=(tell|describe)\b)")


class GuessMyCity(GuessingEnv):
    """Find one of 131 cities by 20 questions; each costs 1, except the one that names the city.

    `cities` names a file with another list, such as LMRL-Gym's.
    """

    SPEC = SPEC
    RULES = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
    ORACLE_RULES = files(__package__).joinpath("oracle.md").read_text(encoding="utf-8").strip()
    OPEN = True

    def __init__(self, *, cities: str | os.PathLike[str] | None = None, **common: Any) -> None:
        super().__init__(**common)
        rows = our_cities() if cities is None else read_cities(cities)
        self.cities = {city.name: city for city in rows}
        self.table = our_table() if cities is None else table_of(rows)

    def guess(self, member: str) -> str:
        """Return the question that names a city."""
        return f"Is it {member}?"

    def open_answer(self, question: str) -> str | None:
        """Return the scripted oracle's answer to an open question; None to another, or about a topic that it lacks."""
        text = POLITE.sub("", plain(question))
        if text.partition(" ")[0] not in (*OPEN_OPENERS, "describe"):
            return None
        topic = next((name for name, pattern in ABOUT.items() if pattern.search(text)), None)
        return None if topic is None else _told_of(topic, self.cities[self.hidden])


@cache
def our_table() -> Table:
    """Return our own cities with their predicates."""
    return table_of(our_cities())


def _told_of(topic: str, city: City) -> str | None:
    country = countries().get(city.country.lower())
    if topic == "country":
        return REFUSAL
    if topic == "size":
        return None if city.millions is None else f"About {float(f'{city.millions:.1g}'):g} million people live there."
    if topic == "fame":
        return f"It is known for: {', '.join(sorted(city.sayings))}." if city.sayings else None
    if country is None:
        return None
    if topic == "language":
        return f"People speak {' or '.join(each.capitalize() for each in country.languages)}."
    return "It is in " + " and ".join(each.title() for each in CONTINENTS if each in country.sets) + "."
