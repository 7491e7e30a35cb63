"""Scenes of coloured tiles with letters that vanish when the picture is shrunk.

A dot of a letter is as large as what becomes one pixel of the shrunk picture, and is drawn as a dark and a bright
stripe whose mean is the tile's colour (the vanishing letters of vision science). So the shrunk picture of a scene is
the same, bit for bit, whatever the letters are: nothing can be read from it, by anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lmgym.backends.drawing import HEIGHT, WIDTH, Box, Colour, Picture, glyphs, resized

COLOURS = {
    "red": (191, 70, 70),
    "blue": (70, 90, 191),
    "green": (70, 170, 80),
    "yellow": (191, 185, 64),
    "purple": (150, 70, 180),
    "orange": (191, 125, 64),
    "cyan": (70, 180, 185),
    "brown": (115, 85, 64),
}
SHAPES = ("square", "disc", "diamond")
LETTERS = "AXLTOEKZUPSHVCNJ"  # those that are drawn least alike come first
STRIPE = 60  # what a stripe is darker or brighter by; colours leave room for it
SHADES = (196, 222)  # of each channel of the paper: the darkest, and the first that is too bright
FEWEST = 12  # pixels that a tile takes when shrunk, for a letter to fit into a disc


@dataclass(frozen=True)
class SceneLevel:
    """The size of pictures and the number and kind of their tiles."""

    side: int  # pixels of the picture
    view: int  # pixels of the shrunk one
    cells: int  # a side is divided into, each with one tile at most
    margin: int  # pixels of a cell's side that its tile leaves free, shrunk
    least: int  # tiles
    tiles: int  # at most
    colours: int
    shapes: int
    letters: int

    @property
    def block(self) -> int:
        """Pixels of a side that become one pixel."""
        return self.side // self.view

    @property
    def cell(self) -> int:
        """Pixels of a cell's side, shrunk."""
        return self.view // self.cells

    @property
    def tile(self) -> int:
        """Pixels of a tile's side, shrunk."""
        return self.cell - self.margin


@dataclass(frozen=True)
class Tile:
    """A tile and its place, in pixels of the shrunk picture."""

    left: int
    top: int
    colour: str
    shape: str
    letter: str


