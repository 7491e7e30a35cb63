"""UI-S1's comparison of an action with a recorded one.

Lu et al. 2025, UI-S1: Advancing GUI Automation via Semi-online Reinforcement Learning (arXiv 2509.11543).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lmgym.env.actions import parse_json_call

ENLARGED = 1.2  # candidate boxes are enlarged by this factor about their centres
NEAR = 0.04  # distance of two points that counts as none, in widths and heights of the screen
FARTHEST = 1e6  # pixels
NEEDED: Mapping[str, tuple[str, ...]] = {  # fields of each kind of action
    "click": ("coordinate",),
    "long_press": ("coordinate",),
    "swipe": ("coordinate", "coordinate2"),
    "type": ("text",),
    "open": ("text",),
    "answer": ("text",),
    "system_button": ("button",),
    "wait": (),
}


class Match(NamedTuple):
    """Result of a comparison."""

    kind: bool  # the kinds of action agree, in UI-S1's sense
    exact: bool  # and so does the rest


def parse_action(action: str) -> dict[str, Any] | None:
    """Return an action: `{"action": ...}`, bare or as the arguments of a tool call; None if it is not complete."""
    call = parse_json_call(action)
    value: Any = dict(call.arguments) if call is not None else _object(action)
    if not isinstance(value, dict) or not isinstance(value.get("action"), str) or value["action"] not in NEEDED:
        return None
    for name in NEEDED[value["action"]]:
        given = value.get(name)
        if not (_is_point(given) if name.startswith("coordinate") else isinstance(given, str)):
            return None
    return value


def _object(action: str) -> Any:
    start = action.find("{")
    try:
        return json.JSONDecoder().raw_decode(action[start:])[0] if start >= 0 else None
    except (ValueError, RecursionError):
        return None


def _is_point(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2
    return pair and all(isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < FARTHEST for x in value)


def compare(action: Mapping[str, Any], check: Mapping[str, Any], size: tuple[int, int]) -> Match:
    """Compare an action with a recorded step's `check_options`; places of both are in pixels of a screen of `size`.

    A tap on the icon of an app counts as opening it. Swipes agree whatever their direction, as in the release.
    """
    wanted, given = check["action"], action["action"]
    if wanted == "open" and given == "click":
        boxes = check.get("candidate_bbox") or []
        return Match(bool(boxes), bool(boxes) and _hits(action["coordinate"], boxes, _middle(boxes[0]), size))
    if wanted != given:
        return Match(False, False)
    if wanted in ("click", "long_press"):
        boxes = check.get("candidate_bbox") or []
        return Match(True, _hits(action["coordinate"], boxes, check.get("coordinate"), size))
    if wanted in ("type", "open", "answer"):
        return Match(True, _contains(action["text"], check["text"]))
    if wanted == "system_button":
        return Match(True, action["button"].lower().strip() == check["button"].lower().strip())
    return Match(True, True)


def _contains(one: str, other: str) -> bool:
    """Return True if either text is part of the other; an empty one is part of an empty one only."""
    one, other = one.lower().strip(), other.lower().strip()
    return one == other or (bool(one and other) and (one in other or other in one))


def _middle(box: Sequence[float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _hits(
    point: Sequence[float], boxes: Sequence[Sequence[float]], wanted: Sequence[float] | None, size: tuple[int, int]
) -> bool:
    for box in boxes:
        x, y = _middle(box)
        half_width, half_height = ENLARGED * (box[2] - box[0]) / 2, ENLARGED * (box[3] - box[1]) / 2
        if abs(point[0] - x) <= half_width and abs(point[1] - y) <= half_height:
            return True
    if wanted is None:
        return False
    return math.hypot((point[0] - wanted[0]) / size[0], (point[1] - wanted[1]) / size[1]) <= NEAR
