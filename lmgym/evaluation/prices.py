"""Prices of tokens, from an editable table; a model that is not listed has an unknown cost, never 0."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmgym.errors import RecipeError

TABLE = Path(__file__).with_name("prices.json")
DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")  # the snapshot date that ends a model's name
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Price:
    """Prices in US dollars per million tokens."""

    prompt: float
    answer: float  # thinking included
    cached: float | None = None  # of prompt tokens in the server's cache; None: as `prompt`

    def cost(self, usage: Mapping[str, Any]) -> float | None:
        """Return the cost of a call in US dollars; None if its tokens are unknown."""
        if "in" not in usage or "out" not in usage:
            return None
        cached = min(int(usage.get("cached") or 0), int(usage["in"]))
        low = self.prompt if self.cached is None else self.cached
        dollars: float = ((usage["in"] - cached) * self.prompt + cached * low + usage["out"] * self.answer) / MILLION
        return dollars


def costs_by(price: Price | None) -> Callable[[Mapping[str, Any]], float | None]:
    """Return a function from usage to US dollars: the provider's own figure, else by `price`; None: unknown."""

    def cost(usage: Mapping[str, Any]) -> float | None:
        stated = usage.get("cost")
        if isinstance(stated, int | float) and not isinstance(stated, bool) and stated >= 0:
            return float(stated)
        return None if price is None else price.cost(usage)

    return cost


def find_price(model: str, tables: Sequence[Path] = ()) -> Price | None:
    """Return the price of a model from the first of `tables` that lists it, else from the built-in table."""
    for path in (*tables, TABLE):
        prices = _read(path)
        for name in (model, DATED.sub("", model)):
            if name in prices:
                return prices[name]
    return None


def _read(path: Path) -> dict[str, Price]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {name: _price(fields) for name, fields in content["models"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecipeError(
            f'{path} is not a price table ({error!r}); expected {{"models": {{"https://host/v1#name": '
            '{"prompt": 1.0, "answer": 4.0}}}, in US dollars per million tokens'
        ) from error


def _price(fields: Mapping[str, Any]) -> Price:
    price = Price(**{name: float(value) for name, value in fields.items()})
    if not all(value >= 0 for value in (price.prompt, price.answer, price.cached or 0.0)):  # NaN included
        raise ValueError(f"a price must be a number of at least 0; got {dict(fields)}")
    return price
