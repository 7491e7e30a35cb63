"""Visual search: the picture is shown shrunk; crops of the full picture reveal the letters on its tiles."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from lmgym.backends.drawing import HEIGHT, WIDTH, Box, Picture, resized
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.errors import InstanceError
from lmgym.tasks.visual_search import SPEC
from lmgym.tasks.visual_search.protocols import PROTOCOLS, Look, ParsedAction, distinct
from lmgym.tasks.visual_search.scene import (
    COLOURS,
    FEWEST,
    LETTERS,
    SHAPES,
    Scene,
    SceneLevel,
    Tile,
    as_seen,
    drawn,
    found,
    nearest,
)

STREAM = {"train": 71, "test": 72}
UNITS = {"pixels": "pixels of this picture", "thousand": "thousandths of its sides"}
FILES = {"tool": "prompt.md", "mgpo": "prompt_mgpo.md", "vigorl": "prompt_vigorl.md"}
HELP = {
    "tool": 'Answer with crop(x, y) or answer("A").',
    "mgpo": "That was no box: here is the whole picture. Which letter is it?",
    "vigorl": "Think in <think> and </think>, then call search_coordinate in <tool_call> or give an <answer>.",
}
ACCURACY, FORMAT, BONUS = 0.6, 0.4, 0.2  # ViGoRL's weights, and what each further place adds to its format
GREY = 128


class VisualSearch(TextEnv):
    """Find a tile in a shrunk picture, zoom in on it, and name its letter; the score is 1 for the right one."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        protocol: str = "tool",
        side: int = 1024,
        view: int = 64,
        cells: int = 2,
        margin: int = 0,
        least: int = 1,
        tiles: int = 2,
        colours: int = 2,
        shapes: int = 1,
        letters: int = 4,
        zoom: int = 8,
        crops: int = 3,
        coordinates: str = "pixels",
        most_format: float = 0.0,
        blank: bool = False,
        **common: Any,
    ) -> None:
        """Choose the protocol and the difficulty.

        Args:
            protocol: "tool" (crops and an answer as calls), "mgpo" (a box, then an answer) or "vigorl".
            side: pixels of the full picture's sides.
            view: pixels of the shown picture's sides; must divide `side`.
            cells: cells per side, each with at most one tile; must divide `view`.
            margin: pixels between a tile and the border of its cell, in the shown picture.
            least: minimum number of tiles.
            tiles: maximum number of tiles; no two have the same colour and shape.
            colours: number of colours of tiles, at most 8.
            shapes: number of shapes of tiles, at most 3; with one, the question names only a colour.
            letters: number of letters, at most 16; guessing succeeds once in so many.
            zoom: magnification of a crop at a point; must divide `side`.
            crops: maximum number of looks before an answer is required.
            coordinates: "pixels" of the shown picture or "thousand" for 0 to 1000.
            most_format: upper limit of ViGoRL's format reward; 0 for none, as released.
            blank: True shows grey pictures, to measure the score of guessing.
            common: options of every task: split, others, render_mode.
        """
        self.PICTURES = Images(view, view)  # type: ignore[misc]  # of this environment
        super().__init__(**common)
        self.check_choices(protocol=(protocol, PROTOCOLS), coordinates=(coordinates, UNITS))
        self.level = _checked(SceneLevel(side, view, cells, margin, least, tiles, colours, shapes, letters))
        if side % zoom or zoom < 2:
            raise InstanceError(f"zoom is 2 or more and divides side={side}; got {zoom}")
        self.protocol, self.zoom, self.crops, self.blank = protocol, zoom, crops, blank
        self.coordinates, self.most_format = coordinates, most_format
        self.prompt = Template(files(__package__).joinpath(FILES[protocol]).read_text(encoding="utf-8").strip())
        self.scene: Scene
        self.seen: list[tuple[Box, Picture]] = []  # crops: what of the whole picture, and how it was shown

    # the episode -----------------------------------------------------------------------------------------------

    def begin(self, index: int) -> Reply:
        """Show the picture of this instance."""
        self.scene = drawn(self.level, (STREAM[self.split], index))
        self.seen, self.first, self.formed = [], True, True
        self.points: list[tuple[float, ...]] = []  # where was looked, in pixels of the view
        self.view = self.scene.view()
        sizes = {"view": self.level.view, "side": self.level.side, "crops": self.crops}
        words = self.prompt.substitute(sizes, what=self._what(), units=UNITS[self.coordinates])
        return Reply(words, images=(self._shown(self.view),))

    def act(self, action: str) -> Reply:
        """Show a crop, or judge an answer."""
        meaning = PROTOCOLS[self.protocol](action, self.first)
        first, self.first = self.first, False
        if isinstance(meaning, ParsedAction):
            return self._end(meaning.words)
        box = self._box(meaning.where) if meaning is not None else None
        if self.protocol == "mgpo" and first:
            if box is not None:
                return Reply("This is your box. Which letter is it?", images=(self._look(box),))
            self.seen.append(((0, 0, self.level.side, self.level.side), self.view))
            return Reply(HELP["mgpo"], images=(self._shown(self.view),), valid=False)
        if meaning is None or box is None or len(self.seen) >= self.crops:
            self.formed = self.formed and meaning is not None
            return Reply(self._refusal(meaning, box), valid=False)
        place = self._pixels(meaning.where)
        on_view = not self.seen and len(place) == 2  # later pictures are crops, which places are not told in
        self.points.append(place)
        picture = self._look(box)
        words = f"Here it is, {self.zoom} times larger."
        if self.protocol == "vigorl":
            words = f"<observation>{words}{'' if self._left() else ' Give your <answer> now.'}</observation>"
        return Reply(words, images=(picture,), points=((place[0], place[1]),) if on_view else ())

    def answer(self) -> str:
        """Return the letter that is asked for."""
        return self.scene.tiles[0].letter

    # players ---------------------------------------------------------------------------------------------------

    def oracle(self) -> Iterator[str]:
        """Name the letter; MGPO's first turn needs a box."""
        if self.protocol == "mgpo" and self.first:
            yield self._write_look(self._spot(self.scene.tiles[0]))
        yield self._write_answer(self.answer())

    def demonstrator(self) -> Iterator[str]:
        """Find the tile by the pixels of the shrunk picture, zoom in, and read it by the pixels of the crop.

        What a picture does not tell, as when it is blank, is guessed: the first letter.
        """
        tile: Tile | None = None
        target = self.scene.tiles[0]
        for colour, shape, left, top in found(self.view, self.level):
            if (colour, shape) == (target.colour, target.shape):
                tile = tile or Tile(left, top, colour, shape, "")
        while True:
            inside = next((seen for seen in reversed(self.seen) if tile and self._holds(seen[0], tile)), None)
            if tile is None or self.blank or not (inside or self._left()):
                yield self._write_answer(LETTERS[0])
            elif inside is None:
                yield self._write_look(self._spot(tile))
            else:
                yield self._write_answer(self._read(*inside, tile))

    def pointing(self, x: float, y: float) -> str | None:
        """Return the look at a pixel of the first picture, or None if a crop is shown."""
        return None if self.seen else self._write_look((int(x), int(y)))

    def admissible(self) -> list[str]:
        """Return looks at the centre and the borders of cells, and every letter."""
        letters = [self._write_answer(letter) for letter in LETTERS[: self.level.letters]]
        if self.protocol == "mgpo" and not self.first:
            return letters
        half = max(1, self.level.cell // 2)
        spots = range(half, self.level.view, half)
        looks = [self._write_look((x, y)) for y in spots for x in spots] if self._left() else []
        return looks if self.protocol == "mgpo" else looks + letters

    # looking ---------------------------------------------------------------------------------------------------

    def _look(self, box: Box) -> Picture:
        """Store and return a crop of the full picture, as large as pictures are shown."""
        size = self.level.view
        part = self.scene.cut(box)
        self.seen.append((box, resized(part, (0, 0, part.shape[1], part.shape[0]), size, size)))
        return self._shown(self.seen[-1][1])

    def _shown(self, picture: Picture) -> Picture:
        return np.full_like(picture, GREY) if self.blank else picture

    def _pixels(self, numbers: tuple[float, ...]) -> tuple[float, ...]:
        """Return the policy's coordinates in pixels of the shown picture."""
        share = 1.0 if self.coordinates == "pixels" else self.level.view / 1000
        return tuple(number * share for number in numbers)

    def _box(self, where: tuple[float, ...]) -> Box | None:
        """Return the square of the full picture around a point or box, or None if it lies outside."""
        view, side = self.level.view, self.level.side
        numbers = self._pixels(where)
        if not all(0 <= number <= view for number in numbers):
            return None
        left, top, right, bottom = numbers if len(numbers) == 4 else (*numbers, *numbers)
        if right < left or bottom < top:
            return None
        least = side // self.zoom if len(numbers) == 2 else 2 * self.level.tile
        width = min(side, max(least, round(max(right - left, bottom - top) * self.level.block)))
        x, y = (round((low + high) / 2 * self.level.block) - width // 2 for low, high in ((left, right), (top, bottom)))
        x, y = (min(max(0, corner), side - width) for corner in (x, y))
        return x, y, x + width, y + width

    def _left(self) -> int:
        """Return the number of looks left."""
        return max(0, self.crops - len(self.seen)) if self.protocol != "mgpo" else int(self.first)

    def _refusal(self, meaning: Look | None, box: Box | None) -> str:
        if meaning is None:
            return HELP[self.protocol]
        if box is None:
            return f"The picture goes from 0 to {self.level.view if self.coordinates == 'pixels' else 1000}."
        return "You have looked often enough: answer."

    def _end(self, words: str) -> Reply:
        """Judge an answer; ViGoRL also rewards its format and the places looked at."""
        right = float(words.strip().strip(".").upper() == self.answer())
        if self.protocol != "vigorl":
            return Reply("Right." if right else "Wrong.", reward=right, done=True, score=right)
        form = 1 + BONUS * (distinct(self.points) - 1) if self.formed else 0.0
        form = min(form, self.most_format) if self.most_format else form
        terms = {"accuracy": ACCURACY * right, "format": FORMAT * form}
        return Reply("Right." if right else "Wrong.", reward=terms, done=True, score=right)

    # what players see and write --------------------------------------------------------------------------------

    def _what(self) -> str:
        tile = self.scene.tiles[0]
        return f"{tile.colour} {tile.shape if self.level.shapes > 1 else 'tile'}"

    def _middle(self, tile: Tile) -> tuple[int, int]:
        return tile.left + self.level.tile // 2, tile.top + self.level.tile // 2

    def _spot(self, tile: Tile) -> tuple[int, int]:
        """Return the centre of a tile's cell: close enough, and there are few such places."""
        x, y = (at // self.level.cell * self.level.cell + self.level.cell // 2 for at in self._middle(tile))
        return x, y

    def _holds(self, box: Box, tile: Tile) -> bool:
        """Return True if a tile's whole letter is in a crop that shows its dots."""
        (x, y), block = self._middle(tile), self.level.block
        wide, high = (WIDTH + 1) // 2 * block, (HEIGHT + 1) // 2 * block
        left, top, right, bottom = box
        across, down = left + wide <= x * block <= right - wide, top + high <= y * block <= bottom - high
        return across and down and (right - left) * 2 <= self.level.view * block

    def _read(self, box: Box, picture: Picture, tile: Tile) -> str:
        """Return the letter that makes a tile most like the crop."""
        left, top, right, _ = box
        place = (tile.left * self.level.block - left, tile.top * self.level.block - top)
        return LETTERS[nearest(picture, as_seen(self.level, tile.shape, tile.colour, place, right - left))]

    def _write_look(self, middle: tuple[int, int]) -> str:
        """Return a request for a crop in the protocol's format."""
        share = 1 if self.coordinates == "pixels" else 1000 / self.level.view
        if self.protocol == "mgpo":
            half = self.level.view // self.zoom // 2
            corners = (c + d for d in (-half, half) for c in middle)
            return f"[{','.join(str(round(min(max(0, c), self.level.view) * share)) for c in corners)}]"
        x, y = (round(c * share) for c in middle)
        if self.protocol == "tool":
            return f"crop({x},{y})"
        call = f'{{"name": "search_coordinate", "arguments": {{"coordinate": [{x}, {y}]}}}}'
        return f"<think>The {self._what()} is at ({x}, {y}).</think><tool_call>{call}</tool_call>"

    def _write_answer(self, letter: str) -> str:
        if self.protocol == "mgpo":
            return letter
        if self.protocol == "tool":
            return f'answer("{letter}")'
        return f"<think>The letter is {letter}.</think><answer>{letter}</answer>"


def _checked(level: SceneLevel) -> SceneLevel:
    """Return a level whose numbers fit each other."""
    if level.side % level.view or level.view % level.cells or level.block % 2:
        raise InstanceError(f"side must be an even multiple of view, and view one of cells; got {level}")
    if level.margin < 0 or level.tile < FEWEST:
        raise InstanceError(f"a tile takes {FEWEST} pixels of the view at least; got {level}")
    limits = {"colours": len(COLOURS), "shapes": len(SHAPES), "letters": len(LETTERS), "least": level.tiles}
    for name, most in limits.items():
        if not 1 <= getattr(level, name) <= most:
            raise InstanceError(f"{name} is 1 to {most}; got {getattr(level, name)}")
    return level
