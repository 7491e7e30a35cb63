"""Ranges of settings, declared in the annotations of dataclass fields: `lr: Rate = 1e-3`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from lmgym.errors import RecipeError

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Range:
    """An interval of finite numbers from `least` to `most`."""

    least: float
    most: float = math.inf
    open: bool = False  # exclude `least`

    def __contains__(self, value: float) -> bool:
        above = value > self.least if self.open else value >= self.least
        return above and value <= self.most and math.isfinite(value)

    def __str__(self) -> str:
        if self.open:
            return f"a number above {self.least:g}"
        return f"{self.least:g} or more" if self.most == math.inf else f"in [{self.least:g}, {self.most:g}]"


Rate = Annotated[float, Range(0, 1e6)]  # learning rate or weight decay; torch overflows far above
NonNegative = Annotated[float, Range(0)]
Positive = Annotated[float, Range(0, open=True)]
AboveOne = Annotated[float, Range(1, open=True)]
Fraction = Annotated[float, Range(0, 1)]
Count = Annotated[int, Range(0)]
PositiveInt = Annotated[int, Range(1)]


def numbers(name: str, text: str, kind: type[Number]) -> list[Number]:
    """Return the finite numbers of an option that lists them with commas; raise RecipeError for anything else."""
    try:
        values = [kind(word) for word in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(map(math.isfinite, values)):
        raise RecipeError(f"{name} are numbers with commas between them; got {text!r}")
    return values


def check_ranges(settings: Any) -> None:
    """Raise RecipeError for the first field of a dataclass outside its Range or Literal; None is always allowed."""
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        value, kinds = getattr(settings, name), (hint, *get_args(hint))  # a union's members, too
        for allowed in (each for kind in kinds for each in getattr(kind, "__metadata__", ())):
            if isinstance(allowed, Range) and value is not None and value not in allowed:
                raise RecipeError(f"{name} is {allowed}; got {value}")
        choices = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
        if choices and value is not None and value not in choices:
            raise RecipeError(f"{name} is {' or '.join(map(str, choices))}; got {value}")
