"""Click target: an instruction, the picture of a screen, one point."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from lmgym.backends.drawing import Picture
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.errors import InstanceError
from lmgym.tasks.click_target import SPEC
from lmgym.tasks.click_target.points import Point, edges, pointed, within
from lmgym.tasks.click_target.screen import BAR, COLOURS, LEAST, TITLES, ScreenLevel, drawn

STREAM = {"train": 81, "test": 82}
PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
UNITS = {"pixels": "pixels", "thousand": "thousandths of the sides"}
GREY = 128
STEPS = 8  # places a side among which chance clicks
ROUND = 8  # pixels between the places that the oracle clicks first


class Pointing(TextEnv):
    """An instruction, a picture, and the box that a point must hit; subclasses provide them."""

    SPEC = SPEC

    def __init__(self, *, width: int, height: int, coordinates: str, blank: bool, **common: Any) -> None:
        self.PICTURES = Images(height, width)  # type: ignore[misc]  # of this environment
        super().__init__(**common)
        self.check_choices(coordinates=(coordinates, UNITS))
        self.coordinates, self.blank = coordinates, blank
        self.sides = (width, height)  # pixels of what may be clicked
        self.box = (0.0, 0.0, 0.0, 0.0)  # left, top, right, bottom, its edges inside; pixels of what is shown

    def show(self, picture: Picture, instruction: str, box: tuple[float, float, float, float]) -> Reply:
        """Open an episode with these."""
        self.box = box
        words = PROMPT.substitute(instruction=instruction, units=UNITS[self.coordinates])
        return Reply(words, images=(np.full_like(picture, GREY) if self.blank else picture,))

    def act(self, action: str) -> Reply:
        """Judge a click; an action that is no click is invalid, and wrong on the last turn."""
        point = pointed(action)
        if point is None or point != point:
            return Reply("Answer with click(x, y).", valid=False)
        place = self._pixels(point)
        hit = float(within(place, self.box))
        return Reply("Hit." if hit else "Missed.", reward=hit, done=True, score=hit, points=(place,))

    def oracle(self) -> Iterator[str]:
        """Click the centre of the target, which is visible to a policy too."""
        left, top, right, bottom = self.box
        yield self._write((left + right) / 2, (top + bottom) / 2)

    def pointing(self, x: float, y: float) -> str:
        """Return the click at a pixel."""
        return self._write(x, y)

    def admissible(self) -> list[str]:
        """Return clicks all over the picture."""
        shares = [(2 * step + 1) / (2 * STEPS) for step in range(STEPS)]
        return [self._write(x * self.sides[0], y * self.sides[1]) for y in shares for x in shares]

    def answer(self) -> str:
        """Return the box that must be hit, in pixels of what is shown."""
        return ",".join(f"{edge:g}" for edge in self.box)

    def _pixels(self, point: Point) -> Point:
        if self.coordinates == "pixels":
            return point
        return point[0] / 1000 * self.sides[0], point[1] / 1000 * self.sides[1]

    def _write(self, x: float, y: float) -> str:
        if self.coordinates == "thousand":
            x, y = x / self.sides[0] * 1000, y / self.sides[1] * 1000
        return f"click({int(x)},{int(y)})"


class ClickTarget(Pointing):
    """Click the element that an instruction names on a drawn screen; the score is 1 for a hit."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        width: int = 128,
        height: int = 128,
        windows: int = 1,
        least: int = 1,
        elements: int = 2,
        colours: int = 4,
        cell: int = 48,
        by: str = "colour",
        scale: int = 1,
        touch: bool = True,
        coordinates: str = "pixels",
        blank: bool = False,
        **common: Any,
    ) -> None:
        """Choose the screen and how points are told.

        Args:
            width: pixels of the screen.
            height: pixels of the screen.
            windows: number of windows, in rows of three.
            least: minimum number of elements in all windows.
            elements: maximum number of elements; with by="colour" at most the number of colours.
            colours: number of colours of elements, at most 8.
            cell: side of an element's slot in dots, at least 32.
            by: "colour" names elements by colour and kind, "name" by their label or icon, menus included.
            scale: pixels per dot of letters and icons.
            touch: True makes elements as large as possible, as on touch screens.
            coordinates: "pixels" or "thousand" for 0 to 1000.
            blank: True shows a grey picture, to measure the score of guessing.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(width=width, height=height, coordinates=coordinates, blank=blank, **common)
        self.level = _checked(ScreenLevel(width, height, windows, least, elements, colours, cell, by, scale, touch))

    def oracle(self) -> Iterator[str]:
        """Click the target near its centre, on the grid `ROUND` where that hits, so that few distinct points occur."""
        left, top, right, bottom = self.box
        middle = (left + right) / 2, (top + bottom) / 2
        near = self._write(round(middle[0] / ROUND) * ROUND, round(middle[1] / ROUND) * ROUND)
        point = pointed(near)
        yield near if point and within(self._pixels(point), self.box) else self._write(*middle)

    def begin(self, index: int) -> Reply:
        """Draw the screen of this instance."""
        screen = drawn(self.level, (STREAM[self.split], index))
        return self.show(screen.picture, screen.target.instruction(self.level.by), edges(screen.target.box))


def _checked(level: ScreenLevel) -> ScreenLevel:
    """Return a level whose numbers fit each other."""
    if level.by not in ("colour", "name"):
        raise InstanceError(f"by is colour or name; got {level.by!r}")
    limits = {"colours": len(COLOURS), "windows": len(TITLES), "elements": 500, "least": level.elements, "scale": 8}
    for name, most in limits.items():
        if not 1 <= getattr(level, name) <= most:
            raise InstanceError(f"{name} is 1 to {most}; got {getattr(level, name)}")
    across = min(3, level.windows)
    down = -(-level.windows // across)
    gaps = 4 * (level.windows > 1)
    wide, high = across * (level.cell + gaps) * level.scale, (BAR + down * (BAR + gaps + level.cell)) * level.scale
    if level.cell < LEAST:
        raise InstanceError(f"cell is {LEAST} or more; got {level.cell}")
    if level.width < wide or level.height < high:
        raise InstanceError(f"{level.windows} windows at scale {level.scale} take {wide} by {high} pixels; got {level}")
    return level
