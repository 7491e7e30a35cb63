"""Action sets, their description for the prompt, and the binding of a call's arguments.

The sets are BrowserGym's, plus the actions that its sets omit: check, uncheck and scroll_at.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from lmgym.backends.browser.actions import Actions, Modifier
from lmgym.backends.browser.context import ActionRefused
from lmgym.errors import InstanceError

SETS: Mapping[str, tuple[str, ...]] = {
    "bid": (
        *("scroll", "fill", "check", "uncheck", "select_option", "click", "dblclick", "hover", "press", "focus"),
        *("clear", "drag_and_drop", "upload_file"),
    ),
    "coord": (
        *("scroll", "scroll_at", "mouse_move", "mouse_up", "mouse_down", "mouse_click", "mouse_dblclick"),
        *("mouse_drag_and_drop", "mouse_upload_file"),
        *("keyboard_down", "keyboard_up", "keyboard_press", "keyboard_type", "keyboard_insert_text"),
    ),
    "nav": ("go_back", "go_forward", "goto"),
    "tab": ("tab_close", "tab_focus", "new_tab"),
    "chat": ("send_msg_to_user",),
    "infeas": ("report_infeasible",),
}
HALVES = re.compile("[\ud800-\udfff]")  # lone surrogates: a browser fails on them halfway through a text
THEIRS = {"dx": "delta_x", "dy": "delta_y"}  # BrowserGym's names in scroll_at


def action_names(sets: Iterable[str], only: str = "") -> tuple[str, ...]:
    """Return the names of the actions in these sets, `noop` included, or those that `only` lists by commas.

    Raises InstanceError for a name that is not in the sets.
    """
    names = tuple(dict.fromkeys(name for part in sets for name in SETS[part])) + ("noop",)
    chosen = tuple(dict.fromkeys(name.strip() for name in only.split(","))) if only else names
    if unknown := [name for name in chosen if name not in names]:
        raise InstanceError(f"unknown action {unknown[0]!r}; choose {', '.join(names)}")
    return chosen


def describe(names: Iterable[str]) -> str:
    """Return a line for each action: how it is called and what it does."""
    lines = []
    for name in names:
        method = getattr(Actions, name)
        arguments = ", ".join(_shown(parameter) for parameter in _parameters(name))
        lines.append(f"{name}({arguments}): {(method.__doc__ or '').strip()}")
    return "\n".join(lines)


def bind(name: str, positional: Sequence[Any], named: Mapping[str, Any], allowed: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of a call by name; raise ActionRefused if they do not fit."""
    if name not in allowed:
        raise ActionRefused(f"NameError: there is no action {name[:50]!r} here")
    parameters = _parameters(name)
    if name == "scroll_at":
        named = {THEIRS.get(key, key): value for key, value in named.items()}
    try:
        bound = inspect.Signature(parameters).bind(*positional, **named).arguments
    except TypeError as error:
        raise ActionRefused(f"TypeError: {name}(): {error}") from error
    annotations = {parameter.name: str(parameter.annotation) for parameter in parameters}
    return {key: _fitting(name, key, value, annotations[key]) for key, value in bound.items()}


def _parameters(name: str) -> list[inspect.Parameter]:
    return list(inspect.signature(getattr(Actions, name)).parameters.values())[1:]


def _shown(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    return parameter.name + default.replace("()", "[]")


def _fitting(name: str, key: str, value: Any, annotation: str) -> Any:
    """Return one argument converted to its parameter's annotation, or refuse it."""
    text, number = isinstance(value, str), isinstance(value, int | float) and not isinstance(value, bool)
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if any(HALVES.search(item) for item in (value if texts else [value] if text else ())):
        raise ActionRefused(f"ValueError: {name}(): {key} has half a character")
    if annotation == "float" and number and math.isfinite(value):
        return float(value)
    if annotation == "int" and number and float(value).is_integer():
        return int(value)
    if key in ("bid", "from_bid", "to_bid") and number and float(value).is_integer():
        return str(int(value))
    if annotation == "Button" and value in ("left", "middle", "right"):
        return value
    if annotation == "Sequence[Modifier]" and texts and set(value) <= set(get_args(Modifier)):
        return value
    if (annotation.startswith("str") and text) or (annotation == "str | Sequence[str]" and texts):
        return value
    raise ActionRefused(f"TypeError: {name}(): {key} takes {annotation}; got {str(value)[:50]!r}")
