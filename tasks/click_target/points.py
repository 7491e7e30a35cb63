"""Parse points and boxes from a policy's text, and test whether a point lies within a box."""

from __future__ import annotations

import re
from typing import Any

from lmgym.backends.drawing import Box
from lmgym.env.actions import parse_command, parse_function_call, parse_json_call

NUMBER = re.compile(r"(?<![\w.])-?\d{1,9}(?:\.\d{1,9})?(?![\w.]*\w)")
CALLS = ("click", "left_click", "tap")
Point = tuple[float, float]


def pointed(action: str) -> Point | None:
    """Return x and y, or the centre of left, top, right and bottom; return None without two or four numbers.

    A call such as `click(3, 4)` or its JSON may stand alone or after other words; without one, the last line's numbers
    count, as `(3, 4)`, `[1, 2, 5, 6]` or bare.
    """
    call = parse_function_call(action) or parse_json_call(action)
    if call is None:
        return _middle([float(number) for number in NUMBER.findall(parse_command(action))])
    if call.name not in CALLS:
        return None
    return _middle(_numbers([*call.positional, *call.arguments.values()]))


def within(point: Point, box: tuple[float, float, float, float]) -> bool:
    """Return True if a point lies within left, top, right and bottom, edges included, as ScreenSpot counts."""
    left, top, right, bottom = box
    return left <= point[0] <= right and top <= point[1] <= bottom


def edges(box: Box) -> tuple[float, float, float, float]:
    """Return a box whose right and bottom are outside as one whose edges are its outermost pixels."""
    left, top, right, bottom = box
    return float(left), float(top), float(right - 1), float(bottom - 1)


def _numbers(values: list[Any]) -> list[float]:
    """Flatten lists of numbers; return a single NaN for anything else."""
    numbers: list[float] = []
    for value in values:
        if isinstance(value, list):
            numbers += _numbers(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers.append(float(value))
        else:
            return [float("nan")]
    return numbers


def _middle(numbers: list[float]) -> Point | None:
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    if len(numbers) == 4:
        return (numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2
    return None
