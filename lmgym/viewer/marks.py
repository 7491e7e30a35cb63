"""Where in a picture an action pointed.

A call by element points to the element's middle where the observation that it answers says where that is (the option
`places` of browser tasks, in the tree and in HTML); where it does not say, nothing in a record does.
"""

from __future__ import annotations

import re
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
MOST = 8  # points of an action
FARTHEST = 1e6  # pixels


def points(turn: Turn) -> list[Point]:
    """Return where a turn's action pointed, by `info["points"]` of its environment, else by a call's coordinates."""
    told = turn.info.get("points")
    if isinstance(told, Sequence) and not isinstance(told, str | bytes):
        return [point for one in told[:MOST] if (point := _point(one)) is not None]
    said = turn.completion.text if turn.action is None else turn.action
    return _called(said, turn.observation.text)


def _called(action: str, page: str) -> list[Point]:
    call = parse_function_call(action) if "(" in action else None
    if call is None or not (call.name in PLACES or call.name in ELEMENTS):
        return []
    pairs, bids = PLACES.get(call.name, ()), ELEMENTS.get(call.name, ())
    names = [*bids, *(name for pair in pairs for name in pair)]
    given = {**dict(zip(names, call.positional, strict=False)), **call.arguments}
    found = [_point((given.get(x), given.get(y))) for x, y in pairs]
    found += [_middle(str(given.get(bid)), page) for bid in bids]
    return [point for point in found if point is not None]


def _middle(bid: str, page: str) -> Point | None:
    """Return where a page's words say that the middle of an element is."""
    if not BID.fullmatch(bid):
        return None
    for pattern in (IN_TREE, IN_HTML) if bid.isdigit() else (IN_TREE,):  # HTML of a frame counts from its corner
        if found := re.findall(pattern % bid, page, re.MULTILINE):
            return _point(tuple(map(int, found[-1])))  # the last one: what a goal says stands before the page
    return None


def _point(value: Any) -> Point | None:
    """Return a pair of numbers as a point; None for anything else, NaN too."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or len(value) != 2:
        return None
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < FARTHEST for one in value):
        return None
    x, y = map(float, value)
    return x, y
