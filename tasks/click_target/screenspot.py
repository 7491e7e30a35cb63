"""ScreenSpot's files: instructions with boxes, given as x, y, width, height (v1, v2) or as corners (Pro)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.backends.drawing import Picture, blank, resized
from lmgym.env.env import Reply
from lmgym.errors import InstanceError, MissingExtra
from lmgym.tasks.click_target import SCREENSPOT
from lmgym.tasks.click_target.env import GREY, Pointing

LAYOUTS = ("auto", "xywh", "xyxy")
CORNERS = ("img_size", "application")  # fields of Pro, whose boxes are corners
OVERHANG = 0.02  # share of a picture's sides by which a box may stick out
WHERE = "lmgym/ScreenSpot-v0 reads ScreenSpot's own files: set SCREENSPOT_DATA, or data=, to the folder that has them"


@dataclass(frozen=True)
class Task:
    """An instruction; the box by its corners in pixels of the screenshot, edges included."""

    picture: Path
    instruction: str
    box: tuple[float, float, float, float]
    kind: str  # "text" or "icon"
    title: str


def read(folder: Path, layout: str = "auto") -> list[Task]:
    """Return the tasks of all annotation files of a folder, or of its `annotations`, in the order of their names."""
    if layout not in LAYOUTS:
        raise InstanceError(f"boxes is one of {', '.join(LAYOUTS)}; got {layout!r}")
    home = folder / "annotations"
    paths = sorted((home if home.is_dir() else folder).glob("*.json"))
    tasks = [task for path in paths for task in _of_file(path, folder, layout)]
    if not tasks:
        raise InstanceError(f"{folder} has no annotations (*.json): {WHERE}")
    return tasks


def corners(box: Any, layout: str, where: str) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of a box as a file has it."""
    given = box if isinstance(box, list) else []
    numbers = [float(n) for n in given if type(n) in (int, float) and math.isfinite(n)]
    if len(numbers) != 4 or len(given) != 4:
        raise InstanceError(f"{where}: bbox must be four numbers; got {box!r}")
    x, y, third, fourth = numbers
    right, bottom = (third, fourth) if layout == "xyxy" else (x + third, y + fourth)
    if right <= x or bottom <= y:
        raise InstanceError(f"{where}: bbox {box!r} has no area as {layout}; boxes= says how they are told")
    return x, y, right, bottom


class ScreenSpot(Pointing):
    """ScreenSpot's own tasks; screenshots are scaled to fit, and coordinates refer to the scaled picture."""

    SPEC = SCREENSPOT

    def __init__(
        self,
        *,
        data: str | os.PathLike[str] | None = None,
        boxes: str = "auto",
        width: int = 1280,
        height: int = 1280,
        coordinates: str = "pixels",
        blank: bool = False,
        **common: Any,
    ) -> None:
        """Choose the files and how they are shown.

        Args:
            data: the folder with the annotations; None: that of SCREENSPOT_DATA.
            boxes: "xywh", "xyxy", or "auto" to go by the fields of each annotation.
            width: pixels of what is shown; what a screenshot leaves free is grey.
            height: pixels of the screen.
            coordinates: "pixels" of what is shown or "thousand" for 0 to 1000 of the screenshot's own sides.
            blank: whether the picture is grey.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(width=width, height=height, coordinates=coordinates, blank=blank, **common)
        folder = os.environ.get("SCREENSPOT_DATA") if data is None else data
        if not folder:
            raise InstanceError(WHERE)
        self.tasks = _read(str(folder), boxes)
        self.room = (width, height)  # for a screenshot

    def size(self) -> int:
        """Return the number of instructions."""
        return len(self.tasks)

    def title(self, index: int) -> str:
        """Return the picture's name and the instruction."""
        return self.tasks[index].title

    def index_of(self, title: str) -> int | None:
        """Return the index of the instance that has this title."""
        return next((i for i, task in enumerate(self.tasks) if task.title == title), None)

    def begin(self, index: int) -> Reply:
        """Show the screenshot of an instruction."""
        task = self.tasks[index]
        whole = _opened(task.picture)
        high, wide = whole.shape[:2]
        left, top, right, bottom = task.box
        if left < 0 or top < 0 or right > wide * (1 + OVERHANG) or bottom > high * (1 + OVERHANG):
            outside = f"box {task.box} is not within {wide} by {high} pixels"
            raise InstanceError(f"{task.title}: {outside}; boxes='xyxy' or 'xywh' says how boxes are told")
        share = min(self.room[0] / wide, self.room[1] / high, 1.0)
        self.sides = (max(1, int(wide * share)), max(1, int(high * share)))
        canvas = blank(self.room[1], self.room[0], (GREY, GREY, GREY))
        canvas[: self.sides[1], : self.sides[0]] = resized(whole, (0, 0, wide, high), self.sides[1], self.sides[0])
        return self.show(canvas, task.instruction, (left * share, top * share, right * share, bottom * share))


def _opened(path: Path) -> Picture:
    """Return the pixels of a file."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise MissingExtra("lmgym/ScreenSpot-v0 needs: pip install 'lmgym[web]'") from error
    try:
        with Image.open(path) as file:
            return np.array(file.convert("RGB"))
    except (OSError, UnidentifiedImageError) as error:
        raise InstanceError(f"{path} is no picture: {error}") from error


@lru_cache(maxsize=4)
def _read(folder: str, layout: str) -> list[Task]:
    return read(Path(folder), layout)


def _of_file(path: Path, folder: Path, layout: str) -> Iterator[Task]:
    try:
        records = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InstanceError(f"{path} cannot be read: {error}") from error
    if not isinstance(records, list):
        raise InstanceError(f"{path} must hold a list of annotations; got {type(records).__name__}")
    for number, record in enumerate(records):
        yield _task(record, folder, layout, f"{path.name}, annotation {number}")


def _task(record: Any, folder: Path, layout: str, where: str) -> Task:
    """Return the task of an annotation."""
    if not isinstance(record, Mapping):
        raise InstanceError(f"{where}: must be an object; got {type(record).__name__}")
    name, instruction = record.get("img_filename"), record.get("instruction")
    if not isinstance(name, str) or not name or not isinstance(instruction, str) or not instruction.strip():
        raise InstanceError(f"{where}: img_filename and instruction must be words; got {name!r} and {instruction!r}")
    if layout == "auto":
        layout = "xyxy" if any(field in record for field in CORNERS) else "xywh"
    kind = str(record.get("data_type", record.get("ui_type", "")))
    box = corners(record.get("bbox"), layout, where)
    return Task(_picture(folder, name, where), instruction.strip(), box, kind, f"{name}: {instruction.strip()} {box}")


def _picture(folder: Path, name: str, where: str) -> Path:
    """Return where a picture is; annotations are data, and a name that leads out of the folder is refused."""
    for home in (folder / "screenspot_imgs", folder / "images", folder):
        path = (home / name).resolve()
        if not path.is_relative_to(home.resolve()):
            raise InstanceError(f"{where}: {name!r} leads out of {folder}")
        if path.is_file():
            return path
    raise InstanceError(f"{where}: no picture {name!r} in {folder}, its screenspot_imgs or its images")
