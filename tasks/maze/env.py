"""The maze of LMRL-Gym as an environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from numbers import Integral
from typing import Any

from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.maze import SPEC
from lmgym.tasks.maze.layout import FREE, GOAL, MOVES, STARTS, Cell, best_move, moved, observed, shortest_move, walls

PROMPT = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip() + "\n\n"
VIEWS = ("full", "goal", "walls")
REWARDS: Mapping[str, tuple[float, float, float]] = {  # at the goal, a move, an action that is none
    "cost": (0.0, -1.0, -4.0),
    "goal": (1.0, 0.0, -1.0),
    "penalty": (1.0, -1.0, -100.0),
}


class Maze(TextEnv):
    """Walk to the goal; every move before the last costs 1, an action that is no move costs 4. Score 1 at the goal.

    `view` is what an observation shows: "full" goal, position and walls; "goal" goal and walls; "walls" walls alone.
    `rewards` names a scheme of the release: "cost" (0, -1, -4), "goal" (1, 0, -1) or "penalty" (1, -1, -100), each
    at the goal, for a move, and for an invalid action. Without `explained` the first observation is like the others,
    as in the release.
    """

    SPEC = SPEC

    def __init__(self, *, view: str = "full", rewards: str = "cost", explained: bool = True, **common: Any) -> None:
        super().__init__(**common)
        self.check_choices(view=(view, VIEWS), rewards=(rewards, REWARDS))
        self.view, self.explained = view, explained
        self.start = self.cell = STARTS[0]
        self.belief: tuple[Cell, ...] = STARTS
        self.at_goal, self.per_move, self.per_error = REWARDS[rewards]

    def begin(self, index: int) -> Reply:
        """Start from free cell number `index`, counted row by row without the goal."""
        return self._start(STARTS[index])

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Start from `instance["start"]`, a free cell (row, column)."""
        cell: Any = instance.get("start")
        numbers = isinstance(cell, list | tuple) and all(isinstance(each, Integral) for each in cell)
        if not numbers or bool in map(type, cell) or tuple(cell) not in FREE - {GOAL}:
            raise InstanceError(
                f"an instance of {self.task.id} is {{'start': [row, column]}} of a free cell; got {cell!r}"
            )
        return self._start((cell[0], cell[1]))

    def act(self, action: str) -> Reply:
        """Move, or stay where a wall is in the way."""
        move = parse_command(action).lower()
        if move not in MOVES:
            return Reply(self._describe(), reward=self.per_error, valid=False)
        self.cell = moved(self.cell, move)
        if self.cell == GOAL:
            return Reply("Success", reward=self.at_goal, done=True, score=1.0)
        self.belief = tuple(moved(cell, move) for cell in self.belief)
        self._observe()
        return Reply(self._describe(), reward=self.per_move)

    def oracle(self) -> Iterator[str]:
        """Walk a shortest path."""
        while True:
            yield shortest_move(self.cell)

    def demonstrator(self) -> Iterator[str]:
        """Walk a shortest path, or where the position is hidden the path that is shortest in expectation."""
        while True:
            yield shortest_move(self.cell) if self.view == "full" else best_move(self.belief)

    def admissible(self) -> list[str]:
        """Return the four moves."""
        return list(MOVES)

    def answer(self) -> str:
        """Return the start, as "row, column"."""
        return f"{self.start[0]}, {self.start[1]}"

    def _start(self, cell: Cell) -> Reply:
        self.start = self.cell = cell
        self.belief = STARTS
        self._observe()
        return Reply((PROMPT if self.explained else "") + self._describe())

    def _observe(self) -> None:
        """Keep the cells of the belief that look like the one the walker stands in."""
        candidates = [cell for cell in self.belief if cell != GOAL]
        self.belief = next(group for group in observed(candidates) if walls(group[0]) == walls(self.cell))

    def _describe(self) -> str:
        sides = walls(self.cell)
        sentences = [_sentence(sides)]
        if self.view == "full":
            sentences.insert(0, f"Your current position is at {_spaced(self.cell)}.")
        if self.view != "walls":
            sentences.insert(0, f"The goal is at {_spaced(GOAL)}.")
        return " ".join(sentences) + "\n"


def _sentence(sides: tuple[str, ...]) -> str:
    if not sides:
        return "There are no walls around you."
    return f"There is a wall {sides[0]}." if len(sides) == 1 else f"There are walls {', '.join(sides)}."


def _spaced(cell: Cell) -> str:
    """Write "row, column" with a space between the digits of a number."""
    return ", ".join(" ".join(str(number)) for number in cell)
