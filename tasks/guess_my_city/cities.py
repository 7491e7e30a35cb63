"""The cities of Guess My City: our own table, and lists in the layout of LMRL-Gym's release."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from lmgym.env.games.questions import Predicate, Scale, Table, plain, predicate_of, read_predicates
from lmgym.errors import InstanceError

MORE = "bigger|larger|more populous|greater|more populated"
LESS = "smaller|less populous|less populated"
BY_COUNTRY = ("northern hemisphere", "southern hemisphere", "americas")  # predicates without a set of their name
TITLES = ("rank", "city")  # with which the first line of a list may begin
CONTINENTS = ("europe", "asia", "africa", "north america", "south america", "oceania")
SOUTHERN = (  # countries whose cities here lie south of the equator
    "Peru;Ecuador;Bolivia;Chile;Argentina;Uruguay;Brazil;Congo;Kenya;South Africa;Indonesia;Australia;New Zealand"
)


@dataclass(frozen=True)
class Country:
    """A country with what all its cities share."""

    name: str
    aliases: tuple[str, ...]
    demonyms: tuple[str, ...]
    languages: tuple[str, ...]
    sets: frozenset[str]  # regions, and sayings such as "monarchy"


@dataclass(frozen=True)
class City:
    """A city; what is not known of it is told by `Table` as unknown."""

    name: str
    aliases: tuple[str, ...]
    country: str
    millions: float | None  # inhabitants
    sayings: frozenset[str] | None  # what it is known for; None: not known


@cache
def our_cities() -> tuple[City, ...]:
    """Return the cities of our own list."""
    cities = []
    for names, country, millions, sayings in _cells("cities.txt"):
        name, *aliases = names.split(";")
        cities.append(City(name, tuple(aliases), country, float(millions), frozenset(_parts(sayings))))
    return tuple(cities)


@cache
def countries() -> Mapping[str, Country]:
    """Return the countries by name and alias, in lower case."""
    rows: dict[str, Country] = {}
    for names, demonyms, regions, languages, more in _cells("countries.txt"):
        name, *aliases = names.split(";")
        sets = frozenset([*_parts(regions), *_parts(more)])
        country = Country(name, tuple(aliases), tuple(demonyms.split(";")), tuple(_parts(languages)), sets)
        rows |= {each.lower(): country for each in (name, *aliases)}
    return rows


def read_cities(path: str | os.PathLike[str]) -> tuple[City, ...]:
    """Return the cities of a list: lines of `rank; city; country; population`, as in LMRL-Gym, or `city,country`.

    Of a city that our table lacks, the oracle knows its country and number of inhabitants. Raises InstanceError for
    another layout.
    """
    ours = {plain(alias): city for city in our_cities() for alias in (city.name, *city.aliases)}
    cities: dict[str, City] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InstanceError(f"cities={str(path)!r} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip() or (number == 1 and line.lower().split()[0].strip(";,") in TITLES):
            continue
        cells = [cell.strip() for cell in (line.split(";")[1:] if ";" in line else line.split(",", 1))]
        if len(cells) < 2 or not plain(cells[0]):
            raise InstanceError(
                f"cities={str(path)!r}, line {number}: {line!r} is neither rank; city; country nor city,country"
            )
        inhabitants = cells[2].replace(",", "") if len(cells) > 2 else ""
        millions = int(inhabitants) / 1e6 if inhabitants.isdecimal() else None
        city = City(cells[0], (), cells[1], millions, None)
        if same := ours.get(plain(cells[0])):
            city = replace(same, name=cells[0], aliases=(same.name, *same.aliases))
        cities[city.name] = city
    if not cities:
        raise InstanceError(f"cities={str(path)!r} holds no city")
    return tuple(cities.values())


def table_of(cities: Sequence[City]) -> Table:
    """Return cities with their predicates."""
    aliases = {city.name: city.aliases for city in cities}
    names = {*(name for city in our_cities() for name in city.sayings or ()), *_of_countries()}
    sets = {"@southern": set[str](), **{f"@{name}": set[str]() for name in names}, "@all": set(aliases)}
    for city in cities:
        country = countries().get(city.country.lower())
        for name in {*(country.sets if country else ()), *(city.sayings or ())}:
            sets[f"@{name}"].add(city.name)
        if country is not None and country.name in SOUTHERN.split(";"):
            sets["@southern"].add(city.name)
    millions = {city.name: city.millions for city in cities if city.millions is not None}
    text = files(__package__).joinpath("predicates.txt").read_text(encoding="utf-8")
    read = read_predicates(text, {name: frozenset(members) for name, members in sets.items()}, {"millions": millions})
    predicates = [_unsure(predicate, cities) for predicate in read]
    predicates += _country_predicates(cities)
    sizes = {plain(alias): value for name, value in millions.items() for alias in (name, *aliases[name])}
    return Table(aliases, predicates, (Scale(MORE, LESS, sizes),) if sizes else ())


def _of_countries() -> set[str]:
    return {name for country in countries().values() for name in country.sets}


def _unsure(predicate: Predicate, cities: Iterable[City]) -> Predicate:
    """Mark the cities of which the table does not tell whether the predicate holds."""
    general = predicate.name in _of_countries() or predicate.name in BY_COUNTRY
    sized = "million" in predicate.name or predicate.name == "small"
    unknown = {
        city.name
        for city in cities
        if (general and city.country.lower() not in countries())
        or (sized and city.millions is None)
        or (not general and not sized and city.sayings is None)
    }
    return replace(predicate, members=predicate.members - unknown, unknown=frozenset(unknown))


def _country_predicates(cities: Sequence[City]) -> list[Predicate]:
    """Return a predicate for every country and every language of the cities."""
    places: dict[str, set[str]] = {}
    speakers: dict[str, set[str]] = {}
    strangers = frozenset(city.name for city in cities if city.country.lower() not in countries())
    for city in cities:
        country = countries().get(city.country.lower())
        places.setdefault(country.name if country else city.country, set()).add(city.name)
        for language in country.languages if country else ():
            speakers.setdefault(language, set()).add(city.name)
    made = []
    for name, members in places.items():
        home = countries().get(name.lower())
        aliases = (*home.aliases, *home.demonyms) if home else ()
        the = "the " if name.startswith(("United", "Netherlands", "Philippines")) else ""
        words = "|".join(plain(each) for each in (name, *aliases))
        openings = ("Is it in", "Is the city located in", "Could you find it in", "Does it lie in")
        questions = tuple(f"{opening} {the}{name}?" for opening in openings)
        pattern = rf"((located|lie|lies|found|situated|part) )?((in|of|from) )?(the )?({words})( cit(y|ies))?"
        made.append(predicate_of(name, pattern, questions, members))
    for language, members in speakers.items():
        name = language.capitalize()
        questions = (f"Do people speak {name} there?", f"Is {name} spoken there?", f"Is {name} the main language?")
        pattern = (
            rf"(speak|speaks|speaking|spoken|languages?)( \w+){{0,3}} {language}|"
            rf"{language}( \w+){{0,3}} (spoken|languages?|speaking)|{language} speak(ing|ers?)( city| country)?"
        )
        predicate = predicate_of(language, pattern, (*questions, f"Is the language {name}?"), members)
        made.append(replace(predicate, unknown=strangers))
    return made


def _cells(name: str) -> list[list[str]]:
    """Return the cells of a table of this folder, by line."""
    lines = files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")] for line in lines if line and not line.startswith("#")]


def _parts(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(",") if part.strip()]
