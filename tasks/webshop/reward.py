"""The reward of a purchase, as the original computes it, and the best that a product could earn.

reward = r_type * (attributes matched + options matched + [price <= ceiling]) / (attributes + options + 1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from thefuzz import fuzz

from lmgym.tasks.webshop.catalogue import lines
from lmgym.tasks.webshop.goals import Option, ShopGoal
from lmgym.tasks.webshop.nouns import Nouns, title_score
from lmgym.tasks.webshop.products import Product

ENOUGH = 85  # a fuzzy match is above
Breakdown = dict[str, float | bool]


def breakdown(
    product: Product, goal: ShopGoal, price: float, chosen: Mapping[str, str], nouns: Nouns
) -> tuple[float, Breakdown]:
    """Return the reward of buying `product` at `price` dollars with the `chosen` options, and its terms."""
    terms = kind_match(product, goal, nouns)
    attributes = sum(has_attribute(product, name) for name in goal.attributes)
    options = sum(any(same_option(value, wanted) for value in chosen.values()) for wanted in goal.options)
    affordable = price <= goal.ceiling
    parts = len(goal.attributes) + len(goal.options) + 1
    terms |= {"r_att": attributes / len(goal.attributes), "w_att": len(goal.attributes) / parts}
    if goal.options:
        terms |= {"r_option": options / len(goal.options), "w_option": len(goal.options) / parts}
    terms |= {"r_price": affordable, "w_price": 1 / parts}
    return terms["r_type"] * ((attributes + options + affordable) / parts), terms


def kind_match(product: Product, goal: ShopGoal, nouns: Nouns) -> Breakdown:
    """Return `r_type`, the factor for the right kind of product, and its terms.

    The two rules for low title scores come last: they overrule a query that matches.
    """
    title = title_score(product.title, goal.name, nouns)
    query = product.query == goal.query
    category = len(_levels(product.path) & _levels(goal.path)) >= 2
    kind = 1.0 if query or category or title > 0.2 else 0.5
    if title < 0.1:
        kind = 0.1
    if title == 0.0:
        kind = 0.0
    return {"r_type": kind, "query_match": query, "category_match": category, "title_score": title}


@lru_cache(maxsize=65_536)
def same_option(chosen: str, wanted: Option) -> bool:
    """Return True if a chosen value matches a wanted one.

    A synthetic goal's (name, value) is compared as the original does: written as Python writes a tuple, name and all,
    and coloured only where its value is exactly a colour's name.
    """
    return bool(fuzz.token_set_ratio(colour(chosen), colour(wanted)) > ENOUGH)


def colour(value: Option) -> Option:
    """Return the first listed colour that occurs in `value`, even within a word ("tank" is tan); else `value`."""
    return next((name for name in colours() if name in value), value)


@cache
def colours() -> tuple[str, ...]:
    """Return the colours of the original's list, in its order."""
    return tuple(word for line in lines("colours.txt") for word in line.split())


def has_attribute(product: Product, wanted: str) -> bool:
    """Return True if a product has an attribute: in its own list, title, features or description."""
    return any(_alike(own, wanted) for own in product.attributes) or any(
        wanted in text.lower() for text in (product.title, " ".join(product.bullets), product.description)
    )


def best(product: Product, goal: ShopGoal, price: float, nouns: Nouns) -> tuple[float, dict[str, str]]:
    """Return the most that buying a product can earn, and the options that earn it.

    A value that several groups have is one button, which chooses it in the last of them.
    """
    ways: dict[frozenset[int], dict[str, str]] = {frozenset(): {}}  # goal options matched -> what was chosen
    groups = list(product.options.items())
    for place, (name, values) in enumerate(groups):
        later = {value for _, others in groups[place + 1 :] for value in others}
        for matched, chosen in list(ways.items()):
            for value in values:
                more = matched | {n for n, wanted in enumerate(goal.options) if same_option(value, wanted)}
                if more != matched and value not in later:
                    ways.setdefault(more, {**chosen, name: value})
    chosen = ways[max(ways, key=len)]
    return breakdown(product, goal, price, chosen, nouns)[0], chosen


@lru_cache(maxsize=65_536)
def _alike(own: str, wanted: str) -> bool:
    return bool(fuzz.token_set_ratio(own, wanted) > ENOUGH)


@lru_cache(maxsize=4096)
def _levels(path: str) -> frozenset[str]:
    return frozenset(level.strip() for level in path.split("›"))


def progress(parts: Sequence[float]) -> float:
    """Return AgentBoard's progress score of the best match on a results page, on an item page and bought."""
    return sum(parts) / 3
