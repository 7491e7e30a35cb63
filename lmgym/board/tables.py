"""Tables of the board, made of verdicts alone: ranks with ties, and overall scores of named suites."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.entry import Entry, RecordedEpisode, folder_name
from lmgym.board.verdict import Figure, Verdict
from lmgym.errors import SubmissionError
from lmgym.evaluation.compare import holm, permutation_test, sign_test
from lmgym.evaluation.stats import by_instance

LEVEL = 0.05  # significance level of differences between entries, over a table
REFERENCES = ("random", "oracle")  # entries that define 0 and 100

Array = npt.NDArray[np.float64]


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks of an overall score. A change makes the next version."""

    name: str
    version: int
    families: dict[str, tuple[str, ...]]  # task ids by family; a family's score is the mean of its tasks

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name}-{self.version}"

    @property
    def tasks(self) -> tuple[str, ...]:
        """All task ids."""
        return tuple(task for family in self.families.values() for task in family)


@dataclass(frozen=True)
class TableRow:
    """An entry in a table."""

    entry: Entry
    verdict: Verdict
    rank: int = 0  # 1 + number of significantly better entries; ties share it; 0 if not replayed
    tied: bool = False
    replays: tuple[RecordedEpisode, ...] = ()  # recorded episodes for the entry's page

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
    """Scores of a system over a suite."""

    name: str
    title: str
    tasks: Mapping[str, float | None]  # normalised score by id; None: no verified entry
    families: Mapping[str, float | None]
    score: Figure | None  # None where a task is missing

    @property
    def missing(self) -> int:
        """Tasks without an entry."""
        return sum(score is None for score in self.tasks.values())

    @property
    def sparse(self) -> bool:
        """True where most tasks are missing; the pages fold such rows."""
        return 2 * self.missing > len(self.tasks)


def permalink(task: str, name: str) -> str:
    """Return the page of an entry, from the site's root; the page stays when the entry is removed."""
    return f"entries/{folder_name(task)}/{name}.html"


def ranked(rows: Sequence[TableRow]) -> list[TableRow]:
    """Sort rows by score and rank them by paired tests; entries that are only reported come last, without a rank.

    Entries with different users are never compared.
    """
    table: list[TableRow] = []
    verified = [row for row in rows if row.verdict.mark != "reported"]
    for user in sorted({row.entry.user or "" for row in verified}):
        rows_of_user = [row for row in verified if (row.entry.user or "") == user]
        ordered = sorted(rows_of_user, key=lambda row: (-row.verdict.score.mean, row.entry.name))
        pairs = [(better, worse) for worse in range(len(ordered)) for better in range(worse)]
        adjusted = holm([_p(ordered[better].means - ordered[worse].means) for better, worse in pairs])
        sure = {pair for pair, p in zip(pairs, adjusted, strict=True) if p < LEVEL}
        ranks = [1 + sum((better, worse) in sure for better in range(worse)) for worse in range(len(ordered))]
        table += (replace(row, rank=rank, tied=ranks.count(rank) > 1) for row, rank in zip(ordered, ranks, strict=True))
    return table + sorted((row for row in rows if row.verdict.mark == "reported"), key=lambda row: row.entry.name)


def _p(differences: Array) -> float:
    """Return the two-sided p of a paired difference: exact where instances are won or lost, else by permutation."""
    differences = np.where(np.abs(differences) < 1e-12, 0.0, differences)
    binary = bool(np.isin(differences, (-1.0, 0.0, 1.0)).all())
    return sign_test(differences) if binary else permutation_test(differences)


def read_suite(path: Path) -> Suite:
    """Read a suite's file."""
    suite = entries.as_record(parsing.parse(path.read_bytes(), path.name), Suite, path.name)
    if path.stem != suite.title:
        raise SubmissionError(f"{path.name} holds the suite {suite.title}; the file must be named {suite.title}.json")
    return suite


def overall(suite: Suite, rows: Sequence[TableRow]) -> list[Overall]:
    """Return all systems over a suite by score, those with missing tasks last; only verified entries count."""
    of_task: dict[str, dict[str, TableRow]] = {task: {} for task in suite.tasks}
    titles: dict[str, str] = {}
    for row in rows:
        if row.entry.task in of_task and row.entry.user is None and row.verdict.mark != "reported":
            of_task[row.entry.task][row.entry.name] = row
            titles.setdefault(row.entry.name, row.entry.title)
    scaled = {task: _scaled(by_name) for task, by_name in of_task.items()}
    systems = [_system(name, titles[name], suite, scaled) for name in sorted(titles)]
    return sorted(systems, key=lambda each: (each.missing, -(each.score.mean if each.score else 0.0), each.name))


def _scaled(rows: Mapping[str, TableRow]) -> dict[str, Figure]:
    """Return scores by system on the scale from random (0) to oracle (100); none where either is missing."""
    if any(name not in rows for name in REFERENCES):
        return {}
    low, high = (rows[name].verdict.score.mean for name in REFERENCES)
    if high <= low:
        return {}
    scaled = {}
    for name, row in rows.items():
        score = row.verdict.score
        ends = (100.0 * (value - low) / (high - low) for value in (score.mean, score.low, score.high))
        scaled[name] = Figure(*(round(end, 6) + 0.0 for end in ends))
    return scaled


def _system(name: str, title: str, suite: Suite, scaled: Mapping[str, Mapping[str, Figure]]) -> Overall:
    scores = {task: scaled[task].get(name) for task in suite.tasks}
    means = {task: None if score is None else score.mean for task, score in scores.items()}
    whole = [score for score in scores.values() if score is not None]
    overall_score = None
    if len(whole) == len(suite.tasks):
        shares = [1 / len(family) / len(suite.families) for family in suite.families.values() for _ in family]
        overall_score = combined(whole, shares)
    families: dict[str, float | None] = {}
    for family, ids in suite.families.items():
        values = [mean for task in ids if (mean := means[task]) is not None]
        families[family] = round(math.fsum(values) / len(values), 6) + 0.0 if len(values) == len(ids) else None
    return Overall(name, title, means, families, overall_score)


def combined(scores: Sequence[Figure], weights: Sequence[float]) -> Figure:
    """Return a weighted sum of independent estimates with its interval (Zou and Donner's MOVER).

    Distances from the mean to the interval's ends combine as standard deviations do, separately on each side.
    """
    pairs = list(zip(scores, weights, strict=True))
    mean = math.fsum(weight * score.mean for score, weight in pairs)
    below = math.hypot(*(weight * (score.mean - score.low) for score, weight in pairs))
    above = math.hypot(*(weight * (score.high - score.mean) for score, weight in pairs))
    return Figure(*(round(value, 6) + 0.0 for value in (mean, mean - below, mean + above)))
