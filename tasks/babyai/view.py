"""The view of the agent, from its own place: things by right and front offsets, paths among them, and the text."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT

STATES = ("open", "closed", "locked")
HEADINGS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # ahead, right, back, left
LEFT, RIGHT, FORWARD = "turn left", "turn right", "move forward"
THINGS = ("door", "key", "ball", "box")

Place = tuple[int, int]  # cells to the right, cells ahead


@dataclass(frozen=True)
class Thing:
    """A thing in sight."""

    name: str  # "red ball", "grey locked door", "wall"
    kind: str  # "ball", "door", "wall"
    place: Place
    number: int = 0  # among the things of its name, the nearest first

    @property
    def label(self) -> str:
        """Name with its number, as commands have it."""
        return f"{self.name} {self.number}"

    @property
    def walkable(self) -> bool:
        """True if the agent can stand there."""
        return self.kind == "door" and " open " in self.name


class View:
    """The cells in sight of the agent, which stands at (0, 0) and looks ahead."""

    def __init__(self, image: Any, carrying: str | None) -> None:
        """Read minigrid's picture of codes, (width, depth, 3): the agent's row is the last, its column the middle."""
        self.carrying = carrying
        width, depth, _ = image.shape
        self.cells: dict[Place, Thing | None] = {}  # None: free floor; cells out of sight are missing
        for column in range(width):
            for row in range(depth):
                place = (column - width // 2, depth - 1 - row)
                code, colour, state = (int(value) for value in image[column, row])
                kind = IDX_TO_OBJECT[code]
                if kind == "unseen" or place == (0, 0):
                    continue
                if kind in ("empty", "floor"):
                    self.cells[place] = None
                    continue
                words = (IDX_TO_COLOR[colour], *([STATES[state]] if kind == "door" else []), kind)
                self.cells[place] = Thing("wall" if kind == "wall" else " ".join(words), kind, place)

    @cached_property
    def things(self) -> list[Thing]:
        """Things other than walls, nearest first, numbered by name."""
        seen = [thing for thing in self.cells.values() if thing is not None and thing.kind in THINGS]
        seen.sort(key=lambda thing: (abs(thing.place[0]) + thing.place[1], thing.place))
        count: Counter[str] = Counter()
        for index, thing in enumerate(seen):
            count[thing.name] += 1
            seen[index] = Thing(thing.name, thing.kind, thing.place, count[thing.name])
        return seen

    @property
    def ahead(self) -> Thing | None:
        """Thing in the next cell; None if it is free."""
        return self.cells.get((0, 1))

    @property
    def blocked(self) -> bool:
        """True if the agent cannot move forward."""
        return self.ahead is not None and not self.ahead.walkable

    def path(self, goal: Place, *, onto: bool) -> list[str] | None:
        """Return the fewest moves that lead onto a cell in sight, or face it; None if no way is in sight."""
        start = ((0, 0), 0)
        came: dict[tuple[Place, int], tuple[tuple[Place, int], str] | None] = {start: None}
        queue = deque([start])
        while queue:
            state = queue.popleft()
            place, heading = state
            front = (place[0] + HEADINGS[heading][0], place[1] + HEADINGS[heading][1])
            if (place if onto else front) == goal:
                return self._moves(came, state)
            steps: list[tuple[tuple[Place, int], str]] = [
                ((place, (heading - 1) % 4), LEFT),
                ((place, (heading + 1) % 4), RIGHT),
            ]
            if self._free(front):
                steps.insert(0, ((front, heading), FORWARD))
            for after, move in steps:
                if after not in came:
                    came[after] = (state, move)
                    queue.append(after)
        return None

    def describe(self) -> str:
        """Return the view in words."""
        seen = "; ".join(f"a {thing.label} {_where(thing.place)}" for thing in self.things)
        carried = f"a {self.carrying}" if self.carrying else "nothing"
        lines = [f"In front of you, you see {seen or 'no objects'}.", self._facing(), f"You are carrying {carried}."]
        return "\n".join(lines)

    def _facing(self) -> str:
        for steps in range(1, 1 + max((place[1] for place in self.cells), default=0)):
            thing = self.cells.get((0, steps))
            if thing is not None and not thing.walkable:
                return f"You are facing a {thing.name} {_steps(steps)} away."
        return "Nothing in sight is in your way."

    def _free(self, place: Place) -> bool:
        thing = self.cells.get(place)
        return place in self.cells and (thing is None or thing.walkable)

    @staticmethod
    def _moves(came: dict[Any, Any], state: Any) -> list[str]:
        moves = []
        while came[state] is not None:
            state, move = came[state]
            moves.append(move)
        return moves[::-1]


def _where(place: Place) -> str:
    right, ahead = place
    front = f"{_steps(ahead)} ahead" if ahead else ""
    side = f"{_steps(abs(right))} to your {'right' if right > 0 else 'left'}" if right else ""
    return " and ".join(part for part in (front, side) if part)


def _steps(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"


def find(things: Iterable[Thing], name: str) -> Thing | None:
    """Return the thing of a label; a name without a number is the nearest of that name."""
    return next((thing for thing in things if name in (thing.label, thing.name)), None)
