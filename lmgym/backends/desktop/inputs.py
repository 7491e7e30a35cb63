"""Inputs, into which every action format is translated, and the desktop's way to perform them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from lmgym.backends.desktop.display import BUTTONS, WHEEL
from lmgym.backends.desktop.keys import is_window_key, keysym
from lmgym.backends.desktop.session import QUIET, Desktop

Pointing = Literal["move", "click", "button_down", "button_up", "drag", "scroll"]
Typing = Literal["type", "press", "hotkey", "key_down", "key_up"]
Kind = Literal[Pointing, Typing, "wait", "look", "zoom", "done", "fail"]
Coordinates = Literal["pixel", "unit", "thousand"]
LONGEST_TEXT = 5_000  # characters typed by one input
MOST_INPUTS = 50  # of one action
MOST_KEYS = 20  # of one input
MOST_CLICKS = 5
MOST_TURNS = 100  # of the wheel
LONGEST_WAIT = 10.0  # seconds
ACTIVATION = 0.3  # seconds: GTK presses a button 0.25 s after its key; a timer is no work that could be seen
SLOW_KEYS = frozenset({"enter", "return", "Return", "space", " ", "\n", "alt", "Alt_L"})
STEPS = 8  # places that a drag passes


class InvalidAction(ValueError):
    """An action that is not understood or not possible; the message is for the policy."""


@dataclass(frozen=True)
class Input:
    """One input; `points` are in the units of the policy's coordinates, or empty for the pointer's present place.

    Those of a zoom are the first and the last corner of the region that the next picture shows.
    """

    kind: Kind
    points: tuple[tuple[float, float], ...] = ()
    element: int | None = None  # number of an element of the last observation, in place of a point
    button: str = "left"
    count: int = 1  # clicks, presses or turns of the wheel
    direction: str = "down"
    text: str = ""
    keys: tuple[str, ...] = ()
    seconds: float = 0.0
    relative: bool = False  # the points are distances from the pointer's place


def scales(coordinates: Coordinates, size: tuple[int, int]) -> tuple[float, float]:
    """Return the pixels of one unit across and down."""
    across, down = size[0] - 1, size[1] - 1
    return {"pixel": (1.0, 1.0), "unit": (across, down), "thousand": (across / 1000, down / 1000)}[coordinates]


def pixel(point: tuple[float, float], coordinates: Coordinates, size: tuple[int, int]) -> tuple[int, int]:
    """Return a point in pixels; raise InvalidAction if it is outside of the screen."""
    x, y = (value * scale for value, scale in zip(point, scales(coordinates, size), strict=True))
    if not (math.isfinite(x) and math.isfinite(y) and 0 <= x < size[0] and 0 <= y < size[1]):
        raise InvalidAction(f"({point[0]:g}, {point[1]:g}) is outside of the screen ({coordinates} coordinates)")
    return round(min(x, size[0] - 1)), round(min(y, size[1] - 1))


def corners(each: Input, coordinates: Coordinates, size: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the corners of a zoom in pixels, the last one outside of the region; raise InvalidAction if it is empty.

    A region may end at the very edge of the screen, which no other point may lie on.
    """
    first, last = each.points
    left, top = pixel(first, coordinates, size)
    ends = zip(last, scales(coordinates, size), size, strict=True)
    right, bottom = (min(max(round(value * scale), 0), most) for value, scale, most in ends)
    if right <= left or bottom <= top:
        raise InvalidAction("the region of a zoom is left, top, right and bottom, with an area on the screen")
    return (left, top), (right, bottom)


def check(inputs: Sequence[Input], desktop: Desktop) -> None:
    """Raise InvalidAction if any of a policy's inputs cannot be performed or is over a limit; points are in pixels."""
    if not 1 <= len(inputs) <= MOST_INPUTS:
        raise InvalidAction(f"an action has 1 to {MOST_INPUTS} inputs; got {len(inputs)}")
    for each in inputs:
        if len(each.text) > LONGEST_TEXT:
            raise InvalidAction(f"{len(each.text)} characters are more than {LONGEST_TEXT}")
        if len(each.keys) > MOST_KEYS:
            raise InvalidAction(f"{len(each.keys)} keys are more than {MOST_KEYS}")
        most = MOST_TURNS if each.kind == "scroll" else MOST_KEYS if each.kind == "press" else MOST_CLICKS
        if not 0 <= each.count <= most:
            raise InvalidAction(f"{each.kind} is repeated 0 to {most} times; got {each.count}")
        if not 0 <= each.seconds <= LONGEST_WAIT:
            raise InvalidAction(f"seconds are between 0 and {LONGEST_WAIT:g}; got {each.seconds:g}")
    check_possible(inputs, desktop)


