"""Verdicts: the results of verification, and the only source of scores on the board."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
import numpy as np

from lmgym.evaluation.stats import Interval, bootstrap, by_instance, mean_figure, unit

Level = Literal["exact", "outcome", "none"]
Mark = Literal["reported", "verified", "reproduced"]


class Figure(msgspec.Struct, frozen=True):
    """A mean with its 95 % confidence interval."""

    mean: float
    low: float
    high: float


class TaskFigure(msgspec.Struct, frozen=True):
    """Mean of a task's own figure with its 95 % confidence interval, which equal values do not have."""

    mean: float
    low: float | None
    high: float | None


class Outcomes(msgspec.Struct, frozen=True):
    """Outcomes of the episodes by columns, in the order of the protocol."""

    index: tuple[int, ...]
    attempt: tuple[int, ...]
    score: tuple[float, ...]
    success: tuple[bool, ...]
    turns: tuple[int, ...]
    invalid: tuple[int | None, ...]  # None: not replayed
    tokens: tuple[int, ...]  # recorded ids of the agent


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Result of verifying an entry."""

    schema: Literal[1] = 1
    task: str
    name: str
    entry: str  # the entry's digest
    promise: str  # digest of the task's golden episodes at verification
    lmgym: str  # version that verified it
    level: Level  # what replay compared: everything, outcomes only, or nothing
    mark: Mark
    reason: str = ""  # why it is only "reported"
    score: Figure
    success: Figure
    turns: Figure
    invalid: float | None  # share of turns with an invalid action; None: not replayed
    tokens: float | None = None  # recorded ids per episode
    tokens_in: float | None = None  # per episode, as declared; None: unknown
    tokens_out: float | None = None
    cost: float | None = None  # US dollars of all episodes, as declared; None: unknown
    cut: int = 0  # episodes that ended with a full context
    figures: dict[str, TaskFigure] = {}  # the task's own
    outcomes: Outcomes
    audit: dict[str, Any] | None = None  # result of scoring the ids again


def figure(interval: Interval) -> Figure:
    """Round an interval to seven digits, since the last bits differ between machines."""
    return Figure(*(float(f"{value:.7g}") for value in (interval.mean, interval.low, interval.high)))


def outcomes(rows: list[dict[str, Any]]) -> Outcomes:
    """Turn rows into columns."""
    return Outcomes(**{name: tuple(row[name] for row in rows) for name in Outcomes.__struct_fields__})


def shares(outcomes: Outcomes) -> dict[str, Figure]:
    """Return mean score and mean success of the episodes."""
    values = {"score": np.array(outcomes.score), "success": np.array(outcomes.success, np.float64)}
    return {name: figure(unit(each, list(outcomes.index))) for name, each in values.items()}


def own_figures(rows: list[dict[str, Any]]) -> dict[str, TaskFigure]:
    """Return the means of the task's own figures over the episodes that have them."""
    means = {}
    for name in sorted({name for row in rows for name in row["figures"]}):
        having = [row for row in rows if name in row["figures"]]
        interval = figure(mean_figure([row["figures"][name] for row in having], [row["index"] for row in having]))
        low, high = (end if math.isfinite(end) else None for end in (interval.low, interval.high))
        means[name] = TaskFigure(interval.mean, low, high)
    return means


def figures(outcomes: Outcomes) -> dict[str, Any]:
    """Return the fields of a verdict that follow from the outcomes."""
    index = list(outcomes.index)
    turns = np.array(outcomes.turns, np.float64)
    invalid = [count for count in outcomes.invalid if count is not None]
    return {
        **shares(outcomes),
        "turns": figure(bootstrap(by_instance(turns, index)[0], bounds=(0.0, float(turns.max(initial=1.0))))),
        "invalid": round(sum(invalid) / max(1, sum(outcomes.turns)), 6) if len(invalid) == len(index) else None,
        "tokens": round(sum(outcomes.tokens) / len(index), 3) if any(outcomes.tokens) else None,
        "outcomes": outcomes,
    }
