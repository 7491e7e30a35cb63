"""The official catalogue and goals, read from $WEBSHOP_DATA by the original's rules.

Where the original leaves prices and ceilings to a generator that nobody seeds, here they follow from the price seed.
Where a record would make it fail (a price without a number, a synthetic instruction without attributes), the record is
read as if that were absent.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError
from lmgym.tasks.webshop import goals
from lmgym.tasks.webshop.goals import NO_CEILING, ShopGoal
from lmgym.tasks.webshop.products import ASKED, PLACEHOLDER, Product
from lmgym.tasks.webshop.search import kept
from lmgym.tasks.webshop.shop import Shop

VARIABLE = "WEBSHOP_DATA"
LONGEST = 10  # characters of an ASIN
ORDER = 233  # the original's seed of the order of goals
NUMBER = re.compile(r"\d+(?:\.\d+)?")
PRICES = 2  # that count, where a product names more


class Official(Shop):
    """The official shop: the file's first `products` products, or all for 0."""

    def __init__(self, folder: Path, products: int) -> None:
        self.folder, self.wanted = folder, products
        file = _file(folder, "items_shuffle", products)
        rows = _read(file, _rows, "a list of products, each with its asin")
        attributes = _read(_file(folder, "items_ins_v2", products), _entries, "an object by asin of objects")
        self.products = tuple(read(rows[:products] if products else rows, attributes))
        if not self.products:
            raise InstanceError(f"{file} has no product")
        self._numbers = {product.asin.lower(): place for place, product in enumerate(self.products)}
        names = ("items_shuffle", "items_ins_v2")
        stamps = [
            [path.name, path.stat().st_size, path.stat().st_mtime_ns]
            for path in (_file(folder, name, products) for name in names)
        ]
        self.index = kept(["official", products, stamps], lambda: [(product.document, 0) for product in self.products])
        self._orders: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        """Return the number of products."""
        return len(self.products)

    def __reduce__(self) -> tuple[Callable[[Path, int], Official], tuple[Path, int]]:
        """Pickle as folder and number of products: the other process has or reads a shop of its own."""
        return _shop, (self.folder, self.wanted)

    def product(self, number: int) -> Product:
        """Return a product by its number."""
        return self.products[number]

    def number(self, asin: str) -> int | None:
        """Return the number of an ASIN in any case, or None."""
        return self._numbers.get(asin.lower())

    def count(self, kind: str) -> int:
        """Return the number of goals of a kind."""
        return len(self._order(kind))

    def goal(self, kind: str, place: int, seed: int) -> ShopGoal:
        """Return the goal at a place of the original's order, with prices by `seed`."""
        number, which, weight = self._order(kind)[place]
        product, human = self.products[number], kind == "human"
        dollars = goals.ceiling(self.price(number, seed), (seed, number, int(human), which if human else 0))
        if human:
            entry = self._humans[product.asin][which]
            options = [str(option) for option in entry.get("instruction_options") or ()]
            return goals.human(product, entry["instruction"], entry["instruction_attributes"], options, dollars)
        return goals.synthetic(product, goals.combination(product.options, which), dollars, weight)

    def _order(self, kind: str) -> list[tuple[int, int, float]]:
        """Return product, number among its goals and weight of each goal, in the original's order.

        Goals that share a value are shuffled and counted with the others, as the original does, and dropped after.
        """
        if kind not in self._orders:
            made = (
                self._synthetic()
                if kind != "human"
                else [
                    (number, which, 1.0)
                    for number, product in enumerate(self.products)
                    for which, entry in enumerate(self._humans.get(product.asin, ()))
                    if entry.get("instruction_attributes")
                ]
            )
            random.Random(ORDER).shuffle(made)  # a generator of its own, so that none is disturbed
            if kind != "human":
                choices = [goals.combination(self.products[number].options, which) for number, which, _ in made]
                made = [goal for goal, choice in zip(made, choices, strict=True) if not goals.ambiguous(choice)]
            self._orders[kind] = made
        return self._orders[kind]

    def _synthetic(self) -> list[tuple[int, int, float]]:
        """Return the goals of all option combinations, with the original's weights."""
        pairs = [
            (number, which)
            for number, product in enumerate(self.products)
            if product.instruction is not None and product.wanted
            for which in range(goals.combinations(product.options))
        ]
        having = Counter(name for number, _ in pairs for name in self.products[number].wanted)
        weights = {
            number: sum(1 / having[name] for name in self.products[number].wanted) / len(self.products[number].wanted)
            for number in {number for number, _ in pairs}
        }
        return [(number, which, weights[number]) for number, which in pairs]

    @cached_property
    def _humans(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        file, form = _file(self.folder, "items_human_ins", 0), "an object by asin of lists of objects"
        entries: Mapping[str, Sequence[Mapping[str, Any]]] = _read(file, _instructions, form)
        return entries


def shop(products: int) -> Official:
    """Return the official shop, shared by all callers with the same folder and number of products."""
    folder = os.environ.get(VARIABLE, "")
    if not folder or not Path(folder).is_dir():
        raise InstanceError(f"the official shop needs its files: set ${VARIABLE} to the folder of items_shuffle.json")
    if products < 0:
        raise InstanceError(f"products is a number of the file's first ones, or 0 for all; got {products}")
    return _shop(Path(folder), products)


def read(rows: Sequence[Mapping[str, Any]], attributes: Mapping[str, Mapping[str, Any]]) -> list[Product]:
    """Return the products of the file's rows, without ASINs that are "nan", too long or repeated."""
    products: dict[str, Product] = {}
    for row in rows:
        asin = str(row["asin"])
        if asin != "nan" and len(asin) <= LONGEST and asin not in products:
            products[asin] = _product(row, attributes.get(asin, {}))
    return list(products.values())


def authored(shop: Shop, instance: Mapping[str, Any]) -> ShopGoal:
    """Return the goal of an authored instance; raise InstanceError for missing or wrong fields."""
    form = "an authored goal has instruction, asin, attributes, options (a list or name: value) and price_upper"
    try:
        number = shop.number(str(instance["asin"]))
        attributes = [str(name) for name in instance["attributes"]]
        options = instance.get("options") or ()
        dollars = float(instance.get("price_upper", NO_CEILING))
        words = str(instance["instruction"])
        pairs = [(str(n), str(v)) for n, v in options.items()] if isinstance(options, Mapping) else None
        wanted = tuple(pairs) if pairs is not None else tuple(str(value) for value in options)
    except (KeyError, TypeError, ValueError) as error:
        raise InstanceError(f"{form}; {type(error).__name__}: {error}") from error
    if number is None or not attributes or not dollars > 0:
        raise InstanceError(
            f"{form}: a product of the shop, an attribute at least, dollars above 0; got {dict(instance)}"
        )
    return goals.goal_of(shop.product(number), words, attributes, wanted, dollars)


@lru_cache(maxsize=2)
def _shop(folder: Path, products: int) -> Official:
    return Official(folder, products)


def _file(folder: Path, name: str, products: int) -> Path:
    """Return an official file: the one for this number of products if it exists, else the full one."""
    small = folder / f"{name}_{products}.json"
    path = small if products and small.is_file() else folder / f"{name}.json"
    if not path.is_file():
        raise InstanceError(f"${VARIABLE}={folder} has no {small.name if products else path.name} and no {path.name}")
    return path


def _read(path: Path, fits: Callable[[Any], bool], form: str) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InstanceError(f"{path} cannot be read: {error}") from error
    if not fits(content):
        raise InstanceError(f"{path} is not in the official layout, {form}")
    return content


def _rows(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(row, dict) and "asin" in row for row in content)


def _entries(content: Any) -> bool:
    return isinstance(content, dict) and all(isinstance(entry, dict) for entry in content.values())


def _instructions(content: Any) -> bool:
    lists = content.values() if isinstance(content, dict) else [None]
    return all(isinstance(entries, list) and all(isinstance(one, dict) for one in entries) for entries in lists)


def _product(row: Mapping[str, Any], annotation: Mapping[str, Any]) -> Product:
    small = row.get("small_description") or ()
    images = row.get("images") or [""]
    return Product(
        asin=str(row["asin"]),
        title=str(row.get("name") or ""),
        description=str(row.get("full_description") or ""),
        bullets=(str(small),) if isinstance(small, str) else tuple(str(bullet) for bullet in small),
        attributes=tuple(annotation.get("attributes", PLACEHOLDER)),
        options=_options(row.get("customization_options")),
        query=str(row.get("query") or "").lower().strip(),
        category=str(row.get("category") or ""),
        path=str(row.get("product_category") or ""),
        prices=_prices(row.get("pricing")),
        image=str(images[0]),
        instruction=annotation.get("instruction"),
        wanted=tuple(annotation.get("instruction_attributes") or ()),
    )


def _prices(pricing: object) -> tuple[float, ...]:
    """Return the first two prices of a text such as "$1,299.00 - $1,499.00"; 100 where it has none."""
    numbers = [NUMBER.search(re.sub(r"[^\d.]", "", part)) for part in str(pricing or "").split("$")[1:]]
    return tuple(float(number[0]) for number in numbers if number)[:PRICES] or (ASKED,)


def _options(groups: Mapping[str, Sequence[Mapping[str, Any]] | None] | None) -> dict[str, tuple[str, ...]]:
    """Return the values of each group, in lower case; groups without a list are no groups."""
    return {
        name.lower(): tuple(str(value["value"]).strip().replace("/", " | ").lower() for value in values)
        for name, values in (groups or {}).items()
        if values is not None
    }
