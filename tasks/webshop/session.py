"""A buyer's session: five kinds of page and the actions on each, as in the original."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lmgym.tasks.webshop.products import Product
from lmgym.tasks.webshop.search import HITS
from lmgym.tasks.webshop.shop import Shop

Kind = Literal["index", "search_results", "item_page", "item_sub_page", "done"]
HOST = "http://127.0.0.1:3000"  # the original's, in addresses that are shown
BACK, PREVIOUS, NEXT, BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
TABS = ("Description", "Features", "Reviews", "Attributes")


def parse(action: str) -> tuple[str, str | None]:
    """Split `name[argument]` at the first line's last "[" that has text on both sides before the line's last "]".

    That is what the original's greedy pattern finds, in linear time; the argument is in lower case.
    """
    line = action.partition("\n")[0]
    end = line.rfind("]")
    start = line.rfind("[", 1, end - 1) if end > 1 else -1
    return (action, None) if start < 0 else (line[:start], line[start + 1 : end].lower())


@dataclass(slots=True)
class ShopSession:
    """The current page and the choices that led there."""

    shop: Shop
    name: str  # in addresses
    instruction: str
    length: int = 10  # products of a results page
    attributes: bool = False  # whether items have the tab Attributes
    chance: np.random.Generator | None = None  # of the prefix <r>; None: prefixes are words like any other
    kind: Kind = "index"
    keywords: list[str] = field(default_factory=list)
    hits: Sequence[int] = ()  # places of all products found
    page: int = 1
    item: int | None = None  # place of the product that is looked at, or was bought
    tab: str = ""
    options: dict[str, str] = field(default_factory=dict)  # chosen values by group
    seen: set[int] = field(default_factory=set)  # places of products looked at since the start page
    clicked: str = ""  # the option that was chosen last, if that is all that changed

    @property
    def product(self) -> Product:
        """The product on the page."""
        assert self.item is not None
        return self.shop.product(self.item)

    @property
    def listed(self) -> list[int]:
        """Numbers of the products on the results page."""
        return list(self.hits[(self.page - 1) * self.length : self.page * self.length])

    @property
    def tabs(self) -> tuple[str, ...]:
        """Names of an item's tabs."""
        return TABS if self.attributes else TABS[:3]

    @property
    def url(self) -> str:
        """The address of the page."""
        words, base = "+".join(self.keywords), f"{HOST}/{self.kind}/{self.name}"
        if self.kind == "index":
            return f"{HOST}/{self.name}"
        if self.kind == "search_results":
            return f"{base}/{words}/{self.page}"
        if self.kind == "item_page":
            return f"{base}/{self.product.asin}/{words}/{self.page}/{json.dumps(self.options)}"
        if self.kind == "item_sub_page":
            return f"{base}/{self.product.asin}/{words}/{self.page}/{self.tab}/{self.options}"
        return f"{base}/{self.product.asin}/{self.options}"

    def clickables(self) -> dict[str, str | int]:
        """Return the labels that a click can name, in page order, with their meaning."""
        if self.kind == "index":
            return {"search": "search"}
        if self.kind == "done":
            return {}
        buttons = [BACK, *([PREVIOUS] if self.kind != "search_results" or self.page > 1 else [])]
        if self.kind == "search_results":
            labels: dict[str, str | int] = {name.lower(): name for name in (*buttons, NEXT)}
            return labels | {self.shop.product(place).asin.lower(): place for place in self.listed}
        if self.kind == "item_sub_page":
            return {name.lower(): name for name in buttons}
        labels = {name.lower(): name for name in (*buttons, *self.tabs, BUY)}
        return labels | {value: name for name, values in self.product.options.items() for value in values}

    def search(self, words: str) -> None:
        """Show the first page of hits."""
        self.keywords, self.clicked = words.split(" "), ""
        self._results(1)

    def click(self, label: str) -> bool:
        """Follow a button, link or option; return False if the page lacks it."""
        clickables = self.clickables()
        if label not in clickables or label == "search":
            return False
        self.clicked, button = "", label.title() if label.title() in TABS else None
        if label == BUY.lower():
            self.kind = "done"
        elif label == BACK.lower():
            self.kind, self.keywords, self.hits, self.page = "index", [], (), 1
            self.item, self.options, self.seen = None, {}, set()
        elif label == NEXT.lower() and self.kind == "search_results":
            self._results(self.page + 1)
        elif label == PREVIOUS.lower() and self.kind != "item_sub_page":
            self._results(self.page - (self.kind == "search_results"))
        elif button is not None:
            self.kind, self.tab = "item_sub_page", button
        else:
            self._look(label, clickables[label])
        return True

    def _look(self, label: str, target: str | int) -> None:
        """Show an item: a listed product, or the same one after an option was chosen."""
        if isinstance(target, int):
            self.item = target
            self.seen.add(target)
        elif self.kind == "item_page" and label != PREVIOUS.lower():
            self.options[target] = self.clicked = label
        self.kind = "item_page"

    def _results(self, page: int) -> None:
        self.kind, self.page, self.item, self.options = "search_results", page, None, {}
        self.hits = self._found()

    def _found(self) -> Sequence[int]:
        """Return the products for keywords; with prefixes on, the first word may select another list."""
        prefix, rest = self.keywords[0], " ".join(self.keywords[1:]).strip()
        if self.chance is None or prefix not in ("<r>", "<a>", "<c>", "<q>"):
            return self.shop.search(" ".join(self.keywords))
        if prefix == "<r>":
            drawn: list[int] = self.chance.permutation(len(self.shop))[:HITS].tolist()
            return drawn
        return self.shop.listed(prefix, rest.partition(" ")[0] if prefix == "<c>" else rest)
