"""Goals: an instruction, and the attributes, options and price limit that the reward checks.

A goal of the procedural shop is a function of its number and the price seed. Numbers are dealt to splits in one fixed
order: 0 to 499 test, 500 to 1,499 eval, the rest train, as in the original.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lmgym.tasks.webshop.catalogue import SEED, article
from lmgym.tasks.webshop.products import ASKED, Product

GOALS = ("synthetic", "human")
SPLITS = {"test": (0, 500), "eval": (500, 1500), "train": (1500, None)}  # places in the order of goals
CEILINGS = tuple(10.0 * n for n in range(1, 100))  # dollars
NO_CEILING = 1_000_000.0
HUMANS = 4  # instructions of a procedural product
PRICE, CEILING, HUMAN = 11, 12, 13  # streams of chance

Option = str | tuple[str, str]  # human goals name values only; synthetic ones (name, value), as the original compares


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopGoal:
    """A goal; policies see only `instruction`."""

    asin: str
    category: str
    query: str
    name: str  # title of the product it was made from
    path: str
    instruction: str
    attributes: tuple[str, ...]
    ceiling: float  # dollars
    options: tuple[Option, ...]
    weight: float = 1.0  # of the original's draw, which is not used here: every goal has its index


def place(split: str, index: int) -> int:
    """Return the place of an instance in the order of goals."""
    return SPLITS[split][0] + index


def size(split: str, goals: int) -> int:
    """Return the number of instances of a split when there are `goals` in all."""
    first, last = SPLITS[split]
    return max(0, min(goals, goals if last is None else last) - first)


def charged(product: Product, key: Sequence[int]) -> float:
    """Return a product's price in dollars: drawn within its range by `key`."""
    prices = product.prices or (ASKED,)
    if len(prices) == 1:
        return prices[0]
    low, high = prices[:2]
    return low + (high - low) * float(np.random.default_rng([PRICE, *key]).random())


def ceiling(price: float, key: Sequence[int]) -> float:
    """Return the price limit: the larger of two of the next four multiples of ten, or none near 1,000 dollars."""
    near = [dollars for dollars in CEILINGS if dollars > price][:4]
    if len(near) < 2:
        return NO_CEILING
    drawn = np.random.default_rng([CEILING, *key]).permutation(len(near))[:2]
    return near[int(drawn.max())]


def clause(dollars: float) -> str:
    """Return the price clause of an instruction."""
    return "" if dollars >= NO_CEILING else f", and price lower than {dollars:.2f} dollars"


def combination(options: Mapping[str, Sequence[str]], number: int) -> tuple[tuple[str, str], ...]:
    """Return combination `number` of option values, groups by name, the last one varying fastest."""
    chosen = []
    for name in sorted(options, reverse=True):
        number, which = divmod(number, len(options[name]))
        chosen.append((name, options[name][which]))
    return tuple(reversed(chosen))


def combinations(options: Mapping[str, Sequence[str]]) -> int:
    """Return the number of combinations of option values."""
    return math.prod(len(values) for values in options.values())


def ambiguous(options: Sequence[tuple[str, str]]) -> bool:
    """Return True if two chosen groups share a value: pages have one button for both, so only one can be chosen."""
    values = [value for _, value in options]
    return len(set(values)) < len(values)


def synthetic(product: Product, options: tuple[tuple[str, str], ...], dollars: float, weight: float = 1.0) -> ShopGoal:
    """Return the goal of a product with these options."""
    named = ", and ".join(f"{name}: {value}" for name, value in options)
    words = f"{product.instruction}{' with ' if named else ''}{named}{clause(dollars)}"
    return goal_of(product, words, product.wanted, options, dollars, weight)


def human(product: Product, words: str, attributes: Sequence[str], options: Sequence[str], dollars: float) -> ShopGoal:
    """Return the goal of a product with an instruction written by a person."""
    return goal_of(product, words.strip(".") + clause(dollars), attributes, options, dollars)


def goal_of(
    product: Product,
    instruction: str,
    attributes: Sequence[str],
    options: Sequence[Option],
    dollars: float,
    weight: float = 1.0,
) -> ShopGoal:
    """Return the goal to buy a product: what is wanted of it, for at most `dollars`."""
    return ShopGoal(
        asin=product.asin,
        category=product.category,
        query=product.query,
        name=product.title,
        path=product.path,
        instruction=instruction,
        attributes=tuple(attributes),
        ceiling=dollars,
        options=tuple(options),
        weight=weight,
    )


OPENINGS = (
    *("i am looking for", "i need", "i want", "i would like", "im looking for", "i want to find", "find me"),
    *("i am in need of", "i would like to buy", "can you find", "please find me", "show me", "help me find"),
    *("im shopping for", "get me", "i'd like"),
)
TRAITS = (
    *("that is {}", "which is {}", "and it should be {}", "that are {}", "it has to be {}", "make sure it is {}"),
    *("it must be {}", "preferably {}", "i care most that it is {}", "with a focus on being {}"),
)
CHOICES = (
    *("in {}", "in the {} one", "with {} as the {name}", "the {name} should be {}", "i prefer {} for the {name}"),
    *("{name} {}", "i want the {} {name}", "and choose {}", "my {name} is {}", "pick the {} {name}", "{} please"),
)


def instruct(product: Product, number: int, which: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return instruction `which` of procedural product `number`, with its attributes and options."""
    rng = np.random.default_rng([SEED, HUMAN, number, which])
    count = int(rng.choice((1, 2, 3), p=(0.5, 0.4, 0.1)))
    attributes = [product.attributes[i] for i in rng.permutation(len(product.attributes))[:count]]
    name_at = sum(len(name.split()) for name in product.attributes[:2]) + 1  # in the title, after brand and attributes
    kind = product.query if rng.random() < 0.35 else " ".join(product.title.lower().split()[name_at:])
    before = [name for name in attributes if rng.random() < 0.6]
    after = [name for name in attributes if name not in before]
    wanted = [(name, values[int(rng.integers(len(values)))]) for name, values in product.options.items()]
    wanted = [pair for pair in wanted if rng.random() < 0.72]
    leading = bool(wanted) and rng.random() < 0.4 and not before
    noun = " ".join((*([wanted[0][1]] if leading else []), *([", ".join(before)] if before else []), kind))
    words = f"{_pick(rng, OPENINGS)} {noun if kind == product.query else article(noun)}"
    clauses = [_pick(rng, TRAITS).format(name) for name in after]
    clauses += [_pick(rng, CHOICES).format(value, name=name) for name, value in (wanted[1:] if leading else wanted)]
    for part in (clauses[i] for i in rng.permutation(len(clauses))):
        words += (", ", " ", ". ", " and ")[int(rng.choice(4, p=(0.3, 0.4, 0.2, 0.1)))] + part.removeprefix("and ")
    return words, tuple(attributes), tuple(value for _, value in wanted)


def _pick(rng: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(rng.integers(len(choices)))]
