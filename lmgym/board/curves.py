"""Learning curves of baselines: what training evaluated on the way, as its run recorded it. They are never verified."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.check import check_words
from lmgym.errors import SubmissionError

WIDTH, HEIGHT = 600, 200  # of a drawing, in units
POINTS = 500  # of a curve at most
SMOOTH = 10  # steps of a running mean
DRAWN = 200  # points of a line


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An evaluation on the way: mean success with its interval."""

    step: int
    mean: float
    low: float
    high: float


class BaselineCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run."""

    name: str  # of the baseline
    command: str  # that makes it
    points: tuple[Point, ...]  # evaluations on the test split
    played: tuple[tuple[int, float], ...] = ()  # step and success of the episodes trained on, smoothed

    @property
    def last(self) -> int:
        """The last step."""
        return max([point.step for point in self.points] + [step for step, _ in self.played])

    @property
    def line(self) -> str:
        """Corners of the line of what was played, in the drawing."""
        return " ".join(f"{self.x(step):.1f},{self.y(value):.1f}" for step, value in self.played)

    def x(self, step: int) -> float:
        """Place of a step in the drawing."""
        return WIDTH * step / max(1, self.last)

    def y(self, value: float) -> float:
        """Place of a share in the drawing."""
        return HEIGHT * (1 - value)


def read_curves(folder: Path) -> list[BaselineCurve]:
    """The curves of a task."""
    return [read_curve(path) for path in sorted(folder.glob("*.json"))]


def read_curve(path: Path) -> BaselineCurve:
    """A curve's file."""
    curve = entries.as_record(parsing.parse(parsing.small(path), path.name), BaselineCurve, path.name)
    check_words(curve.name, "name")
    if not 1 <= len(curve.points) <= POINTS or len(curve.played) > POINTS:
        raise SubmissionError(f"{path.name} has {len(curve.points)} points; a curve has 1 to {POINTS}")
    steps = [point.step for point in curve.points]
    if steps != sorted(set(steps)) or steps[0] < 0:
        raise SubmissionError(f"{path.name}: the steps of a curve go up")
    if any(not 0 <= value <= 1 or step < 0 for step, value in curve.played):
        raise SubmissionError(f"{path.name}: what was played is a step and a share")
    if any(not 0 <= point.low <= point.mean <= point.high <= 1 for point in curve.points):
        raise SubmissionError(f"{path.name}: a point of a curve is 0 <= low <= mean <= high <= 1")
    return curve


def from_metrics(lines: Iterable[str], *, name: str, command: str) -> BaselineCurve:
    """The curve in a run's `metrics.jsonl`. Raises SubmissionError where it evaluated nothing."""
    rows = [json.loads(line) for line in lines]
    points = {row["run_step"]: _point(row) for row in rows if "evaluated_success" in row}
    if not points:
        raise SubmissionError(f"the run of {name} evaluated nothing on the way: there is no curve")
    played = [(int(row["run_step"]), float(row["success"])) for row in rows if "success" in row]
    return BaselineCurve(name, command, tuple(points[step] for step in sorted(points)), _thin(played))


def _point(row: Mapping[str, Any]) -> Point:
    names = ("evaluated_success", "evaluated_low", "evaluated_high")
    return Point(int(row["run_step"]), *(round(float(row[name]), 6) for name in names))


def _thin(played: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """A running mean, and of that so many points at most as a drawing shows."""
    smooth = [
        (step, round(sum(value for _, value in played[max(0, i - SMOOTH + 1) : i + 1]) / min(i + 1, SMOOTH), 6))
        for i, (step, _) in enumerate(played)
    ]
    return tuple(smooth[:: max(1, -(-len(smooth) // DRAWN))])