def check_possible(inputs: Sequence[Input], desktop: Desktop) -> None:
    """Raise InvalidAction if any of the inputs has no key, button or direction that exists."""
    for each in inputs:
        if not desktop.display.can_type(each.text):
            raise InvalidAction("the text has characters that no key types, such as control characters")
        if not each.keys and each.kind in ("press", "hotkey", "key_down", "key_up"):
            raise InvalidAction(f"{each.kind} needs a key; got none")
        for key in each.keys:
            if not keysym(key):
                raise InvalidAction(f"unknown key {key[:40]!r}")
        if each.button not in BUTTONS:
            raise InvalidAction(f"button is one of {', '.join(BUTTONS)}; got {each.button[:40]!r}")
        if each.direction not in WHEEL:
            raise InvalidAction(f"direction is one of {', '.join(WHEEL)}; got {str(each.direction)[:40]!r}")


def perform(each: Input, desktop: Desktop) -> None:
    """Perform one checked input, whose points are in pixels, and wait until the screen rests."""
    display = desktop.display
    points = [(round(x), round(y)) for x, y in each.points]
    if each.relative:
        points = [_from_pointer(desktop, *point) for point in points]
    if len(points) == 1 and each.kind == "drag":
        points = [display.pointer(), *points]
    if points and each.kind != "zoom":
        display.move(*points[0])
        if each.kind in ("click", "drag", "scroll", "button_down"):
            display.sync()
    number = BUTTONS[each.button]
    if each.kind == "click":
        for _ in range(each.count):
            display.button(number, down=True)
            display.button(number, down=False)
    elif each.kind == "button_down":
        display.button(number, down=True)
    elif each.kind == "button_up":
        display.button(number, down=False)
    elif each.kind == "drag":
        _drag(desktop, points, number)
    elif each.kind == "scroll":
        for _ in range(each.count):
            display.button(WHEEL[each.direction], down=True)
            display.button(WHEEL[each.direction], down=False)
    elif each.kind == "type":
        display.type(each.text, partial(desktop.rest, longest=1.0))
    elif each.kind == "press":
        for key in each.keys * each.count:
            display.key(keysym(key), down=True)
            display.key(keysym(key), down=False)
    elif each.kind == "hotkey":
        _hotkey(desktop, each.keys)
    elif each.kind == "key_down":
        display.key(keysym(each.keys[0]), down=True)
    elif each.kind == "key_up":
        display.key(keysym(each.keys[0]), down=False)
    elif each.kind == "wait":
        time.sleep(each.seconds)
    display.sync()
    slow = each.kind in ("press", "hotkey", "type") and ("\n" in each.text or not SLOW_KEYS.isdisjoint(each.keys))
    desktop.rest(quiet=ACTIVATION if slow else QUIET)


def _hotkey(desktop: Desktop, keys: Sequence[str]) -> None:
    symbols = [keysym(key.lower() if len(key) == 1 and len(keys) > 1 else key) for key in keys]
    for symbol in symbols:
        desktop.display.key(symbol, down=True)
    if any(map(is_window_key, symbols)):
        desktop.rest(longest=1.0)  # openbox ends Alt+Tab at a release, and misses one that comes before its grab
    for symbol in reversed(symbols):
        desktop.display.key(symbol, down=False)


def _from_pointer(desktop: Desktop, across: int, down: int) -> tuple[int, int]:
    """Return the place at a distance from the pointer's, or the nearest one on the screen."""
    (x, y), (width, height) = desktop.display.pointer(), desktop.size
    return min(max(x + across, 0), width - 1), min(max(y + down, 0), height - 1)


def _drag(desktop: Desktop, path: Sequence[tuple[int, int]], number: int) -> None:
    """Press at the first point, pass the others in small steps, and release."""
    display = desktop.display
    display.button(number, down=True)
    display.sync()
    for (x0, y0), (x1, y1) in zip(path, path[1:], strict=False):
        for step in range(1, STEPS + 1):
            display.move(x0 + (x1 - x0) * step // STEPS, y0 + (y1 - y0) * step // STEPS)
            display.sync()
            desktop.display.wait_for_change(0.01)
    desktop.rest(longest=1.0)
    display.button(number, down=False)
