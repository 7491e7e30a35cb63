"""The double-T maze of LMRL-Gym, shortest paths in it, and the beliefs of a walker who sees only walls."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from functools import cache

Cell = tuple[int, int]  # row from the top, column from the left, both from 0
Belief = tuple[Cell, ...]  # where each start that agrees with all observations has led, sorted; cells may repeat

MOVES: dict[str, Cell] = {"move left": (0, -1), "move right": (0, 1), "move up": (-1, 0), "move down": (1, 0)}
SIDES = {"to your right": (0, 1), "to your left": (0, -1), "above you": (-1, 0), "below you": (1, 0)}
GOAL: Cell = (8, 6)
FREE: frozenset[Cell] = frozenset(
    [(1, column) for column in (*range(1, 6), *range(7, 12))]
    + [(row, column) for row in (2, 3, 4) for column in (3, 9)]
    + [(5, column) for column in range(3, 10)]
    + [(row, 6) for row in (6, 7, 8)]
)
STARTS: tuple[Cell, ...] = tuple(sorted(FREE - {GOAL}))


def moved(cell: Cell, move: str) -> Cell:
    """Return the cell that `move` leads to from `cell`: itself where a wall is in the way."""
    row, column = MOVES[move]
    target = (cell[0] + row, cell[1] + column)
    return target if target in FREE else cell


@cache
def walls(cell: Cell) -> tuple[str, ...]:
    """Return the sides of `cell` that are walls, in LMRL-Gym's order."""
    return tuple(side for side, (row, column) in SIDES.items() if (cell[0] + row, cell[1] + column) not in FREE)


@cache
def distances() -> dict[Cell, int]:
    """Return the number of moves from every free cell to the goal."""
    steps, queue = {GOAL: 0}, deque([GOAL])
    while queue:
        cell = queue.popleft()
        for move in MOVES:
            if (neighbour := moved(cell, move)) not in steps:
                steps[neighbour] = steps[cell] + 1
                queue.append(neighbour)
    return steps


def shortest_move(cell: Cell) -> str:
    """Return the first move of a shortest path from `cell` to the goal."""
    return min(MOVES, key=lambda move: distances()[moved(cell, move)])


def observed(cells: Iterable[Cell]) -> list[Belief]:
    """Split cells by the walls that a walker sees there."""
    groups: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in sorted(cells):
        groups[walls(cell)].append(cell)
    return [tuple(group) for group in groups.values()]


def successors(belief: Belief, move: str) -> list[Belief]:
    """Return the beliefs that `move` can lead to, each as likely as it has cells; cells at the goal are left out."""
    return observed(cell for cell in (moved(cell, move) for cell in belief) if cell != GOAL)


@cache
def belief_values() -> dict[Belief, float]:
    """Return the expected moves to the goal under the best policy, by belief, computed by value iteration."""
    frontier = observed(STARTS)
    graph: dict[Belief, list[list[Belief]]] = {}
    while frontier:
        belief = frontier.pop()
        if belief not in graph:
            graph[belief] = [successors(belief, move) for move in MOVES]
            frontier.extend(after for branch in graph[belief] for after in branch)
    values = dict.fromkeys(graph, 0.0)
    change = 1.0
    while change > 1e-12:
        updated = {
            belief: 1.0 + min(_rest(values, branch) for branch in branches) / len(belief)
            for belief, branches in graph.items()
        }
        change = max(abs(updated[belief] - values[belief]) for belief in values)
        values = updated
    return values


def best_move(belief: Belief) -> str:
    """Return the move that brings a walker with this belief to the goal soonest, in expectation."""
    return min(MOVES, key=lambda move: _rest(belief_values(), successors(belief, move)))


def _rest(values: Mapping[Belief, float], branch: Iterable[Belief]) -> float:
    """Sum the expected moves over the cells of all beliefs in `branch`."""
    return sum(len(belief) * values[belief] for belief in branch)
