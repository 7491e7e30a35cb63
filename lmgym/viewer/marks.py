"""Points in a picture at which an action was aimed.

A call by element points to the middle of the element if the observation contains its position (the option `places` of
browser tasks).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.env.actions import parse_function_call
from lmgym.types import Turn

Point = tuple[float, float]  # x and y in pixels of the last picture before the action
PLACES: Mapping[str, tuple[tuple[str, str], ...]] = {  # BrowserGym's calls by coordinate: names of their x and y
    **dict.fromkeys(
        ("mouse_click", "mouse_dblclick", "mouse_move", "mouse_down", "mouse_up", "mouse_upload_file", "scroll_at"),
        (("x", "y"),),
    ),
    "mouse_drag_and_drop": (("from_x", "from_y"), ("to_x", "to_y")),
}
ELEMENTS: Mapping[str, tuple[str, ...]] = {  # BrowserGym's calls by element: names of their bids
    **dict.fromkeys(
        ("click", "dblclick", "hover", "fill", "clear", "check", "uncheck", "select_option", "press", "focus"), ("bid",)
    ),
    "upload_file": ("bid",),
    "drag_and_drop": ("from_bid", "to_bid"),
}
QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
AT = r'at="(-?\d{1,6}),(-?\d{1,6})"'
IN_TREE = rf"^\t*\[%s\] \w+(?: {QUOTED})?(?: value={QUOTED})?, {AT}"
IN_HTML = rf'^ *<[\w-]+ bid="%s"(?: [\w-]+(?:="[^"]*")?)*? {AT}[ >]'
BID = re.compile(r"[a-zA-Z]{0,20}\d{0,9}")
MAX_POINTS = 8  # per action
MAX_COORDINATE = 1e6  # pixels


def points(turn: Turn) -> list[Point]:
    """Return the points of a turn's action: `info["points"]`, else those of its call."""
    recorded = turn.info.get("points")
    if isinstance(recorded, Sequence) and not isinstance(recorded, str | bytes):
        return [point for one in recorded[:MAX_POINTS] if (point := _point(one)) is not None]
    action = turn.completion.text if turn.action is None else turn.action
    call = parse_function_call(action) if "(" in action else None
    if call is None or not (call.name in PLACES or call.name in ELEMENTS):
        return []
    pairs, bids = PLACES.get(call.name, ()), ELEMENTS.get(call.name, ())
    names = [*bids, *(name for pair in pairs for name in pair)]
    values = {**dict(zip(names, call.positional, strict=False)), **call.arguments}
    targets = [_point((values.get(x), values.get(y))) for x, y in pairs]
    targets += [_middle(str(values.get(bid)), turn.observation.text) for bid in bids]
    return [point for point in targets if point is not None]


def _middle(bid: str, page: str) -> Point | None:
    """Return the middle of an element, as written in the observation."""
    if not BID.fullmatch(bid):
        return None
    # positions in a frame's HTML are relative to the frame
    for pattern in (IN_TREE, IN_HTML) if bid.isdigit() else (IN_TREE,):
        if matches := re.findall(pattern % bid, page, re.MULTILINE):
            return _point(tuple(map(int, matches[-1])))  # the last match: the goal's text precedes the page
    return None


def _point(value: Any) -> Point | None:
    """Return a pair of finite numbers as a point, None for anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) != 2:
        return None
    if not all(
        isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < MAX_COORDINATE for one in value
    ):
        return None
    x, y = map(float, value)
    return x, y
