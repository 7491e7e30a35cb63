"""Corrections of the boxes that LibreOffice reports.

What LibreOffice draws itself is reported as if its window had no menu bar: too high by the height of the bar. What GTK
draws, around it and within it, is right. A node of role root-pane starts what LibreOffice draws; a child that repeats
its parent's box, lower by the bar's height, starts what GTK draws.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmgym.backends.desktop.tree import ROLES, TreeNode

ROOT_PANE, MENU_BAR = ROLES.index("root-pane"), ROLES.index("menu-bar")


def placed(roots: Sequence[TreeNode]) -> list[TreeNode]:
    """Return the applications with all boxes in pixels of the screen."""
    for root in roots:
        for child in root.children:
            _place(child, child.box, 0)
    return list(roots)


def _place(node: TreeNode, reported: tuple[int, int, int, int], shift: int) -> None:
    """Move the boxes below `node`, whose box was `reported`, by `shift` pixels down."""
    for child in list(node.children):
        left, top, width, height = box = child.box
        moved = shift
        if child.kind == ROOT_PANE:
            moved = node.box[1] - top if node.box[1] > top else 0
        elif shift and box == (reported[0], reported[1] + shift, *reported[2:]):
            moved = 0
        if shift and child.kind == MENU_BAR and not height:
            node.children.remove(child)  # LibreOffice's copy of GTK's menu bar
            continue
        child.box = (left, top + moved, width, height)
        _place(child, box, moved)
