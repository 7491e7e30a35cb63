"""Full-text search: scan the bytes of each line first, and parse only candidates."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmgym.errors import InstanceError
from lmgym.types import Trajectory
from lmgym.viewer.index import EpisodeRow, RunFile

MAX_QUERY = 200  # characters
SLICE = 0.3  # seconds per request


@dataclass(frozen=True)
class SearchResult:
    """The hits of a part of the rows."""

    hits: list[int]  # numbers of rows
    next: int | None  # row to continue with; None: the search is complete


def search(
    runs: Sequence[RunFile], rows: Sequence[EpisodeRow], words: str, *, start: int = 0, seconds: float = SLICE
) -> SearchResult:
    """Search rows from `start` on for `words`, ignoring case, for at most `seconds`."""
    wanted = words[:MAX_QUERY].lower()
    raw = json.dumps(wanted)[1:-1].encode()
    stop = time.monotonic() + seconds
    hits: list[int] = []
    for number in range(start, len(rows)):
        row = rows[number]
        # case does not match in escapes of non-ASCII letters
        candidate = b"\\u" in raw or raw in runs[row.run].line(row).lower()
        if candidate and _holds(runs[row.run], row, wanted):
            hits.append(number)
        if time.monotonic() > stop:
            return SearchResult(hits, number + 1 if number + 1 < len(rows) else None)
    return SearchResult(hits, None)


def _holds(run: RunFile, row: EpisodeRow, wanted: str) -> bool:
    try:
        trajectory = run.trajectory(row)
    except InstanceError:
        return False
    return any(wanted in text.lower() for text in texts(trajectory))


def texts(trajectory: Trajectory) -> Iterator[str]:
    """Yield all texts of an episode."""
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
