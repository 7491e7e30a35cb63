"""What tokens cost, by an editable table; what is not in it is unknown, never free."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmgym.errors import RecipeError

TABLE = Path(__file__).with_name("prices.json")
DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")  # the date of a snapshot behind a model's name
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars for a million tokens."""

    prompt: float
    answer: float  # thinking included
    cached: float | None = None  # of a prompt that the server had seen; None: as the rest of it

    def cost(self, usage: Mapping[str, Any]) -> float | None:
        """US dollars of a call; None where its tokens are not known."""
        if "in" not in usage or "out" not in usage:
            return None
        cached = min(int(usage.get("cached") or 0), int(usage["in"]))
        low = self.prompt if self.cached is None else self.cached
        dollars: float = ((usage["in"] - cached) * self.prompt + cached * low + usage["out"] * self.answer) / MILLION
        return dollars


def costs_by(price: Price | None) -> Callable[[Mapping[str, Any]], float | None]:
    """US dollars of a call: what the provider says itself, else by `price`; None: unknown."""

    def cost(usage: Mapping[str, Any]) -> float | None:
        said = usage.get("cost")
        if isinstance(said, int | float) and not isinstance(said, bool) and said >= 0:
            return float(said)
        return None if price is None else price.cost(usage)

    return cost


def find_price(model: str, tables: Sequence[Path] = ()) -> Price | None:
    """The price of a policy by its name, from the first of `tables` that has it, then from the package's own."""
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
            f'{path} is no table of prices ({error!r}); it looks like {{"models": {{"https://host/v1#name": '
            '{"prompt": 1.0, "answer": 4.0}}}, in US dollars for a million tokens'
        ) from error


def _price(fields: Mapping[str, Any]) -> Price:
    price = Price(**{name: float(value) for name, value in fields.items()})
    if not all(value >= 0 for value in (price.prompt, price.answer, price.cached or 0.0)):  # NaN included
        raise ValueError(f"a price is a number of at least 0; got {dict(fields)}")
    return price
