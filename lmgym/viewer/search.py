"""Which episodes hold some words: a scan of the file for candidates, then a look at what was really said."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmgym.errors import InstanceError
from lmgym.types import Trajectory
from lmgym.viewer.index import EpisodeRow, RunFile

LONGEST = 200  # characters of a query
SLICE = 0.3  # seconds that one request may take


@dataclass(frozen=True)
class SearchResult:
    """Part of a search."""

    hits: list[int]  # numbers of rows
    next: int | None  # row from which to go on; None: all were looked at


def search(
    runs: Sequence[RunFile], rows: Sequence[EpisodeRow], words: str, *, start: int = 0, seconds: float = SLICE
) -> SearchResult:
    """Rows from `start` on in which `words` were shown or said, case aside, as far as `seconds` suffice."""
    wanted = words[:LONGEST].lower()
    raw = json.dumps(wanted)[1:-1].encode()
    stop = time.monotonic() + seconds
    hits: list[int] = []
    for number in range(start, len(rows)):
        row = rows[number]
        if _may_hold(runs[row.run].line(row), raw) and _holds(runs[row.run], row, wanted):
            hits.append(number)
        if time.monotonic() > stop:
            return SearchResult(hits, number + 1 if number + 1 < len(rows) else None)
    return SearchResult(hits, None)


def _may_hold(line: bytes, raw: bytes) -> bool:
    return b"\\u" in raw or raw in line.lower()  # capitals beyond ASCII have other escapes


def _holds(run: RunFile, row: EpisodeRow, wanted: str) -> bool:
    try:
        trajectory = run.trajectory(row)
    except InstanceError:
        return False
    return any(wanted in text.lower() for text in texts(trajectory))


def texts(trajectory: Trajectory) -> Iterator[str]:
    """All that was shown and said in an episode."""
    yield trajectory.id
    if trajectory.prompt:
        yield trajectory.prompt
    for turn in trajectory.turns:
        yield turn.observation.text
        yield turn.completion.thinking
        yield turn.completion.text
        if turn.action is not None and turn.action != turn.completion.text:
            yield turn.action
    if trajectory.final is not None:
        yield trajectory.final.text
