"""Observations of a desktop: the accessibility tree as text, and set-of-marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lmgym.backends.desktop.display import AppWindow
from lmgym.backends.desktop.tree import LEAVES, ROLES, STRUCTURE, TreeNode

LONGEST = 300  # characters of an element's text
SCREENFUL = 4_000  # characters of a terminal's text, the last ones
MOST = 400  # elements of an observation
ACTIVE = 1 << 1
POPUPS = frozenset(map(ROLES.index, ("window", "popup-menu", "alert", "dialog", "notification")))
TERMINAL = ROLES.index("terminal")
MARKED = LEAVES | frozenset(
    map(ROLES.index, ("combo-box", "entry", "list-item", "menu", "page-tab", "table-cell", "text", "toggle-button"))
)
COLOURS = ("#d00000", "#0050c8", "#007a33", "#8a00b8", "#a85400", "#006d77")


def elements(roots: Sequence[TreeNode], size: tuple[int, int]) -> list[TreeNode]:
    """Return the nodes worth showing, in order: of the active window and of open menus, on the screen, with content.

    As in OSWorld, structure without a name or a text is left out.
    """
    windows = [window for root in roots for window in root.children]
    active = [window for window in windows if window.states & ACTIVE or window.kind in POPUPS] or windows
    chosen = [node for window in active for node in window.walk() if _worth_showing(node, size)]
    return chosen[:MOST]


def _worth_showing(node: TreeNode, size: tuple[int, int]) -> bool:
    left, top, width, height = node.box
    if width <= 0 or height <= 0 or left >= size[0] or top >= size[1] or left + width <= 0 or top + height <= 0:
        return False
    if node.kind in STRUCTURE:
        return False
    return bool(node.name.strip() or (node.text or "").strip() or node.kind in MARKED)


def describe(chosen: Iterable[TreeNode], *, numbered: bool = True, places: bool = True) -> str:
    """Return one line per element: number, role, name, text, the centre and the size of its box, states."""
    return "\n".join(_line(number, node, numbered, places) for number, node in enumerate(chosen))


def _line(number: int, node: TreeNode, numbered: bool, places: bool) -> str:
    x, y = node.centre
    text = node.text
    if node.kind == TERMINAL and text:
        text = text.rstrip()[-SCREENFUL:]
    elif text is not None and len(text) > LONGEST:
        text = f"{text[:LONGEST]}... ({len(text)} characters)"
    parts = [f"[{number}] {node.role}" if numbered else node.role]
    if node.name.strip():
        parts.append(repr(node.name.strip()))
    if text is not None and text.strip() != node.name.strip():
        parts.append(f"text={text!r}")
    if places:
        parts.append(f"at {x},{y} size {node.box[2]}x{node.box[3]}")
    return ", ".join([" ".join(parts), *node.state_names])


def window_list(windows: Sequence[AppWindow], focused: AppWindow | None) -> str:
    """Return the titles of the open windows, the focused one marked."""
    if not windows:
        return "Windows: none"
    return "Windows: " + "; ".join(
        f"{window.title}{' (focused)' if window == focused else ''}" for window in reversed(windows)
    )


def marked(picture: NDArray[np.uint8], chosen: Iterable[TreeNode]) -> NDArray[np.uint8]:
    """Return the picture with a frame and the number of each element that can be acted on."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    for number, node in enumerate(chosen):
        if node.kind not in MARKED:
            continue
        left, top, width, height = node.box
        colour = COLOURS[number % len(COLOURS)]
        draw.rectangle((left, top, left + width - 1, top + height - 1), outline=colour)
        box = draw.textbbox((left, top), str(number))
        draw.rectangle(box, fill=colour)
        draw.text((left, top), str(number), fill="white")
    return np.asarray(image, np.uint8)


def enlarged(picture: NDArray[np.uint8], first: Sequence[float], last: Sequence[float]) -> NDArray[np.uint8]:
    """Return the region of a picture between two corners, in the size of the whole."""
    from PIL import Image

    image = Image.fromarray(picture)
    box = (first[0], first[1], last[0], last[1])
    return np.asarray(image.resize(image.size, Image.Resampling.LANCZOS, box=box), np.uint8)
