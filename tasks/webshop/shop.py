"""A shop: products, prices, goals and a search engine, shared by the environments of a process."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from lmgym.errors import InstanceError
from lmgym.tasks.webshop import catalogue, goals
from lmgym.tasks.webshop.goals import HUMANS, ShopGoal
from lmgym.tasks.webshop.products import Product
from lmgym.tasks.webshop.search import Index, kept

FEWEST, MOST = 500, 100_000  # products of the procedural shop
ORDER = 233  # seed of the order of goals


class Shop(ABC):
    """The interface between an environment and a shop, whose products are numbered from 0."""

    index: Index

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of products."""

    @abstractmethod
    def product(self, number: int) -> Product:
        """Return a product by its number."""

    @abstractmethod
    def number(self, asin: str) -> int | None:
        """Return the number of an ASIN in any case, or None."""

    @abstractmethod
    def count(self, kind: str) -> int:
        """Return the number of goals of a kind."""

    @abstractmethod
    def goal(self, kind: str, place: int, seed: int) -> ShopGoal:
        """Return the goal at a place of the order, with prices by `seed`."""

    def search(self, query: str) -> Sequence[int]:
        """Return the numbers of the hits, best first."""
        return self.index.hits(query)

    def price(self, number: int, seed: int) -> float:
        """Return a product's price in dollars."""
        return goals.charged(self.product(number), (seed, number))

    def listed(self, prefix: str, words: str) -> Sequence[int]:
        """Return the products with an attribute (<a>), a category (<c>) or a query (<q>)."""
        return self._listings.get((prefix, words), ())

    @cached_property
    def _listings(self) -> dict[tuple[str, str], list[int]]:
        """Products by search prefix and words."""
        places: dict[tuple[str, str], list[int]] = {}
        for place in range(len(self)):
            product = self.product(place)
            for name in {("<c>", product.category), ("<q>", product.query), *(("<a>", a) for a in product.attributes)}:
                places.setdefault(name, []).append(place)
        return places


class Procedural(Shop):
    """The procedural shop; products are generated on access."""

    def __init__(self, products: int) -> None:
        if not FEWEST <= products <= MOST:
            raise InstanceError(f"the procedural shop has {FEWEST} to {MOST} products; got products={products}")
        self.products = products
        folder = Path(catalogue.__file__).parent
        names = ("kinds.txt", "options.txt", "brands.txt", "catalogue.py", "products.py")  # what products are made from
        digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()
        self.index = kept(["procedural", catalogue.SEED, products, digest], self._documents)
        self.orders = {kind: np.random.default_rng(ORDER).permutation(self.count(kind)) for kind in goals.GOALS}
        self._firsts = np.concatenate(([0], np.cumsum(self.index.goals)))  # number of a product's first goal

    def __len__(self) -> int:
        """Return the number of products."""
        return self.products

    def __reduce__(self) -> tuple[Callable[[int], Procedural], tuple[int]]:
        """Pickle as the number of products: the other process has or makes a shop of its own."""
        return procedural, (self.products,)

    def product(self, number: int) -> Product:
        """Return a product by its number."""
        return catalogue.product(number)

    def number(self, asin: str) -> int | None:
        """Return the number of an ASIN in any case, or None."""
        if len(asin) != 7 or asin[0] not in "bB" or not (asin[1:].isascii() and asin[1:].isdigit()):
            return None
        number = catalogue.number_of(asin)
        return number if number < self.products else None

    def count(self, kind: str) -> int:
        """Return the number of goals of a kind."""
        return self.products * HUMANS if kind == "human" else int(self.index.goals.sum())

    def goal(self, kind: str, place: int, seed: int) -> ShopGoal:
        """Return the goal at a place of the order, with prices by `seed`."""
        goal = int(self.orders[kind][place])
        if kind == "human":
            number, which = divmod(goal, HUMANS)
            words, attributes, options = goals.instruct(self.product(number), number, which)
            return goals.human(self.product(number), words, attributes, options, self._ceiling(number, seed, 1, which))
        number = int(np.searchsorted(self._firsts, goal, side="right")) - 1
        product, which = self.product(number), goal - int(self._firsts[number])
        return goals.synthetic(
            product, goals.combination(product.options, which), self._ceiling(number, seed, 0, which)
        )

    def _ceiling(self, number: int, seed: int, kind: int, which: int) -> float:
        return goals.ceiling(self.price(number, seed), (seed, number, kind, which))

    def _documents(self) -> list[tuple[str, int]]:
        products = (self.product(number) for number in range(self.products))
        return [(product.document, goals.combinations(product.options)) for product in products]


@lru_cache(maxsize=4)
def procedural(products: int) -> Procedural:
    """Return the procedural shop with this many products, shared by all callers."""
    return Procedural(products)
