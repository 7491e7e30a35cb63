"""Parse actions by protocol: a look at a point or a box of the shown picture, an answer, or neither."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from lmgym.env.actions import parse_command, parse_function_call, parse_json_call, parse_tag

BOX = re.compile(r"\[\s*(\d{1,6}(?:\.\d{1,6})?(?:\s*,\s*\d{1,6}(?:\.\d{1,6})?){3})\s*\]")
THOUGHT = re.compile(r"\s*<think>")
APART = 10  # pixels between two looks that ViGoRL's reward counts as two


@dataclass(frozen=True)
class Look:
    """A request for a crop: x and y of its centre, or left, top, right, bottom, in the policy's coordinates."""

    where: tuple[float, ...]


@dataclass(frozen=True)
class ParsedAction:
    """An answer."""

    words: str


Meaning = Look | ParsedAction | None


def tool(action: str, first: bool) -> Meaning:
    """Read `crop(x, y)` and `answer("A")`, as functions or as JSON calls."""
    call = parse_function_call(action) or parse_json_call(action)
    if call is None:
        return None
    values = [*call.positional, *call.arguments.values()]
    if call.name == "answer" and len(values) == 1 and isinstance(values[0], str):
        return ParsedAction(values[0])
    return _look(values, 2) if call.name == "crop" else None


def mgpo(action: str, first: bool) -> Meaning:
    """Parse a box in the first turn; the second turn's text is the answer."""
    if not first:
        tagged = parse_tag(action, "answer")
        return ParsedAction(parse_command(action) if tagged is None else tagged)
    boxes = BOX.findall(action)
    return _look([float(number) for number in boxes[-1].split(",")], 4) if boxes else None


def vigorl(action: str, first: bool) -> Meaning:
    """Parse a thought followed by a call of the zoom tool or an answer."""
    before, closed, after = action.partition("</think>")
    if not closed or not THOUGHT.match(before):
        return None
    call, answer = parse_tag(after, "tool_call"), parse_tag(after, "answer")
    if (call is None) == (answer is None):
        return None
    if answer is not None:
        return ParsedAction(answer)
    zoom = parse_json_call(after)
    where = zoom.arguments.get("coordinate") if zoom is not None and zoom.name == "search_coordinate" else None
    return _look(where, 2) if isinstance(where, list) else None


PROTOCOLS: dict[str, Callable[[str, bool], Meaning]] = {"tool": tool, "mgpo": mgpo, "vigorl": vigorl}


def distinct(points: Iterable[tuple[float, ...]]) -> int:
    """Count looks that are at least `APART` pixels from all counted before."""
    counted: list[tuple[float, ...]] = []
    for x, y in points:
        if all((x - a) ** 2 + (y - b) ** 2 >= APART**2 for a, b in counted):
            counted.append((x, y))
    return len(counted)


def _look(values: list[Any], count: int) -> Look | None:
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return Look(tuple(numbers)) if len(numbers) == len(values) == count else None
