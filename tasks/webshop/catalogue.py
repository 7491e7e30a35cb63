"""The procedural catalogue: a product is a function of its number, so none need be stored.

Four numbers in a row are a family: one kind of one brand with much the same attributes and options. Beside its first
draft stand one with another attribute in the title, one with other values in an option group and one, dearer, with
another third attribute. The third stands under Features alone, which the search engine does not read beyond the first.
So the first hit of a search is often not what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np

from lmgym.tasks.webshop.products import Product

SEED = 20260
FAMILY = 4
NUMBERS = 1_000_000  # an ASIN is B and six digits
STRIDE, START = 387_461, 105_943  # spread the numbers of products over the ASINs; the stride has no factor 2 or 5
GROUPS = {1: 0.6, 2: 0.34, 3: 0.04, 4: 0.02}  # share of the families by their number of option groups
VALUES = {1: (3, 6), 2: (2, 4), 3: (2, 3), 4: (2, 2)}  # fewest and most values of each group
EXTRA = ("design", "edition", "pack")  # groups of any kind, where there are more than its own
RANGED = 0.2  # share of products whose price is a range
OPENINGS = ("i need {}", "find me {}", "i want {}", "i am looking for {}")
JOINED = " › "


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of product: the properties that its families share."""

    category: str
    path: str
    name: str
    query: str
    prices: tuple[float, float]
    attributes: tuple[str, ...]
    groups: tuple[tuple[str, str], ...]  # name and pool
    nouns: frozenset[str]  # of its name and attributes


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """An option group of a product."""

    name: str
    pool: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """The properties that vary within a family."""

    kind: Kind
    brand: str
    attributes: tuple[str, ...]  # two stand in the title, the third under Features
    groups: tuple[OptionGroup, ...]
    price: float


def lines(name: str) -> list[str]:
    """Return the lines of a table of this folder, without comments."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


@cache
def kinds() -> tuple[Kind, ...]:
    """Return all kinds of product."""
    return tuple(_kind(line) for line in lines("kinds.txt"))


@cache
def pools() -> dict[str, tuple[str, ...]]:
    """Return the values an option group may have, by pool."""
    parts = (line.partition(": ") for line in lines("options.txt"))
    return {name: tuple(value.strip() for value in values.split(";")) for name, _, values in parts}


@cache
def brands() -> tuple[str, ...]:
    """Return the makers' names."""
    return tuple(word for line in lines("brands.txt") for word in line.split())


def asin(number: int) -> str:
    """Return the number of a product as pages show it."""
    return f"B{(number * STRIDE + START) % NUMBERS:06d}"


def number_of(code: str) -> int:
    """Return the product of an ASIN, undoing `asin`."""
    return (int(code[1:]) - START) * pow(STRIDE, -1, NUMBERS) % NUMBERS


