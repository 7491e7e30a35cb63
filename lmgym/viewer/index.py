"""Which episodes a run holds, and where in its file each of them stands: 10,000 are listed without being parsed.

A line begins with what is known of an episode and ends with how it went; its turns, nearly all of its bytes, lie
between and are read when somebody looks. A line of another make is parsed whole.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError
from lmgym.evaluation import report
from lmgym.rollout.episodes import parse
from lmgym.types import Trajectory

EPISODES = "episodes.jsonl"
PICTURES = "pictures"
TURNS, AFTER, TURN = b'"turns": [', b'], "info": {', b'{"observation": {"role"'  # a quote in a string has a backslash
DIGEST = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """One episode in the list."""

    run: int  # number of the run
    start: int  # first byte of the line in its file
    end: int
    id: str
    task: str
    split: str
    index: int | None
    attempt: int
    seat: str
    turns: int
    score: float | None
    success: bool
    truncated: bool
    stop: str


class RunFile:
    """A file of episodes, mapped into memory."""

    def __init__(self, path: Path, number: int = 0, *, pictures: Mapping[str, bytes] | None = None) -> None:
        """Open the episodes of a folder, or of a file; `pictures` are PNGs by digest that its folder may lack.

        Raises InstanceError where there are no episodes.
        """
        self._pictures = pictures or {}
        self.path = path / EPISODES if path.is_dir() else path
        if not self.path.is_file():
            raise InstanceError(f"{path} has no {EPISODES}; lmgym eval --out and lmgym train --keep-episodes write one")
        self.name = path.name or str(path)
        self.number = number
        self._bytes: mmap.mmap | bytes = b""  # an empty file cannot be mapped
        with self.path.open("rb") as file:
            if self.path.stat().st_size:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.rows: list[EpisodeRow] = [self._row(start, end) for start, end in self._lines()]

    def line(self, row: EpisodeRow) -> bytes:
        """The record of an episode as it was written."""
        return bytes(self._bytes[row.start : row.end])

    def trajectory(self, row: EpisodeRow) -> Trajectory:
        """The episode of a row."""
        return parse(self.line(row).decode("utf-8", "surrogatepass"))

    def picture(self, digest: str) -> bytes | None:
        """The PNG of a digest; None where the run does not have it."""
        path = self.path.parent / PICTURES / f"{digest}.png"
        if not DIGEST.fullmatch(digest):
            return None
        content = path.read_bytes() if path.is_file() else self._pictures.get(digest, b"")
        return content if content.startswith(b"\x89PNG\r\n\x1a\n") else None

    def absent(self) -> str:
        """What the run's report counts and its file cannot hold, in words; nothing without a report."""
        if not (self.path.parent / report.NAME).is_file():
            return ""
        try:
            found = report.read(self.path.parent)
        except InstanceError:
            return f"{self.name}: {report.NAME} is damaged"
        counts = {
            "voided": len(found.outcomes) - len(found.played),
            "missing": max(0, found.planned - len(found.outcomes)),
        }
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"{self.name}: {said}" if said else ""

    def close(self) -> None:
        """Close the file."""
        if isinstance(self._bytes, mmap.mmap):
            self._bytes.close()

    def _lines(self) -> Iterator[tuple[int, int]]:
        """First and last byte of each whole line; one that was cut off while it was written is none."""
        start = 0
        while (end := self._bytes.find(b"\n", start)) >= 0:
            if end > start:
                yield start, end
            start = end + 1

    def _row(self, start: int, end: int) -> EpisodeRow:
        line = bytes(self._bytes[start:end])
        facts = _quick(line) or _whole(line, self.path)
        return EpisodeRow(run=self.number, start=start, end=end, **facts)


def _quick(line: bytes) -> dict[str, Any] | None:
    """Facts from the two ends of a line; None where it is not of the usual make."""
    head, tail = line.find(TURNS), line.rfind(AFTER)
    if not 0 < head < tail:
        return None
    try:
        before = json.loads(line[:head] + b'"end": 0}')
        after = json.loads(b"{" + line[tail + 3 :])
        return _facts(before, after, line.count(TURN))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _whole(line: bytes, path: Path) -> dict[str, Any]:
    try:
        record = json.loads(line)
        return _facts(record, record, len(record["turns"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InstanceError(f"{path} holds what is no recorded episode: {line[:80]!r} ({error!r})") from error


def _facts(before: Mapping[str, Any], after: Mapping[str, Any], turns: int) -> dict[str, Any]:
    info = after["info"]
    score = info.get("score")
    return {
        **{name: str(before[name]) for name in ("id", "task", "split", "seat")},
        "index": None if before["index"] is None else int(before["index"]),
        "attempt": int(before["attempt"]),
        "turns": turns,
        "score": None if score is None else float(score),
        "success": bool(info.get("success")),
        "truncated": bool(after["truncated"]),
        "stop": str(after["stop"]),
    }


# Several runs --------------------------------------------------------------------------------------------------


def open_runs(paths: Sequence[Path]) -> list[RunFile]:
    """The runs of `paths`: files of episodes, folders of a run, folders with runs in them, steps that training kept."""
    files = [file for path in paths for file in _files(path)]
    return [RunFile(file, number) for number, file in enumerate(files)]


def _files(path: Path) -> list[Path]:
    if not path.is_dir() or (path / EPISODES).exists():
        return [path]
    for pattern in (f"*/{EPISODES}", "episodes/*.jsonl", "*.jsonl"):
        if found := sorted(path.glob(pattern)):
            return [file.parent if file.name == EPISODES else file for file in found]
    return [path]


@dataclass(frozen=True, kw_only=True)
class EpisodeFilter:
    """Which episodes are meant; None for any."""

    task: str | None = None  # id, or part of it
    outcome: str | None = None  # "success", "failure" or "truncated"
    instance: int | None = None

    def has(self, row: EpisodeRow) -> bool:
        """Whether a row is one of them."""
        outcomes = {"success": row.success, "failure": not row.success, "truncated": row.truncated}
        return (
            (self.task is None or self.task.lower() in row.task.lower())
            and (self.outcome is None or outcomes[self.outcome])
            and (self.instance is None or row.index == self.instance)
        )


def listing(runs: Sequence[RunFile], rows: Sequence[EpisodeRow]) -> dict[str, Any]:
    """What the page's list shows: columns of equal length over the episodes."""
    names = ("run", "id", "task", "split", "index", "attempt", "seat", "turns", "score", "success", "truncated", "stop")
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    columns["score"] = [None if score is None or score != score else score for score in columns["score"]]
    absent = [said for run in runs if (said := run.absent())]
    return {"runs": [run.name for run in runs], "absent": absent, "count": len(rows), "columns": columns}