@dataclass(frozen=True)
class Scene:
    """The tiles of a picture; the question is about the first."""

    level: SceneLevel
    tiles: tuple[Tile, ...]
    paper: tuple[tuple[Colour, ...], ...]  # of each cell

    def view(self) -> Picture:
        """Return the shrunk picture (view, view, 3); equal to the whole one, its blocks averaged."""
        level, size = self.level, self.level.tile
        canvas = np.array(self.paper).repeat(level.cell, 0).repeat(level.cell, 1)
        for tile in self.tiles:
            covered = coverage(tile.shape, size, level.block)[:, :, None]
            part = canvas[tile.top : tile.top + size, tile.left : tile.left + size]
            part[:] = (part * (level.block**2 - covered) + np.array(COLOURS[tile.colour]) * covered) // level.block**2
        return canvas.astype(np.uint8)

    def cut(self, box: Box) -> Picture:
        """Return a box of the full picture, pixel for pixel."""
        left, top, right, bottom = box
        level = self.level
        width = level.cell * level.block
        canvas = np.empty((bottom - top, right - left, 3), np.uint8)
        for row in range(top // width, -(-bottom // width)):
            for column in range(left // width, -(-right // width)):
                x, y = column * width - left, row * width - top
                canvas[max(0, y) : y + width, max(0, x) : x + width] = self.paper[row][column]
        for tile in self.tiles:
            mask, whole = patch(tile.shape, tile.colour, tile.letter, level.tile, level.block)
            _paste(canvas, mask, whole, (tile.left * level.block - left, tile.top * level.block - top))
        return canvas


@lru_cache(maxsize=64)
def outline(shape: str, size: int) -> NDArray[np.bool_]:
    """Return the mask of a shape of `size` pixels a side; (size, size)."""
    middle = np.abs(2 * np.arange(size) + 1 - size)  # twice the distance from the middle
    down, across = middle[:, None], middle[None]
    inside: dict[str, NDArray[np.bool_]] = {
        "square": np.ones((size, size), bool),
        "disc": down**2 + across**2 <= size**2,
        "diamond": down + across <= size * 5 // 4,
    }
    return inside[shape]


@lru_cache(maxsize=64)
def coverage(shape: str, size: int, block: int) -> NDArray[np.int64]:
    """Return how many pixels of each block a tile of `size` blocks a side covers; (size, size)."""
    counts: NDArray[np.int64] = outline(shape, size * block).reshape(size, block, size, block).sum((1, 3))
    return counts


@lru_cache(maxsize=1024)
def patch(shape: str, colour: str, letter: str, size: int, block: int) -> tuple[NDArray[np.bool_], Picture]:
    """Return the mask of a tile of `size` blocks a side, and its full picture."""
    dots = np.zeros((size, size), bool)
    top, left = (size - HEIGHT) // 2, (size - WIDTH) // 2
    dots[top : top + HEIGHT, left : left + WIDTH] = glyphs()[letter]
    stripes = np.where(np.arange(size * block) % block < block // 2, -STRIPE, STRIPE)
    ink = dots.repeat(block, 0).repeat(block, 1) * stripes
    return outline(shape, size * block), (np.array(COLOURS[colour]) + ink[:, :, None]).astype(np.uint8)


@lru_cache(maxsize=256)  # the tries of a group open the same instance
def drawn(level: SceneLevel, seed: tuple[int, ...]) -> Scene:
    """Draw a scene in which no two tiles share colour and shape; colours differ first."""
    chance = np.random.default_rng(seed)
    most = min(level.tiles, level.cells**2, level.colours * level.shapes)
    count = int(chance.integers(min(level.least, most), most + 1))
    places = chance.choice(level.cells**2, size=count, replace=False)
    kinds = chance.choice(level.colours * level.shapes, size=count, replace=False)
    letters = chance.integers(level.letters, size=count)
    room = level.cell - level.tile + 1
    jitter = chance.integers(room, size=(count, 2))
    names = list(COLOURS)
    tiles = [
        Tile(
            left=int(place % level.cells * level.cell + dx),
            top=int(place // level.cells * level.cell + dy),
            colour=names[kind % level.colours],
            shape=SHAPES[kind // level.colours],
            letter=LETTERS[letter],
        )
        for place, kind, letter, (dx, dy) in zip(places, kinds, letters, jitter, strict=True)
    ]
    paper = chance.integers(*SHADES, size=(level.cells, level.cells, 3)).tolist()
    return Scene(level, tuple(tiles), tuple(tuple(map(tuple, row)) for row in paper))


def found(view: Picture, level: SceneLevel) -> list[tuple[str, str, int, int]]:
    """Find the tiles in a shrunk picture, by their pixels alone: colour, shape, left and top of each."""
    cores = [(shape, *_core(shape, level.tile, level.block)) for shape in SHAPES[: level.shapes]]
    seen = []
    for colour in list(COLOURS)[: level.colours]:
        mask = (view == np.array(COLOURS[colour], np.uint8)).all(2)
        while mask.any():
            top, first = divmod(int(mask.argmax()), mask.shape[1])
            for shape, core, x, y in cores:
                left = first - int(core[0].argmax())
                part = mask[top : top + len(core), max(0, left) : left + core.shape[1]]
                if part.shape == core.shape and (part == core).all():
                    seen.append((colour, shape, left - x, top - y))
                    part[:] = False
                    break
            mask[top, first] = False
    return seen


@lru_cache(maxsize=64)
def _core(shape: str, size: int, block: int) -> tuple[NDArray[np.bool_], int, int]:
    """Return the mask of pixels of a shrunk shape that have its pure colour, cropped, and its left and top."""
    whole = coverage(shape, size, block) == block**2
    rows, columns = whole.any(1).nonzero()[0], whole.any(0).nonzero()[0]
    left, top = int(columns[0]), int(rows[0])
    return whole[top : rows[-1] + 1, left : columns[-1] + 1], left, top


@lru_cache(maxsize=256)
def as_seen(level: SceneLevel, shape: str, colour: str, place: tuple[int, int], width: int) -> list[Picture]:
    """Return a tile's appearance with each letter in a crop of `width` pixels; its corner is at `place`.

    What else is in the crop is left black: to tell letters apart it makes no difference.
    """
    seen = []
    for letter in LETTERS[: level.letters]:
        mask, whole = patch(shape, colour, letter, level.tile, level.block)
        canvas = np.zeros((width, width, 3), np.uint8)
        _paste(canvas, mask, whole, place)
        seen.append(resized(canvas, (0, 0, width, width), level.view, level.view))
    return seen


def _paste(canvas: Picture, mask: NDArray[np.bool_], whole: Picture, place: tuple[int, int]) -> None:
    """Paste the masked part of `whole` onto a canvas, clipped; `place` is left and top."""
    x, y = place
    inside = (slice(max(0, y), max(0, y + len(mask))), slice(max(0, x), max(0, x + len(mask))))
    part = canvas[inside]
    own = (slice(max(0, -y), max(0, -y) + part.shape[0]), slice(max(0, -x), max(0, -x) + part.shape[1]))
    np.copyto(part, whole[own], where=mask[own][:, :, None])


def nearest(picture: Picture, candidates: Sequence[Picture]) -> int:
    """Return the picture most similar to another, the first of equals."""
    return int(np.argmin([np.abs(picture.astype(int) - other).sum() for other in candidates]))
