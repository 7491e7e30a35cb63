"""AndroidWorld's actions: JSON objects with an "action_type", after any reasoning."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from lmgym.backends.browser.context import ActionRefused

LONGEST = 20_000  # characters of an action
FARTHEST = 1e6  # pixels
POINTED = ("click", "double_tap", "long_press", "input_text")
DIRECTIONS = ("up", "down", "left", "right")
STATUSES = ("complete", "infeasible")
DESCRIPTIONS = {
    '{"action_type": "click", "index": 3}': 'Tap an element, or a place of the screen: "x" and "y" instead of "index".',
    '{"action_type": "double_tap", "index": 3}': "Tap it twice.",
    '{"action_type": "long_press", "index": 3}': "Press and hold it.",
    '{"action_type": "input_text", "index": 3, "text": "words"}': "Tap a field, type and press Enter; "
    'with "clear_text": true the field is emptied first.',
    '{"action_type": "keyboard_enter"}': "Press Enter.",
    '{"action_type": "navigate_back"}': "Go back.",
    '{"action_type": "navigate_home"}': "Go to the home screen.",
    '{"action_type": "open_app", "app_name": "Contacts"}': "Open an app.",
    '{"action_type": "scroll", "direction": "down"}': 'Show what is below; also "up", "left" and "right".',
    '{"action_type": "swipe", "direction": "up"}': "Move the finger over the screen.",
    '{"action_type": "wait"}': "Wait a second.",
    '{"action_type": "answer", "text": "words"}': "Answer the user's question.",
    '{"action_type": "status", "goal_status": "complete"}': 'End: the request is met, or "infeasible".',
}
KINDS = (
    *POINTED,
    *("keyboard_enter", "navigate_back", "navigate_home", "open_app", "scroll", "swipe", "wait", "answer", "status"),
)


@dataclass(frozen=True, kw_only=True)
class PhoneAction:
    """One action with the fields that its kind needs."""

    kind: str
    index: int | None = None  # of an element
    point: tuple[float, float] | None = None  # x and y, in pixels
    text: str = ""  # to type or to answer, a direction, an app or a status
    clear: bool = False


def written(kind: str, **fields: Any) -> str:
    """Return an action as a policy writes it."""
    return json.dumps({"action_type": kind, **fields}, ensure_ascii=False)


def parse(action: str) -> PhoneAction:
    """Return the action of a reply; raise ActionRefused if there is none."""
    if len(action) > LONGEST:
        raise ActionRefused(f"the action has {len(action)} characters, over {LONGEST}")
    fields = _object(action)
    kind = fields.get("action_type")
    if kind not in KINDS:
        raise ActionRefused(f"action_type is one of {', '.join(KINDS)}; got {str(kind)[:50]!r}")
    if kind in POINTED:
        index, point = _index(fields), _point(fields)
        if (index is None) == (point is None):
            raise ActionRefused(f"{kind} takes either index or x and y")
        text = _text(fields, "text") if kind == "input_text" else ""
        return PhoneAction(kind=kind, index=index, point=point, text=text, clear=fields.get("clear_text") is True)
    if kind in ("scroll", "swipe"):
        index = _index(fields) if kind == "scroll" else None
        return PhoneAction(kind=kind, index=index, text=_one_of(fields, "direction", DIRECTIONS))
    if kind == "status":
        return PhoneAction(kind=kind, text=_one_of(fields, "goal_status", STATUSES))
    name = {"answer": "text", "open_app": "app_name"}.get(kind)
    return PhoneAction(kind=kind, text=_text(fields, name) if name else "")


def _object(action: str) -> dict[str, Any]:
    """Return the JSON object after the last "Action:", or the first of the text."""
    words = action.rpartition("Action:")[2]
    start = words.find("{")
    try:
        value, _ = json.JSONDecoder(parse_constant=_refuse).raw_decode(words[start:] if start >= 0 else "")
    except (ValueError, RecursionError):
        raise ActionRefused('answer with one JSON object, such as {"action_type": "click", "index": 3}') from None
    return value if isinstance(value, dict) else {}


def _index(fields: dict[str, Any]) -> int | None:
    value = fields.get("index")
    if isinstance(value, str) and value.isdecimal() and len(value) < 6:
        return int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ActionRefused(f"index is a whole number; got {str(value)[:50]!r}")


def _point(fields: dict[str, Any]) -> tuple[float, float] | None:
    x, y = fields.get("x"), fields.get("y")
    if x is None and y is None:
        return None
    for value in (x, y):
        if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < FARTHEST:
            raise ActionRefused(f"x and y are numbers of pixels; got {str(value)[:50]!r}")
    return float(x), float(y)  # type: ignore[arg-type]  # checked above


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):  # as AndroidWorld converts it
        value = str(value)
    if not isinstance(value, str) or not value:
        raise ActionRefused(f"{name} is a text; got {str(value)[:50]!r}")
    return value


def _one_of(fields: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    value = fields.get(name)
    if value not in choices:
        raise ActionRefused(f"{name} is one of {', '.join(choices)}; got {str(value)[:50]!r}")
    return str(value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
