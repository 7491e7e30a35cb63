"""Problem families of ours with exact answers, in three levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

LEVELS = (1, 2, 3)


@dataclass(frozen=True)
class Problem:
    """A question with its answer as the checker reads it."""

    family: str
    question: str
    answer: str


Draw = Callable[[int, int], int]  # lowest and highest -> an integer
Family = Callable[[Draw, int], tuple[str, str]]


def problem(chance: np.random.Generator, level: int, family: str) -> Problem:
    """Draw a problem of a family and a level from 1 to 3."""
    question, answer = FAMILIES[family](lambda low, high: int(chance.integers(low, high + 1)), level)
    return Problem(family, question, answer)


def _sum(draw: Draw, level: int) -> tuple[str, str]:
    terms = [draw(-(10 ** (level + 1)), 10 ** (level + 1)) for _ in range(level + 1)]
    text = str(terms[0]) + "".join(f" - {-term}" if term < 0 else f" + {term}" for term in terms[1:])
    return f"Calculate {text}.", str(sum(terms))


def _product(draw: Draw, level: int) -> tuple[str, str]:
    left, right = draw(11, 10 ** (level + 1)), draw(3, 10**level + 9)
    return f"Calculate {left:,} times {right}.", f"{left * right:,}"


def _fraction(draw: Draw, level: int) -> tuple[str, str]:
    parts = [Fraction(draw(1, 9), draw(2, 6 + 3 * level)) for _ in range(1 + level)]
    text = f"{parts[0]}" + "".join(f" + {part}" for part in parts[1:])
    return f"Calculate {text} as a fraction.", str(sum(parts))


def _equation(draw: Draw, level: int) -> tuple[str, str]:
    factor, root = draw(2, 9), Fraction(draw(-20, 20), 1 if level < 3 else draw(1, 4))
    other = draw(2, 9) if level > 1 else 0
    other += other == factor
    shift = draw(-30, 30)
    right = (factor - other) * root + shift
    left = f"{factor}x {'-' if shift < 0 else '+'} {abs(shift)}"
    return f"Solve {left} = {f'{other}x + ' * bool(other)}{right} for x.", str(root)


def _percent(draw: Draw, level: int) -> tuple[str, str]:
    share, whole = 5 * draw(1, 19), 20 * draw(1, 10**level)
    return f"What is {share} % of {whole} euros?", f"{Fraction(share * whole, 100)} euros"


def _sequence(draw: Draw, level: int) -> tuple[str, str]:
    first, step, factor = draw(1, 12), draw(-9, 9), 1 if level == 1 else draw(2, level)
    terms = [first]
    for _ in range(5):
        terms.append(terms[-1] * factor + step)
    return f"Which number comes next: {', '.join(map(str, terms[:5]))}?", str(terms[5])


def _units(draw: Draw, level: int) -> tuple[str, str]:
    big, small, factor = (("km", "m", 1000), ("kg", "g", 1000), ("h", "min", 60))[draw(0, 2)]
    count, rest = draw(1, 9 * level), draw(1, factor - 1)
    if level == 1:
        return f"How many {small} are {count} {big}?", f"{count * factor} {small}"
    return f"How many {small} are {count} {big} and {rest} {small}?", f"{count * factor + rest} {small}"


def _remainder(draw: Draw, level: int) -> tuple[str, str]:
    number, divisor = draw(50, 10 ** (level + 2)), draw(3, 7 + 10 * level)
    return f"What is the remainder of {number} divided by {divisor}?", str(number % divisor)


def _divisor(draw: Draw, level: int) -> tuple[str, str]:
    common = draw(2, 12 * level)
    left, right = common * draw(2, 20), common * draw(2, 20)
    return f"What is the greatest common divisor of {left} and {right}?", str(gcd(left, right))


FAMILIES: Mapping[str, Family] = {
    "sum": _sum,
    "product": _product,
    "fraction": _fraction,
    "equation": _equation,
    "percent": _percent,
    "sequence": _sequence,
    "units": _units,
    "remainder": _remainder,
    "divisor": _divisor,
}
