"""What verification found: the only source of every score on the board; what is declared is named as that."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np

from lmgym.evaluation.stats import Interval, bootstrap, unit

Level = Literal["exact", "outcome", "none"]
Mark = Literal["reported", "verified", "reproduced"]


class Figure(msgspec.Struct, frozen=True):
    """An estimate with its 95 % confidence interval."""

    mean: float
    low: float
    high: float


class Outcomes(msgspec.Struct, frozen=True):
    """The episodes by columns, in the order of the protocol."""

    index: tuple[int, ...]
    attempt: tuple[int, ...]
    score: tuple[float, ...]
    success: tuple[bool, ...]
    turns: tuple[int, ...]
    invalid: tuple[int | None, ...]  # None: nothing was replayed
    tokens: tuple[int, ...]  # with ids


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `verify` says of an entry."""

    schema: Literal[1] = 1
    task: str
    name: str
    entry: str  # digest of the entry that this is about
    promise: str  # digest of the task's golden episodes when it was found
    lmgym: str  # version that found it
    level: Level  # what replay compared: all, outcomes only, nothing
    mark: Mark
    reason: str = ""  # why no more than "reported"
    score: Figure
    success: Figure
    turns: Figure
    invalid: float | None  # share of the turns whose action was none; None: nothing was replayed
    tokens: float | None = None  # ids of an episode, counted in the record; who sampled them it does not say
    tokens_in: float | None = None  # of an episode, as declared; None: nothing is
    tokens_out: float | None = None
    cost: float | None = None  # US dollars of all episodes, as declared; None: not known
    cut: int = 0  # episodes that ended for want of the policy's room
    outcomes: Outcomes
    audit: dict[str, Any] | None = None  # what scoring the ids again found
    fresh: dict[str, Any] | None = None  # what playing fresh instances found


def figure(interval: Interval) -> Figure:
    """Of an interval, to seven digits: the last bits differ between machines."""
    return Figure(*(float(f"{value:.7g}") for value in (interval.mean, interval.low, interval.high)))


def outcomes(rows: list[dict[str, Any]]) -> Outcomes:
    """Columns of rows."""
    return Outcomes(**{name: tuple(row[name] for row in rows) for name in Outcomes.__struct_fields__})


def shares(found: Outcomes) -> dict[str, Figure]:
    """Mean score and success, which follow from the episodes."""
    values = {"score": np.array(found.score), "success": np.array(found.success, np.float64)}
    return {name: figure(unit(each, list(found.index))) for name, each in values.items()}


def figures(found: Outcomes) -> dict[str, Any]:
    """What follows from the episodes: scores, turns, invalid actions, tokens."""
    index = list(found.index)
    turns = np.array(found.turns, np.float64)
    invalid = [count for count in found.invalid if count is not None]
    return {
        **shares(found),
        "turns": figure(bootstrap(turns, bounds=(0.0, float(turns.max(initial=1.0))))),
        "invalid": round(sum(invalid) / max(1, sum(found.turns)), 6) if len(invalid) == len(index) else None,
        "tokens": round(sum(found.tokens) / len(index), 3) if any(found.tokens) else None,
        "outcomes": found,
    }
