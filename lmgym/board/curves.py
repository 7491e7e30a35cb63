"""Learning curves of baselines: evaluations during training, as the run recorded them. They are never verified."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec

from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.texts import check_line
from lmgym.errors import SubmissionError

WIDTH, HEIGHT = 600, 200  # size of a drawing, in its units
POINTS = 500  # largest number of points in a curve
SMOOTH = 10  # steps in the running mean
DRAWN = 200  # points in a drawn line


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Evaluation during training: mean success with its interval."""

    step: int
    mean: float
    low: float
    high: float


class BaselineCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Learning curve of one run."""

    name: str  # name of the baseline
    command: str  # command that repeats the run
    points: tuple[Point, ...]  # evaluations on the test split
    played: tuple[tuple[int, float], ...] = ()  # step and success of the episodes trained on, smoothed

    @property
    def last(self) -> int:
        """Last step."""
        return max([point.step for point in self.points] + [step for step, _ in self.played])

    @property
    def line(self) -> str:
        """Corners of the training curve in the drawing."""
        return " ".join(f"{self.x(step):.1f},{self.y(value):.1f}" for step, value in self.played)

    def x(self, step: int) -> float:
        """Return the x coordinate of a step."""
        return WIDTH * step / max(1, self.last)

    def y(self, value: float) -> float:
        """Return the y coordinate of a success rate."""
        return HEIGHT * (1 - value)


def read_curve(path: Path) -> BaselineCurve:
    """Read a curve's file. Raises SubmissionError where its points are not a curve."""
    curve = entries.as_record(parsing.parse(parsing.read_small(path), path.name), BaselineCurve, path.name)
    check_curve(curve, path.name)
    return curve


def check_curve(curve: BaselineCurve, where: str) -> None:
    """Raise SubmissionError, which names the file `where`, unless the points are a curve."""
    check_line(curve.name, "name")
    if not 1 <= len(curve.points) <= POINTS or len(curve.played) > POINTS:
        raise SubmissionError(f"{where} has {len(curve.points)} points; a curve has 1 to {POINTS}")
    steps = [point.step for point in curve.points]
    if steps != sorted(set(steps)) or steps[0] < 0:
        raise SubmissionError(f"{where}: the steps of a curve must increase from 0")
    if any(not 0 <= value <= 1 or step < 0 for step, value in curve.played):
        raise SubmissionError(f"{where}: `played` must hold pairs of a step and a success rate in [0, 1]")
    if any(not 0 <= point.low <= point.mean <= point.high <= 1 for point in curve.points):
        raise SubmissionError(f"{where}: a point must satisfy 0 <= low <= mean <= high <= 1")


def from_metrics(lines: Iterable[str], *, name: str, command: str) -> BaselineCurve:
    """Return the curve in a run's `metrics.jsonl`. Raises SubmissionError where the run has no evaluation."""
    rows = [json.loads(line) for line in lines]
    figures = ("evaluated_success", "evaluated_low", "evaluated_high")
    points = {
        row["run_step"]: Point(int(row["run_step"]), *(round(float(row[figure]), 6) for figure in figures))
        for row in rows
        if "evaluated_success" in row
    }
    if not points:
        raise SubmissionError(f"the run of {name} has no evaluation during training, so there is no curve")
    played = [(int(row["run_step"]), float(row["success"])) for row in rows if "success" in row]
    smooth = [
        (step, round(sum(value for _, value in played[max(0, i - SMOOTH + 1) : i + 1]) / min(i + 1, SMOOTH), 6))
        for i, (step, _) in enumerate(played)
    ]
    thinned = tuple(smooth[:: max(1, -(-len(smooth) // DRAWN))])
    return BaselineCurve(name, command, tuple(points[step] for step in sorted(points)), thinned)
