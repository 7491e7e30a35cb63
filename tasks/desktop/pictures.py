"""Goals in the image viewer: look at pictures of a folder, copy and remove them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lmgym.backends.desktop.session import Launch
from lmgym.tasks.desktop.goals import Builder, DesktopGoal, content, editor, numbers, words
from lmgym.tasks.desktop.moves import HOME, SAVE, click, key, typed
from lmgym.tasks.desktop.office import Writer, picture, read_picture

Rng = np.random.Generator
FOLDER = "pictures"
COLORS = ("red", "green", "blue", "orange", "purple")
SIDES = range(160, 401, 8)  # pixels


def _pictures(rng: Rng) -> dict[str, tuple[int, int, str]]:
    """Return width, height and color of four pictures, by name in the order of the viewer."""
    sides = [SIDES[i] for i in numbers(rng, 8, 0, len(SIDES) - 1)]
    colors = [COLORS[i] for i in rng.permutation(len(COLORS))]
    return {name: (sides[n], sides[n + 4], colors[n]) for n, name in enumerate(sorted(words(rng, 4)))}


def _files(pictures: dict[str, tuple[int, int, str]]) -> dict[str, Writer]:
    return {f"{FOLDER}/{name}.png": picture(*look) for name, look in pictures.items()}


def _viewer(name: str) -> tuple[Launch, ...]:
    return (Launch("ristretto", (f"{FOLDER}/{name}.png",), f"{name}.png"),)


def copy_picture(rng: Rng) -> DesktopGoal:
    """Save a copy of a picture under another name."""
    pictures = _pictures(rng)
    names, copy = list(pictures), words(rng, 1)[0]
    place = int(rng.integers(1, 4))
    target = f"Documents/{copy}.png"

    def reached(home: Path) -> bool:
        wanted = read_picture(home / FOLDER / f"{names[place]}.png")
        return wanted is not None and read_picture(home / target) == wanted

    return DesktopGoal(
        text=f"The image viewer shows the pictures of a folder. Save a copy of {names[place]}.png as {target}.",
        files=_files(pictures),
        launches=_viewer(names[0]),
        plan=(key("page_down", place), key("ctrl+s"), key("ctrl+a"), typed(f"{HOME}/{target}\n")),
        reached=reached,
        changes=frozenset({target}),
    )


def remove_picture(rng: Rng) -> DesktopGoal:
    """Throw a picture away."""
    pictures = _pictures(rng)
    names = list(pictures)
    place = int(rng.integers(1, 4))
    removed = f"{FOLDER}/{names[place]}.png"
    return DesktopGoal(
        text=f"The image viewer shows the pictures of a folder. Delete {names[place]}.png.",
        files=_files(pictures),
        launches=_viewer(names[0]),
        plan=(key("page_down", place), key("delete"), click("OK")),
        reached=lambda home: not (home / removed).exists(),
        changes=frozenset({removed}),
    )


def picture_to_text(rng: Rng) -> DesktopGoal:
    """Write the size of a picture into a text."""
    pictures = _pictures(rng)
    name, (width, _, _) = next(iter(pictures.items()))
    return DesktopGoal(
        text=f"Write the width in pixels of the picture {name}.png, which is open, into the open answer.txt; save it.",
        files={**_files(pictures), "answer.txt": ""},
        launches=(*_viewer(name), *editor("answer.txt")),
        plan=(typed(str(width)), SAVE),
        reached=lambda home: (content(home / "answer.txt") or "").strip() == str(width),
        changes=frozenset({"answer.txt"}),
    )


FAMILIES: dict[Builder, int] = {remove_picture: 1, picture_to_text: 1, copy_picture: 2}
