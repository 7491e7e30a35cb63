"""Where in a picture an action pointed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.env.actions import parse_function_call
from lmgym.types import Turn

Point = tuple[float, float]  # x and y, in pixels of the last picture that the action answers
PLACES: Mapping[str, tuple[tuple[str, str], ...]] = {  # BrowserGym's calls by coordinate: names of their x and y
    **dict.fromkeys(
        ("mouse_click", "mouse_dblclick", "mouse_move", "mouse_down", "mouse_up", "mouse_upload_file", "scroll_at"),
        (("x", "y"),),
    ),
    "mouse_drag_and_drop": (("from_x", "from_y"), ("to_x", "to_y")),
}
MOST = 8  # points of an action
FARTHEST = 1e6  # pixels


def points(turn: Turn) -> list[Point]:
    """Return where a turn's action pointed, by `info["points"]` of its environment, else by a call's coordinates."""
    told = turn.info.get("points")
    if isinstance(told, Sequence) and not isinstance(told, str | bytes):
        return [point for one in told[:MOST] if (point := _point(one)) is not None]
    said = turn.completion.text if turn.action is None else turn.action
    return _called(said)


def _called(action: str) -> list[Point]:
    call = parse_function_call(action) if "(" in action else None
    if call is None or call.name not in PLACES:
        return []
    pairs = PLACES[call.name]
    names = [name for pair in pairs for name in pair]
    given = {**dict(zip(names, call.positional, strict=False)), **call.arguments}
    found = [_point((given.get(x), given.get(y))) for x, y in pairs]
    return [point for point in found if point is not None]


def _point(value: Any) -> Point | None:
    """Return a pair of numbers as a point; None for anything else, NaN too."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) != 2:
        return None
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < FARTHEST for one in value):
        return None
    x, y = map(float, value)
    return x, y
