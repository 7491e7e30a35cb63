"""Drawing in numpy: boxes, letters of five by seven dots, and resized crops.

All arithmetic is on integers, so that a picture has the same bytes on every machine. Drawing libraries change their
output between versions, and golden episodes hold digests of pictures.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]  # (height, width, 3)
Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels; the last two are outside
Colour = tuple[int, int, int]

WIDTH, HEIGHT = 5, 7  # dots of a letter
ADVANCE = WIDTH + 1  # dots from one letter to the next


@cache
def glyphs() -> dict[str, NDArray[np.bool_]]:
    """Return the dots (7, 5) of each character of the font."""
    blocks = files("lmgym.backends").joinpath("glyphs.txt").read_text(encoding="utf-8").split("\n\n")
    drawn = {}
    for name, *rows in map(str.split, blocks):
        drawn[name] = np.array([[dot == "#" for dot in row] for row in rows])
    return drawn


def blank(height: int, width: int, colour: Colour) -> Picture:
    """Return a picture filled with one colour."""
    picture = np.empty((height, width, 3), np.uint8)
    picture[:] = colour
    return picture


def fill(picture: Picture, box: Box, colour: Colour) -> None:
    """Fill a box."""
    left, top, right, bottom = box
    picture[top:bottom, left:right] = colour


def frame(picture: Picture, box: Box, colour: Colour, *, thick: int = 1) -> None:
    """Draw the border of a box, inside it, `thick` pixels wide."""
    left, top, right, bottom = box
    fill(picture, (left, top, right, top + thick), colour)
    fill(picture, (left, bottom - thick, right, bottom), colour)
    fill(picture, (left, top, left + thick, bottom), colour)
    fill(picture, (right - thick, top, right, bottom), colour)


def stamp(picture: Picture, left: int, top: int, dots: NDArray[np.bool_], colour: Colour, *, scale: int = 1) -> None:
    """Colour the dots of a mask, each `scale` pixels a side, clipped to the picture."""
    mask = dots.repeat(scale, 0).repeat(scale, 1)
    part = picture[top : top + len(mask), left : left + mask.shape[1]]
    part[mask[: len(part), : part.shape[1]]] = colour


def write(picture: Picture, left: int, top: int, text: str, colour: Colour, *, scale: int = 1) -> None:
    """Write words in capitals; leave unknown characters blank."""
    for place, letter in enumerate(text.upper()):
        if letter in glyphs():
            stamp(picture, left + place * ADVANCE * scale, top, glyphs()[letter], colour, scale=scale)


def width_of(text: str, *, scale: int = 1) -> int:
    """Return the width of words, in pixels."""
    return max(0, len(text) * ADVANCE - 1) * scale


def resized(picture: Picture, box: Box, height: int, width: int) -> Picture:
    """Return a crop at another size: area means where it shrinks, nearest pixels where it grows.

    Means are rounded down, so that areas of equal sums have exactly the same colour.
    """
    left, top, right, bottom = box
    part = picture[top:bottom, left:right]
    if part.shape[:2] == (height, width):
        return part.copy()
    areas = np.ones((1, 1, 1), np.int64)
    for axis, count in enumerate((height, width)):
        length = part.shape[axis]
        starts = np.arange(count) * length // count
        if length < count:
            part = part.take(starts, axis)
        elif length % count == 0:  # the same sums, in a few large additions
            step = length // count
            lines = [part[first::step] if axis == 0 else part[:, first::step] for first in range(step)]
            part = sum(lines[1:], start=lines[0].astype(np.uint32))
            areas = areas * step
        else:
            part = np.add.reduceat(part, starts, axis=axis, dtype=np.uint32)
            areas = areas * np.expand_dims(np.diff(starts, append=length), (1 - axis, 2))
    return (part // areas).astype(np.uint8)