def product(number: int) -> Product:
    """Return a product of the catalogue."""
    return _family(number // FAMILY)[number % FAMILY]


def nouns(number: int) -> tuple[str, ...]:
    """Return the nouns of a product's title, as the tables mark them: brand, kind and attributes."""
    kind = kinds()[number // FAMILY % len(kinds())]
    first, *rest = product(number).title.lower().split()
    return (first, *(word for word in rest if word in kind.nouns))


def _kind(line: str) -> Kind:
    category, path, name, query, prices, attributes, groups = (part.strip() for part in line.split("|"))
    marked = (word.strip(";") for word in f"{name} {attributes}".split())
    low, high = prices.split("-")
    return Kind(
        category=category,
        path=path,
        name=name.replace("*", ""),
        query=query,
        prices=(float(low), float(high)),
        attributes=tuple(part.strip() for part in attributes.replace("*", "").split(";")),
        groups=tuple((name.strip(), pool) for name, _, pool in (part.partition(":") for part in groups.split(";"))),
        nouns=frozenset(word[:-1] for word in marked if word.endswith("*")),
    )


@lru_cache(maxsize=4096)
def _family(family: int) -> tuple[Product, ...]:
    """Draw the four products of a family."""
    rng = np.random.default_rng([SEED, family])
    first, spare = _draft(rng, kinds()[family % len(kinds())])
    swapped = int(rng.integers(2))
    title = tuple(spare[0] if place == swapped else name for place, name in enumerate(first.attributes))
    hidden = (*first.attributes[:2], spare[1])
    dearer = round(first.price * rng.uniform(1.3, 2.0), 2)
    members = [
        first,
        replace(first, attributes=title),
        replace(first, groups=_other_values(rng, first)),
        replace(first, attributes=hidden, price=dearer),
    ]
    places = rng.permutation(FAMILY).tolist()
    return tuple(_product(rng, members[place], family * FAMILY + n) for n, place in enumerate(places))


def _draft(rng: np.random.Generator, kind: Kind) -> tuple[Draft, list[str]]:
    """Draw a family's first member, and the attributes it does not have."""
    attributes = [kind.attributes[i] for i in rng.permutation(len(kind.attributes))]
    low, high = np.log(kind.prices)
    count = int(rng.choice(list(GROUPS), p=list(GROUPS.values())))
    named = [kind.groups[i] for i in rng.permutation(len(kind.groups))]
    named += [(name, name) for name in EXTRA if name not in dict(kind.groups)]
    fewest, most = VALUES[count]
    groups = (
        OptionGroup(name, pool, _values(rng, pool, int(rng.integers(fewest, most + 1)))) for name, pool in named[:count]
    )
    brand = brands()[int(rng.integers(len(brands())))]
    price = _ending(rng, float(np.exp(rng.uniform(low, high))))
    return Draft(kind, brand, tuple(attributes[:3]), tuple(groups), price), attributes[3:]


def _values(rng: np.random.Generator, pool: str, count: int) -> tuple[str, ...]:
    """Draw values of a group, in the order of their pool."""
    candidates = pools()[pool]
    return tuple(candidates[i] for i in sorted(rng.permutation(len(candidates))[:count].tolist()))


def _other_values(rng: np.random.Generator, draft: Draft) -> tuple[OptionGroup, ...]:
    """Draw the values of one group anew: at least one of them goes or is new."""
    chosen = int(rng.integers(len(draft.groups)))
    old = draft.groups[chosen]
    values = _values(rng, old.pool, len(old.values))
    new = replace(old, values=values if values != old.values else values[1:])
    return tuple(new if place == chosen else group for place, group in enumerate(draft.groups))


def _product(rng: np.random.Generator, draft: Draft, number: int) -> Product:
    """Return the product of a draft."""
    kind, (first, second, third) = draft.kind, draft.attributes
    prices: tuple[float, ...] = (draft.price,)
    if rng.random() < RANGED:
        prices = (draft.price, round(draft.price * rng.uniform(1.1, 1.5), 2))
    drawn = [draft.attributes[i] for i in sorted(rng.permutation(3)[: 1 + int(rng.random() < 0.6)].tolist())]
    wanted = f"{', '.join(drawn)} {kind.name if rng.random() < 0.7 else kind.query}"
    opening = OPENINGS[int(rng.integers(len(OPENINGS)))]
    return Product(
        asin=asin(number),
        title=f"{draft.brand} {first} {second} {kind.name}".title(),
        description=f"{article(kind.name).capitalize()} by {draft.brand}: {first}, {second}.",
        bullets=(f"{first.capitalize()} {kind.name}", f"{second.capitalize()}, {third}"),
        attributes=draft.attributes,
        options={group.name: group.values for group in draft.groups},
        query=kind.query,
        category=kind.category,
        path=kind.path,
        prices=prices,
        image=f"/pictures/{asin(number)}.svg",
        instruction=opening.format(article(wanted) if wanted.endswith(kind.name) else wanted),
        wanted=tuple(drawn),
    )


def article(words: str) -> str:
    """Return words after "a" or "an"."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _ending(rng: np.random.Generator, price: float) -> float:
    """Return a price as shops write it: dollars and 99, 49 or 95 cents."""
    return float(int(price)) + (0.99, 0.99, 0.49, 0.95)[int(rng.integers(4))]


def catalogue(count: int) -> Iterator[Product]:
    """Yield the first `count` products."""
    return (product(number) for number in range(count))
