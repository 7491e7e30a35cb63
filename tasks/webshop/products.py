"""The record of a product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PLACEHOLDER = ("DUMMY_ATTR",)  # attributes of a product that the official file says nothing about
ASKED = 100.0  # dollars, where a product names no price


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product with the fields of its pages."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]  # values by the name of the group
    query: str  # what people search for when they want one
    category: str  # department
    path: str  # categories from the widest to the narrowest, joined by " › "
    prices: tuple[float, ...]  # dollars: one, or the ends of a range
    image: str = ""
    instruction: str | None = None  # of synthetic goals
    wanted: tuple[str, ...] = ()  # attributes that synthetic goals want

    @property
    def tag(self) -> str:
        """The price as pages show it."""
        return " to ".join(f"${price}" for price in self.prices)

    @property
    def document(self) -> str:
        """The text that the search engine indexes."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join((self.title, self.description, self.bullets[0] if self.bullets else "", options)).lower()
