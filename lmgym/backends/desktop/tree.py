"""The accessibility tree of a desktop, read over AT-SPI's bus, as the elements that are on the screen.

Only what shows is read: an application's closed menus and hidden pages have thousands of nodes. A table that manages
its descendants (a spreadsheet has 2**31 cells) is never listed; its cells are read between the corners of its box.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmgym.backends.desktop.bus import Bus, BusCall
from lmgym.errors import BackendError

ATSPI = "org.a11y.atspi."
ACCESSIBLE = ATSPI + "Accessible"
NOTHING = "/org/a11y/atspi/null"
ROOT = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
STATES = {  # bits of the state set that observations name
    1: "active",
    4: "checked",
    5: "collapsed",
    10: "expanded",
    12: "focused",
    16: "modal",
    20: "pressed",
    23: "selected",
}
EDITABLE, ENABLED, FOCUSABLE, SENSITIVE, SHOWING, MANAGES = (1 << bit for bit in (7, 8, 11, 24, 25, 31))
STATE, ROLE, TEXT = ("Accessible", "GetState"), ("Accessible", "GetRole"), ("Text", "GetText", "ii", 0, -1)  # calls
LIMIT = 400  # children of a node that are read
DEEPEST = 40
ROWS, COLUMNS = 60, 30  # of a large table that are read
# AT-SPI's roles in the order of their numbers (atspi-constants.h)
_ROLES = """
invalid accelerator-label alert animation arrow calendar canvas check-box check-menu-item color-chooser
column-header combo-box date-editor desktop-icon desktop-frame dial dialog directory-pane drawing-area
file-chooser filler focus-traversable font-chooser frame glass-pane html-container icon image internal-frame
label layered-pane list list-item menu menu-bar menu-item option-pane page-tab page-tab-list panel password-text
popup-menu progress-bar push-button radio-button radio-menu-item root-pane row-header scroll-bar scroll-pane
separator slider spin-button split-pane status-bar table table-cell table-column-header table-row-header
tearoff-menu-item terminal text toggle-button tool-bar tool-tip tree tree-table unknown viewport window extended
header footer paragraph ruler application autocomplete editbar embedded entry chart caption document-frame
heading page section redundant-object form link input-method-window table-row tree-item document-spreadsheet
document-presentation document-text document-web document-email comment list-box grouping image-map notification
info-bar level-bar title-bar block-quote audio video definition article landmark log marquee math rating timer
static
"""
ROLES = tuple(_ROLES.split())


def _numbers(*roles: str) -> frozenset[int]:
    return frozenset(map(ROLES.index, roles))


STRUCTURE = _numbers("drawing-area", "filler", "panel", "scroll-pane", "separator", "split-pane", "viewport", "section")
LEAVES = _numbers(
    *("check-box", "check-menu-item", "image", "label", "menu-item", "push-button", "radio-button", "radio-menu-item"),
    *("scroll-bar", "separator", "slider", "spin-button"),
)
TEXTS = _numbers(
    *("combo-box", "editbar", "entry", "heading", "label", "paragraph", "password-text", "spin-button", "static"),
    *("table-cell", "terminal", "text", "caption", "comment", "page", "list-item"),
)
TABLE, CELL = ROLES.index("table"), ROLES.index("table-cell")
Reference = tuple[str, str]  # service and object path


@dataclass
class TreeNode:
    """A node of the tree; the box is (left, top, width, height) on the screen, in pixels."""

    reference: Reference
    depth: int
    parent: TreeNode | None
    states: int = 0
    kind: int = 0  # number of the role
    role: str = ""
    name: str = ""
    text: str | None = None  # contents, of a node that has text
    box: tuple[int, int, int, int] = (0, 0, 0, 0)
    children: list[TreeNode] = field(default_factory=list)

    @property
    def centre(self) -> tuple[int, int]:
        """The middle of the box."""
        left, top, width, height = self.box
        return left + width // 2, top + height // 2

    @property
    def state_names(self) -> list[str]:
        """The states worth telling."""
        names = [name for bit, name in STATES.items() if self.states >> bit & 1]
        return names if self.states & SENSITIVE or self.kind in TEXTS else [*names, "disabled"]

    def call(self, interface: str, method: str, signature: str | None = None, *body: Any) -> BusCall:
        """Return the call of a method of one of AT-SPI's interfaces."""
        return BusCall(*self.reference, ATSPI + interface, method, signature, body)

    def get(self, name: str) -> BusCall:
        """Return the call that reads a property."""
        return BusCall(*self.reference, "org.freedesktop.DBus.Properties", "Get", "ss", (ACCESSIBLE, name))

    def walk(self) -> Iterator[TreeNode]:
        """Yield the node and all below it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()


class AccessibilityBus:
    """The accessibility bus of one desktop."""

    def __init__(self, session_bus: Path, runtime: Path, inside: str) -> None:
        """Connect; `inside` is the path by which the sandbox names `runtime`."""
        session = Bus(session_bus)
        answer = session.call(BusCall("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress"))
        session.close()
        if answer is None:
            raise BackendError("the desktop has no accessibility bus")
        path = str(answer[0]).partition("unix:path=")[2].partition(",")[0]
        self.socket = runtime / Path(path).relative_to(inside)
        self._bus = Bus(self.socket)

    def close(self) -> None:
        """Close the connection."""
        self._bus.close()

    def responsive(self) -> bool:
        """Return True when every application answers: each has handled the events before this call."""
        return all(answer is not None for answer in self._bus.calls([_children(ref) for ref in self._applications()]))

    def _applications(self) -> list[Reference]:
        answer = self._bus.call(_children(ROOT))
        return [] if answer is None else [(service, path) for service, path in answer[0]]

    def read(self) -> list[TreeNode]:
        """Return the applications with all that they show."""
        roots = [TreeNode(reference, 0, None) for reference in self._applications()]
        level, depth = roots, 0
        while level and depth < DEEPEST:
            level, depth = self._describe(level), depth + 1
        return [root for root in roots if root.children]

    def _describe(self, level: Sequence[TreeNode]) -> list[TreeNode]:
        """Read a level's nodes, drop those that do not show, and return the nodes below."""
        answers = iter(self._bus.calls([call for node in level for call in (node.call(*STATE), node.call(*ROLE))]))
        showing = []
        for node in level:
            state, role = next(answers), next(answers)
            if state is None or role is None:
                continue
            low, high = state[0]
            node.states, node.kind = low | high << 32, int(role[0])
            node.role = ROLES[node.kind] if node.kind < len(ROLES) else "unknown"
            if node.parent is None or node.states & SHOWING:
                showing.append(node)
                if node.parent is not None:
                    node.parent.children.append(node)
        self._details(showing)
        return self._below([node for node in showing if node.kind not in LEAVES])

    def _details(self, nodes: Sequence[TreeNode]) -> None:
        """Read names, boxes and texts of the nodes that observations show."""
        named = [node for node in nodes if node.parent is not None]
        self._names_and_boxes(named)
        texts = [node for node in named if node.kind in TEXTS]
        faces = self._bus.calls([node.call("Accessible", "GetInterfaces") for node in texts])
        texts = [node for node, face in zip(texts, faces, strict=True) if face and ATSPI + "Text" in face[0]]
        for node, text in zip(texts, self._bus.calls([node.call(*TEXT) for node in texts]), strict=True):
            node.text = str(text[0]) if text else None

    def _below(self, nodes: Sequence[TreeNode]) -> list[TreeNode]:
        managing = [node for node in nodes if node.states & MANAGES]
        counts = self._bus.calls([node.get("ChildCount") for node in managing])
        large = [node for node, count in zip(managing, counts, strict=True) if not count or count[0][1] > LIMIT]
        plain = [node for node in nodes if all(node is not other for other in large)]
        below = []
        for node, answer in zip(plain, self._bus.calls([_children(node.reference) for node in plain]), strict=True):
            for service, path in (answer[0] if answer else ())[:LIMIT]:
                if path != NOTHING:
                    below.append(TreeNode((service, path), node.depth + 1, node))
        for node in large:
            if node.kind == TABLE:
                self._cells(node)
        return below

    def _cells(self, table: TreeNode) -> None:
        """Read the cells of a large table that hold text or the focus, between the corners of its box."""
        left, top, width, height = table.box
        first, last = (
            self._cell_at(table, x, y) for x, y in ((left + 3, top + 3), (left + width - 3, top + height - 3))
        )
        if first is None or last is None:
            return
        places = itertools.product(
            range(first[0], min(last[0], first[0] + ROWS) + 1), range(first[1], min(last[1], first[1] + COLUMNS) + 1)
        )
        cells = self._bus.calls([table.call("Table", "GetAccessibleAt", "ii", *place) for place in places])
        nodes = [TreeNode(cell[0], table.depth + 1, table, kind=CELL, role=ROLES[CELL]) for cell in cells if cell]
        answers = iter(self._bus.calls([call for node in nodes for call in (node.call(*STATE), node.call(*TEXT))]))
        for node in nodes:
            state, text = next(answers), next(answers)
            node.states = state[0][0] | state[0][1] << 32 if state else 0
            node.text = str(text[0]) if text else ""
        kept = [node for node in nodes if node.text or node.states >> 12 & 1]
        self._names_and_boxes(kept)
        table.children += kept

    def _cell_at(self, table: TreeNode, x: int, y: int) -> tuple[int, int] | None:
        """Return the row and the column of the cell at a point of the screen."""
        cell = self._bus.call(table.call("Component", "GetAccessibleAtPoint", "iiu", x, y, 0))
        if cell is None or cell[0][1] == NOTHING:
            return None
        index = self._bus.call(BusCall(cell[0][0], cell[0][1], ACCESSIBLE, "GetIndexInParent"))
        if index is None:
            return None
        row, column = self._bus.calls(
            [table.call("Table", method, "i", int(index[0])) for method in ("GetRowAtIndex", "GetColumnAtIndex")]
        )
        return (int(row[0]), int(column[0])) if row and column and min(row[0], column[0]) >= 0 else None

    def _names_and_boxes(self, nodes: Sequence[TreeNode]) -> None:
        calls = [call for node in nodes for call in (node.get("Name"), node.call("Component", "GetExtents", "u", 0))]
        answers = iter(self._bus.calls(calls))
        for node in nodes:
            name, box = next(answers), next(answers)
            node.name, node.box = str(name[0][1]) if name else "", tuple(box[0]) if box else (0, 0, 0, 0)


def _children(reference: Reference) -> BusCall:
    return BusCall(*reference, ACCESSIBLE, "GetChildren")
