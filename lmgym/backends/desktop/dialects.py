"""The actions of each format, one function per action that returns its inputs.

The signatures are the formats' own; the docstrings of our own set are part of prompts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lmgym.backends.desktop.inputs import MOST_INPUTS, Input, Kind

Inputs = list[Input]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 1e9:
        raise ValueError(f"a finite number is needed; got {str(value)[:50]!r}")
    return float(value)


def _whole(value: Any) -> int:
    if _number(value) != int(value):
        raise ValueError(f"a whole number is needed; got {value!r}")
    return int(value)


def _words(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is needed; got {str(value)[:50]!r}")
    return value


def _keys(value: Any, split: str | None = None) -> tuple[str, ...]:
    """Return names of keys, from a list or from one text with separators."""
    if isinstance(value, str):
        parts = value.split(split) if split and len(value) > 1 else [value]
        return tuple(part.strip() if len(part) > 1 else part for part in parts if part)
    if isinstance(value, list | tuple) and value:
        return tuple(_words(key) for key in value)
    raise TypeError(f"a key or a list of keys is needed; got {str(value)[:50]!r}")


def _points(*values: Any) -> tuple[tuple[float, float], ...]:
    """Return pairs of coordinates; none if all are None."""
    if all(value is None for value in values):
        return ()
    numbers = [_number(value) for value in values]
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _holding(keys: Any, *inputs: Input) -> Inputs:
    """Return the inputs between the presses and the releases of some keys: names, or one text with "+"."""
    held = _keys(keys, "+") if keys else ()
    return [*_each("key_down", held), *inputs, *_each("key_up", held[::-1])]


def _each(kind: Kind, keys: Iterable[str]) -> Inputs:
    return [Input(kind, keys=(key,)) for key in keys]


def _pair(value: Any) -> tuple[tuple[float, float], ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise TypeError(f"a pair of coordinates is needed; got {str(value)[:50]!r}")
    return _points(*value)


def _at(kind: Kind, x: Any, y: Any, element: Any, **more: Any) -> Inputs:
    if element is not None:
        return [Input(kind, element=_whole(element), **more)]
    return [Input(kind, _points(x, y), **more)]


# The set of prompts ------------------------------------------------------------------------------------------


def click(x: Any = None, y: Any = None, element: Any = None, button: str = "left", count: Any = 1) -> Inputs:
    """Click at a place or on an element."""
    return _at("click", x, y, element, button=_words(button), count=_whole(count))


def double_click(x: Any = None, y: Any = None, element: Any = None) -> Inputs:
    """Click twice."""
    return _at("click", x, y, element, count=2)


def right_click(x: Any = None, y: Any = None, element: Any = None) -> Inputs:
    """Click with the right button."""
    return _at("click", x, y, element, button="right")


def move(x: Any = None, y: Any = None, element: Any = None) -> Inputs:
    """Move the pointer."""
    return _at("move", x, y, element)


def drag(x: Any, y: Any, to_x: Any, to_y: Any) -> Inputs:
    """Drag from one place to another."""
    return [Input("drag", _points(x, y, to_x, to_y))]


def scroll(direction: str, amount: Any = 3, x: Any = None, y: Any = None, element: Any = None) -> Inputs:
    """Turn the wheel up, down, left or right."""
    return _at("scroll", x, y, element, direction=_words(direction), count=_whole(amount))


def type_text(text: str) -> Inputs:
    """Type a text; a line break presses Enter."""
    return [Input("type", text=_words(text))]


def press(key: str, count: Any = 1) -> Inputs:
    """Press a key, such as "enter" or "f2"."""
    return [Input("press", keys=_keys(key), count=_whole(count))]


def hotkey(keys: Any) -> Inputs:
    """Press keys together, such as "ctrl+s"."""
    return [Input("hotkey", keys=_keys(keys, "+"))]


def wait(seconds: Any = 1) -> Inputs:
    """Wait."""
    return [Input("wait", seconds=_number(seconds))]


def done() -> Inputs:
    """Say that the task is done."""
    return [Input("done")]


def fail() -> Inputs:
    """Say that the task cannot be done."""
    return [Input("fail")]


OWN: Mapping[str, Callable[..., Inputs]] = {
    "click": click,
    "double_click": double_click,
    "right_click": right_click,
    "move": move,
    "drag": drag,
    "scroll": scroll,
    "type": type_text,
    "press": press,
    "hotkey": hotkey,
    "wait": wait,
    "done": done,
    "fail": fail,
}


# pyautogui ---------------------------------------------------------------------------------------------------


def _auto_click(button: str, count: int) -> Callable[..., Inputs]:
    def build(x: Any = None, y: Any = None, interval: Any = 0, duration: Any = 0, **_: Any) -> Inputs:
        return [Input("click", _points(x, y), button=button, count=count)]

    return build


def _auto_any_click(
    x: Any = None, y: Any = None, clicks: Any = 1, interval: Any = 0, button: str = "left", duration: Any = 0
) -> Inputs:
    return [Input("click", _points(x, y), button=_button(button), count=_whole(clicks))]


def _auto_move(x: Any = None, y: Any = None, duration: Any = 0, **_: Any) -> Inputs:
    return [Input("move", _points(x, y))]


def _auto_drag(x: Any, y: Any, duration: Any = 0, button: str = "left", **_: Any) -> Inputs:
    return [Input("drag", _points(x, y), button=_button(button))]


def _auto_shift(kind: Kind) -> Callable[..., Inputs]:
    def build(xOffset: Any = 0, yOffset: Any = 0, duration: Any = 0, button: str = "left", **_: Any) -> Inputs:
        return [Input(kind, _points(xOffset, yOffset), button=_button(button), relative=True)]

    return build


def _auto_button(kind: Kind) -> Callable[..., Inputs]:
    def build(x: Any = None, y: Any = None, button: str = "left", duration: Any = 0) -> Inputs:
        return [Input(kind, _points(x, y), button=_button(button))]

    return build


def _auto_scroll(up: str, down: str) -> Callable[..., Inputs]:
    def build(clicks: Any, x: Any = None, y: Any = None) -> Inputs:
        return [Input("scroll", _points(x, y), direction=up if clicks > 0 else down, count=abs(_whole(clicks)))]

    return build


def _auto_write(message: Any, interval: Any = 0) -> Inputs:
    if isinstance(message, list | tuple):
        return [Input("press", keys=_keys(message))]
    return [Input("type", text=_words(message))]


def _auto_press(keys: Any, presses: Any = 1, interval: Any = 0) -> Inputs:
    return [Input("press", keys=_keys(keys), count=_whole(presses))]


def _auto_hotkey(*keys: Any, interval: Any = 0) -> Inputs:
    return [Input("hotkey", keys=_keys(keys[0] if len(keys) == 1 else keys))]


def _key_state(kind: Kind) -> Callable[..., Inputs]:
    def build(key: Any) -> Inputs:
        return [Input(kind, keys=_keys(_words(key)))]

    return build


def _button(name: Any) -> str:
    return {"primary": "left", "secondary": "right"}.get(_words(name), _words(name))


PYAUTOGUI: Mapping[str, Callable[..., Inputs]] = {
    "click": _auto_any_click,
    "leftClick": _auto_click("left", 1),
    "rightClick": _auto_click("right", 1),
    "middleClick": _auto_click("middle", 1),
    "doubleClick": _auto_click("left", 2),
    "tripleClick": _auto_click("left", 3),
    "moveTo": _auto_move,
    "move": _auto_shift("move"),
    "moveRel": _auto_shift("move"),
    "dragTo": _auto_drag,
    "drag": _auto_shift("drag"),
    "dragRel": _auto_shift("drag"),
    "mouseDown": _auto_button("button_down"),
    "mouseUp": _auto_button("button_up"),
    "scroll": _auto_scroll("up", "down"),
    "vscroll": _auto_scroll("up", "down"),
    "hscroll": _auto_scroll("right", "left"),
    "write": _auto_write,
    "typewrite": _auto_write,
    "press": _auto_press,
    "hotkey": _auto_hotkey,
    "keyDown": _key_state("key_down"),
    "keyUp": _key_state("key_up"),
    "sleep": wait,
}


# OSWorld's computer_13 ---------------------------------------------------------------------------------------


def _world_click(button: str = "left", x: Any = None, y: Any = None, num_clicks: Any = 1) -> Inputs:
    return [Input("click", _points(x, y), button=_words(button), count=_whole(num_clicks))]


def _world_button(kind: Kind) -> Callable[..., Inputs]:
    return lambda button="left": [Input(kind, button=_words(button))]


def _world_scroll(dx: Any = 0, dy: Any = 0) -> Inputs:
    across, along = _whole(dx), _whole(dy)
    inputs = [Input("scroll", direction="right" if across > 0 else "left", count=abs(across))] if across else []
    return inputs + ([Input("scroll", direction="up" if along > 0 else "down", count=abs(along))] if along else [])


OSWORLD: Mapping[str, Callable[..., Inputs]] = {
    "MOVE_TO": move,
    "CLICK": _world_click,
    "MOUSE_DOWN": _world_button("button_down"),
    "MOUSE_UP": _world_button("button_up"),
    "RIGHT_CLICK": right_click,
    "DOUBLE_CLICK": double_click,
    "DRAG_TO": lambda x, y: [Input("drag", _points(x, y))],
    "SCROLL": _world_scroll,
    "TYPING": type_text,
    "PRESS": lambda key: [Input("press", keys=_keys(key))],
    "KEY_DOWN": _key_state("key_down"),
    "KEY_UP": _key_state("key_up"),
    "HOTKEY": lambda keys: [Input("hotkey", keys=_keys(keys))],
    "WAIT": wait,
    "DONE": done,
    "FAIL": fail,
}


# Anthropic's computer use -------------------------------------------------------------------------------------


def _claude_click(button: str, count: int) -> Callable[..., Inputs]:
    def build(coordinate: Any = None, text: Any = None) -> Inputs:
        return _holding(text, Input("click", _pair(coordinate), button=button, count=count))

    return build


def _claude_scroll(scroll_direction: str, scroll_amount: Any = 3, coordinate: Any = None, text: Any = None) -> Inputs:
    turns = Input("scroll", _pair(coordinate), direction=_words(scroll_direction), count=_whole(scroll_amount))
    return _holding(text, turns)


def _claude_drag(coordinate: Any, start_coordinate: Any = None, text: Any = None) -> Inputs:
    return _holding(text, Input("drag", (*_pair(start_coordinate), *_pair(coordinate))))


def _claude_key(text: Any, repeat: Any = 1) -> Inputs:
    count = _whole(repeat)
    if not 1 <= count <= MOST_INPUTS:
        raise ValueError(f"repeat is between 1 and {MOST_INPUTS}; got {count}")
    return [Input("hotkey", keys=_keys(text, "+"))] * count


def _claude_hold(text: Any, duration: Any = 1) -> Inputs:
    return _holding(_words(text), Input("wait", seconds=_number(duration)))


def _claude_zoom(region: Any) -> Inputs:
    if not isinstance(region, list | tuple) or len(region) != 4:
        raise TypeError(f"a region of four numbers is needed; got {str(region)[:50]!r}")
    return [Input("zoom", _points(*region))]


ANTHROPIC: Mapping[str, Callable[..., Inputs]] = {
    "key": _claude_key,
    "hold_key": _claude_hold,
    "type": type_text,
    "mouse_move": lambda coordinate: [Input("move", _pair(coordinate))],
    "left_click": _claude_click("left", 1),
    "right_click": _claude_click("right", 1),
    "middle_click": _claude_click("middle", 1),
    "double_click": _claude_click("left", 2),
    "triple_click": _claude_click("left", 3),
    "left_click_drag": _claude_drag,
    "left_mouse_down": lambda coordinate=None: [Input("button_down", _pair(coordinate))],
    "left_mouse_up": lambda coordinate=None: [Input("button_up", _pair(coordinate))],
    "scroll": _claude_scroll,
    "wait": lambda duration=1: wait(duration),
    "screenshot": lambda: [Input("look")],
    "cursor_position": lambda: [Input("look")],
    "zoom": _claude_zoom,
    "done": done,
    "fail": fail,
}


# OpenAI's computer use ----------------------------------------------------------------------------------------


def _gpt_click(x: Any, y: Any, button: str = "left", keys: Any = None) -> Inputs:
    return _holding(keys, Input("click", _points(x, y), button={"wheel": "middle"}.get(_words(button), button)))


def _gpt_scroll(x: Any = None, y: Any = None, scroll_x: Any = 0, scroll_y: Any = 0, keys: Any = None) -> Inputs:
    across, along = (round(_number(value) / 100) or (value > 0) - (value < 0) for value in (scroll_x, scroll_y))
    turned = _world_scroll(across, -along)
    return _holding(keys, *([Input("move", _points(x, y))] if x is not None else []), *turned)


def _gpt_drag(path: Sequence[Any], keys: Any = None) -> Inputs:
    pairs = [(place["x"], place["y"]) if isinstance(place, Mapping) else place for place in path]
    points = tuple(point for pair in pairs for point in _pair(pair))
    if len(points) < 2:
        raise ValueError("a path has two places or more")
    return _holding(keys, Input("drag", points[:50]))


OPENAI: Mapping[str, Callable[..., Inputs]] = {
    "click": _gpt_click,
    "double_click": lambda x, y, keys=None: _holding(keys, *double_click(x, y)),
    "move": lambda x, y, keys=None: _holding(keys, *move(x, y)),
    "drag": _gpt_drag,
    "scroll": _gpt_scroll,
    "type": type_text,
    "keypress": lambda keys: [Input("hotkey", keys=_keys(keys))],
    "wait": lambda: wait(1),
    "screenshot": lambda: [Input("look")],
    "done": done,
    "fail": fail,
}
