"""The tables of the board, made of verdicts alone: ranks with ties, and the overall score of a named suite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.entry import Entry, folder_name
from lmgym.board.verdict import Figure, Verdict
from lmgym.errors import SubmissionError
from lmgym.evaluation.compare import holm, permutation_test, sign_test
from lmgym.evaluation.stats import by_instance

LEVEL = 0.05  # of the tests that tell a tie from a difference, over a table
REFERENCES = ("random", "oracle")  # what 0 and 100 are

Array = npt.NDArray[np.float64]


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks that an overall score is over. A change makes the next version."""

    name: str
    version: int
    families: dict[str, tuple[str, ...]]  # ids by family; a family's score is the mean of its tasks

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name}-{self.version}"

    @property
    def tasks(self) -> tuple[str, ...]:
        """All ids."""
        return tuple(task for family in self.families.values() for task in family)


@dataclass(frozen=True)
class TableRow:
    """An entry in a table."""

    entry: Entry
    verdict: Verdict
    rank: int = 0  # 1 + entries that are better beyond chance; ties share it; 0 where nothing was replayed
    tied: bool = False

    @property
    def means(self) -> Array:
        """Mean score of each instance."""
        means, _ = by_instance(self.verdict.outcomes.score, self.verdict.outcomes.index)
        return means

    @property
    def link(self) -> str:
        """Permalink, from the site's root."""
        return permalink(self.entry.task, self.entry.name)


@dataclass(frozen=True)
class Overall:
    """A system over a suite."""

    name: str
    title: str
    tasks: Mapping[str, float | None]  # normalised score by id; None: no verified entry
    families: Mapping[str, float | None]
    score: Figure | None  # None where a task is missing: nothing is averaged away

    @property
    def missing(self) -> int:
        """Tasks without an entry."""
        return sum(score is None for score in self.tasks.values())


def permalink(task: str, name: str) -> str:
    """Page of an entry, from the site's root; it stays when the entry leaves."""
    return f"entries/{folder_name(task)}/{name}.html"


def ranked(rows: Sequence[TableRow]) -> list[TableRow]:
    """Rows by score, with ranks by paired tests; what was only reported has none and stands last.

    Entries of another user are never compared.
    """
    found: list[TableRow] = []
    known = [row for row in rows if row.verdict.mark != "reported"]
    for user in sorted({row.entry.user or "" for row in known}):
        found += _ranked([row for row in known if (row.entry.user or "") == user])
    return found + sorted((row for row in rows if row.verdict.mark == "reported"), key=lambda row: row.entry.name)


def _ranked(rows: Sequence[TableRow]) -> list[TableRow]:
    ordered = sorted(rows, key=lambda row: (-row.verdict.score.mean, row.entry.name))
    pairs = [(better, worse) for worse in range(len(ordered)) for better in range(worse)]
    adjusted = holm([_p(ordered[better].means - ordered[worse].means) for better, worse in pairs])
    sure = {pair for pair, p in zip(pairs, adjusted, strict=True) if p < LEVEL}
    ranks = [1 + sum((better, worse) in sure for better in range(worse)) for worse in range(len(ordered))]
    return [
        TableRow(row.entry, row.verdict, rank=rank, tied=ranks.count(rank) > 1)
        for row, rank in zip(ordered, ranks, strict=True)
    ]


def _p(differences: Array) -> float:
    """Two-sided p of a paired difference: exact where instances are won or lost, else by permutation."""
    differences = np.where(np.abs(differences) < 1e-12, 0.0, differences)
    binary = bool(np.isin(differences, (-1.0, 0.0, 1.0)).all())
    return sign_test(differences) if binary else permutation_test(differences)


def read_suite(path: Path) -> Suite:
    """A suite's file."""
    suite = entries.as_record(parsing.parse(path.read_bytes(), path.name), Suite, path.name)
    if path.stem != suite.title:
        raise SubmissionError(f"{path.name} holds the suite {suite.title}: name and version are the file's")
    return suite


def overall(suite: Suite, rows: Sequence[TableRow]) -> list[Overall]:
    """All systems over a suite, the best first, those with missing tasks last; only verified entries count."""
    of_task: dict[str, dict[str, TableRow]] = {task: {} for task in suite.tasks}
    titles: dict[str, str] = {}
    for row in rows:
        if row.entry.task in of_task and row.entry.user is None and row.verdict.mark != "reported":
            of_task[row.entry.task][row.entry.name] = row
            titles.setdefault(row.entry.name, row.entry.title)
    scaled = {task: _scaled(found) for task, found in of_task.items()}
    found = [_system(name, titles[name], suite, scaled) for name in sorted(titles)]
    return sorted(found, key=lambda each: (each.missing, -(each.score.mean if each.score else 0.0), each.name))


def _scaled(rows: Mapping[str, TableRow]) -> dict[str, Figure]:
    """Scores by system, on the scale where random is 0 and the oracle 100; nothing where either is missing."""
    if any(name not in rows for name in REFERENCES):
        return {}
    low, high = (rows[name].verdict.score.mean for name in REFERENCES)
    if high <= low:
        return {}
    return {name: _on_scale(row.verdict.score, low, high) for name, row in rows.items()}


def _on_scale(score: Figure, low: float, high: float) -> Figure:
    ends = (100.0 * (value - low) / (high - low) for value in (score.mean, score.low, score.high))
    return Figure(*(round(end, 6) + 0.0 for end in ends))


def _system(name: str, title: str, suite: Suite, scaled: Mapping[str, Mapping[str, Figure]]) -> Overall:
    found = {task: scaled[task].get(name) for task in suite.tasks}
    means = {task: None if score is None else score.mean for task, score in found.items()}
    whole = [score for score in found.values() if score is not None]
    overall_score = None
    if len(whole) == len(suite.tasks):
        shares = [1 / len(family) / len(suite.families) for family in suite.families.values() for _ in family]
        overall_score = combined(whole, shares)
    families = {family: _mean(means, ids) for family, ids in suite.families.items()}
    return Overall(name, title, means, families, overall_score)


def combined(scores: Sequence[Figure], weights: Sequence[float]) -> Figure:
    """A weighted sum of independent estimates with the interval that theirs imply (Zou and Donner's MOVER).

    Distances to the ends add up as standard deviations do, each side by itself: an interval of positive width on
    every task gives one overall.
    """
    pairs = list(zip(scores, weights, strict=True))
    mean = math.fsum(weight * score.mean for score, weight in pairs)
    below = math.hypot(*(weight * (score.mean - score.low) for score, weight in pairs))
    above = math.hypot(*(weight * (score.high - score.mean) for score, weight in pairs))
    return Figure(*(round(value, 6) + 0.0 for value in (mean, mean - below, mean + above)))


def _mean(means: Mapping[str, float | None], ids: Sequence[str]) -> float | None:
    found = [value for task in ids if (value := means[task]) is not None]
    return round(math.fsum(found) / len(found), 6) + 0.0 if len(found) == len(ids) else None
