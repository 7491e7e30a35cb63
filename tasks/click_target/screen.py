"""Pictures of screens: a menu bar, windows with titles, and elements in the windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from lmgym.backends.drawing import Box, Colour, Picture, blank, fill, frame, stamp, width_of, write

COLOURS: dict[str, Colour] = {
    "red": (220, 60, 50),
    "blue": (50, 90, 220),
    "green": (50, 170, 80),
    "yellow": (240, 215, 60),
    "purple": (150, 60, 190),
    "orange": (245, 140, 40),
    "cyan": (60, 200, 215),
    "pink": (240, 130, 190),
}
KINDS = ("button", "icon", "field", "box")
ICONS = ("save", "trash", "search", "play", "home", "mail", "plus", "lock")
LABELS = (
    "OK",
    "SEND",
    "COPY",
    "NEXT",
    "BACK",
    "STOP",
    "OPEN",
    "UNDO",
    "HELP",
    "QUIT",
    "SORT",
    "FIND",
    "SAVE",
    "PLAY",
)
CAPTIONS = ("NAME", "CITY", "DATE", "MAIL", "CODE", "TIME", "NOTE", "SIZE", "TAX", "UNIT", "ZIP", "AGE")
TICKS = ("WIFI", "BEEP", "DARK", "SYNC", "GRID", "ZOOM", "MUTE", "LOOP", "PIN", "AUTO", "LOG", "BETA")
MENUS = ("FILE", "EDIT", "VIEW", "TOOLS", "PAGE", "GO")
TITLES = ("NOTES", "CHAT", "MAPS", "PHOTOS", "MUSIC", "CLOCK", "TASKS", "SHOP", "NEWS", "BANK")
INK, DESK, EDGE = (40, 40, 45), (150, 165, 180), (120, 120, 128)
TITLE, WHITE = (205, 212, 222), (255, 255, 255)
PAPER = (226, 250)  # of each channel of a screen's paper: the darkest, and the first that is too bright
BAR = 16  # dots of a menu bar or of a title, of which words take SIDE
RIM = 2  # dots of a field's border
PAD = 4  # dots above the words of a bar
LEAST = 32  # dots of a room's sides: words of four letters and a margin
MARGIN = 2  # dots between an element and the border of its room, at least
SPARE = 6  # dots more that it may leave on each side, where the room is for fingers
TICK = 9  # dots of a box's sides
ICON = 11  # dots of an icon's sides, its rim included
SIDE = 7  # dots of letters' height, and of icons within their rims


@dataclass(frozen=True)
class ScreenLevel:
    """The size of a screen and the number and kind of its elements."""

    width: int  # pixels
    height: int
    windows: int
    least: int  # elements in windows
    elements: int  # maximum number of elements
    colours: int
    cell: int  # dots of the room that an element has, at least
    by: str  # what instructions name: "colour" or "name"
    scale: int  # pixels of a dot's sides
    touch: bool  # elements are as large as the room they have


@dataclass(frozen=True)
class ScreenElement:
    """A clickable element: kind, label, colour, and box, borders included."""

    kind: str
    name: str
    colour: str
    window: str
    box: Box  # left, top, right, bottom in pixels; the last two are outside

    def instruction(self, by: str) -> str:
        """Return what asks for a click on it."""
        if self.kind == "menu":
            return f"Click the menu {self.name}."
        if self.kind == "close":
            return f"Close the window {self.name}."
        if by == "colour":
            return f"Click the {self.colour} {self.kind}."
        what = f"{self.name} {self.kind}" if self.kind == "icon" else f"{self.kind} {self.name}"
        return f"Click the {what} of {self.window}."


@dataclass(frozen=True)
class Screen:
    """A picture, its elements, and the target among them."""

    picture: Picture
    elements: tuple[ScreenElement, ...]
    target: ScreenElement


@lru_cache(maxsize=64)  # the tries of a group open the same instance
def drawn(level: ScreenLevel, seed: tuple[int, ...]) -> Screen:
    """Draw a screen on which no two elements match the same instruction."""
    chance = np.random.default_rng(seed)
    picture = blank(level.height, level.width, DESK)
    red, green, blue = chance.integers(*PAPER, size=3).tolist()
    paper = (red, green, blue)
    elements = list(_menus(level, chance, picture, paper))
    titles = chance.permutation(TITLES)[: level.windows].tolist()
    rooms: list[tuple[str, Box]] = []
    for title, box in zip(titles, _places(level), strict=True):
        elements.append(_window(picture, box, title, paper, level.scale))
        inner = (box[0], box[1] + BAR * level.scale, box[2], box[3])
        rooms += [(title, room) for room in _rooms(inner, level.cell * level.scale)]
    most = min(level.elements, len(rooms), level.colours if level.by == "colour" else level.elements)
    count = int(chance.integers(min(level.least, most), most + 1))
    chosen = chance.choice(len(rooms), size=count, replace=False)
    inside = list(_inside(level, chance, [rooms[i] for i in chosen]))
    for element in inside:
        _draw(picture, element, level)
    elements += inside
    targets = inside if level.by == "colour" else elements
    return Screen(picture, tuple(elements), targets[int(chance.integers(len(targets)))])


def _menus(level: ScreenLevel, chance: Generator, picture: Picture, paper: Colour) -> Iterator[ScreenElement]:
    """Draw the menu bar."""
    scale, left = level.scale, 2 * level.scale
    fill(picture, (0, 0, level.width, BAR * scale), paper)
    for name in chance.permutation(MENUS)[: 3 if level.width < 200 * scale else 5].tolist():
        right = left + width_of(name, scale=scale) + 4 * scale
        write(picture, left + 2 * scale, PAD * scale, name, INK, scale=scale)
        yield ScreenElement("menu", name, "", "", (left, 0, right, BAR * scale))
        left = right + 4 * scale


def _places(level: ScreenLevel) -> list[Box]:
    """Return the boxes of windows: rows of three at most, below the menu bar."""
    across = min(3, level.windows)
    down = -(-level.windows // across)
    top, gap = BAR * level.scale, 2 * level.scale * (level.windows > 1)
    wide, high = level.width // across, (level.height - top) // down
    return [
        (x * wide + gap, top + y * high + gap, (x + 1) * wide - gap, top + (y + 1) * high - gap)
        for y in range(down)
        for x in range(across)
    ][: level.windows]


def _window(picture: Picture, box: Box, title: str, paper: Colour, scale: int) -> ScreenElement:
    """Draw a window and return the icon that closes it."""
    left, top, right, _ = box
    fill(picture, box, paper)
    fill(picture, (left, top, right, top + BAR * scale), TITLE)
    frame(picture, box, EDGE, thick=max(1, scale // 2))
    write(picture, left + 4 * scale, top + PAD * scale, title, INK, scale=scale)
    close = (right - (TICK + 4) * scale, top + 3 * scale, right - 4 * scale, top + (TICK + 3) * scale)
    frame(picture, close, EDGE, thick=scale)
    write(picture, close[0] + 2 * scale, close[1] + scale, "X", INK, scale=scale)
    return ScreenElement("close", title, "", title, close)


def _rooms(box: Box, cell: int) -> list[Box]:
    """Return the slots for elements in a box, at least `cell` pixels a side."""
    left, top, right, bottom = box
    across, down = (right - left) // cell, (bottom - top) // cell
    wide, high = (right - left) // across, (bottom - top) // down
    return [
        (left + x * wide, top + y * high, left + (x + 1) * wide, top + (y + 1) * high)
        for y in range(down)
        for x in range(across)
    ]


def _inside(level: ScreenLevel, chance: Generator, rooms: list[tuple[str, Box]]) -> Iterator[ScreenElement]:
    """Choose the elements of the slots, without repeating colours while others are left, or names in a window."""
    names = {"button": LABELS, "icon": ICONS, "field": CAPTIONS, "box": TICKS}
    colours = chance.permutation(list(COLOURS)[: level.colours]).tolist()
    taken: set[tuple[str, str, str]] = set()
    for number, (window, room) in enumerate(rooms):
        kinds = [kind for kind in KINDS if any((kind, name, window) not in taken for name in names[kind])]
        if not kinds:
            continue
        kind = kinds[int(chance.integers(len(kinds)))]
        free = [name for name in names[kind] if (kind, name, window) not in taken]
        name = free[int(chance.integers(len(free)))]
        taken.add((kind, name, window))
        box = _sized(level, kind, name, room, chance)
        yield ScreenElement(kind, name, colours[number % len(colours)], window, box)


def _sized(level: ScreenLevel, kind: str, name: str, room: Box, chance: Generator) -> Box:
    """Return the box of an element: most of its room, or as much as it needs, somewhere in it."""
    scale = level.scale
    left, top, right, bottom = (edge + way * MARGIN * scale for edge, way in zip(room, (1, 1, -1, -1), strict=True))
    if level.touch:
        words = ICON if kind == "icon" else width_of(name)
        free = ((right - left) // scale - words - 4, (bottom - top) // scale - ICON - 4)
        spare = max(0, min(SPARE, *(dots // 2 for dots in free)))
        inset = (chance.integers(spare + 1, size=4) * scale).tolist()
        return left + inset[0], top + inset[1], right - inset[2], bottom - inset[3]
    wide = ICON if kind == "icon" else width_of(name) + 4 * (kind != "box")
    high = {"icon": ICON, "box": TICK + 2 + SIDE}.get(kind, BAR)  # a box stands above its caption
    wide, high = wide * scale, high * scale
    x, y = left + int(chance.integers(right - left - wide + 1)), top + int(chance.integers(bottom - top - high + 1))
    return (x, y, x + TICK * scale, y + TICK * scale) if kind == "box" else (x, y, x + wide, y + high)


def _draw(picture: Picture, element: ScreenElement, level: ScreenLevel) -> None:
    """Draw an element that stands in a window, its words or its icon in the middle."""
    field, box, scale = element.kind == "field", element.kind == "box", level.scale
    colour = COLOURS[element.colour]
    fill(picture, element.box, WHITE if field else colour)
    frame(picture, element.box, colour if field else INK, thick=RIM * scale if field else max(1, scale // 2))
    words = "X" if box and not level.touch else element.name
    wide = SIDE * scale if element.kind == "icon" else width_of(words, scale=scale)
    left, top, right, bottom = element.box
    x, y = (left + right - wide + 1) // 2, (top + bottom - SIDE * scale + 1) // 2
    if element.kind == "icon":
        stamp(picture, x, y, icons()[element.name], INK, scale=scale)
    else:
        write(picture, x, y, words, EDGE if field else WHITE if box else INK, scale=scale)
    if box and not level.touch:
        write(picture, left, bottom + 2 * scale, element.name, INK, scale=scale)


@cache
def icons() -> dict[str, NDArray[np.bool_]]:
    """Return the dots (7, 7) of every icon."""
    text = files("lmgym.tasks.click_target").joinpath("icons.txt").read_text(encoding="utf-8")
    blocks = [block.split() for block in text.split("\n\n")]
    return {name: np.array([[dot == "#" for dot in row] for row in rows]) for name, *rows in blocks}
