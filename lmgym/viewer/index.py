"""Index of recorded episodes: lists 10,000 episodes without parsing their turns.

The fields before and after `turns`, which has most bytes of a line, are parsed separately. Lines in other formats are
parsed whole.
"""

from __future__ import annotations

import json
import math
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError
from lmgym.evaluation import report
from lmgym.evaluation.record import EPISODES
from lmgym.rollout.episodes import parse
from lmgym.rollout.picture_folder import folders_beside
from lmgym.types import Trajectory

# cannot occur in a string, where quotes are escaped
TURNS, AFTER, TURN = b'"turns": [', b'], "info": {', b'{"observation": {"role"'
DIGEST = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An episode in the list."""

    run: int  # position of its file in the list
    start: int  # offset of its line in the file
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
    """A memory-mapped file of episodes."""

    def __init__(self, path: Path, number: int = 0, *, pictures: Mapping[str, bytes] | None = None) -> None:
        """Open a file, or the file of a run's folder; `pictures` are PNGs by digest that the folder may lack.

        Raises InstanceError if there is no file.
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
        """Return the line of an episode."""
        return bytes(self._bytes[row.start : row.end])

    def trajectory(self, row: EpisodeRow) -> Trajectory:
        """Parse the episode of a row."""
        return parse(self.line(row).decode("utf-8", "surrogatepass"))

    def picture(self, digest: str) -> bytes | None:
        """Return the PNG with a digest, None if the run has none."""
        if not DIGEST.fullmatch(digest):
            return None
        folders: list[Mapping[str, bytes]] = [*folders_beside(self.path), self._pictures]
        content = next((folder[digest] for folder in folders if digest in folder), b"")
        return content if content.startswith(b"\x89PNG\r\n\x1a\n") else None

    def absent(self) -> str:
        """Describe the void and missing episodes of the run's report; "" if there are none."""
        if not (self.path.parent / report.NAME).is_file():
            return ""
        try:
            results = report.read(self.path.parent)
        except InstanceError:
            return f"{self.name}: {report.NAME} is damaged"
        counts = {
            "voided": len(results.outcomes) - len(results.played),
            "missing": max(0, results.planned - len(results.outcomes)),
        }
        text = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"{self.name}: {text}" if text else ""

    def close(self) -> None:
        """Close the file."""
        if isinstance(self._bytes, mmap.mmap):
            self._bytes.close()

    def _lines(self) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each complete line."""
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
    """Parse the fields at both ends of a line; None if it has another format."""
    head, tail = line.find(TURNS), line.rfind(AFTER)
    if not 0 < head < tail:
        return None
    try:
        before = json.loads(line[:head] + b'"end": 0}')
        after = json.loads(b"{" + line[tail + 3 :])
        return _facts(before, after, line.count(TURN))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _whole(line: bytes, path: Path) -> dict[str, Any]:
    try:
        record = json.loads(line)
        return _facts(record, record, len(record["turns"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise InstanceError(f"{path} has a line that is not a recorded episode: {line[:80]!r} ({error!r})") from error


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


def open_runs(paths: Sequence[Path]) -> list[RunFile]:
    """Open files of episodes, folders of a run, folders of several runs, and steps kept by training."""
    files = [file for path in paths for file in _files(path)]
    if others := [file for file in files if file.is_file() and file.suffix != ".jsonl"]:
        raise InstanceError(f"cannot view {others[0]}: view reads .jsonl; record with --out FILE.jsonl")
    return [RunFile(file, number) for number, file in enumerate(files)]


def _files(path: Path) -> list[Path]:
    if not path.is_dir() or (path / EPISODES).exists():
        return [path]
    for pattern in (f"*/{EPISODES}", "episodes/*.jsonl", "*.jsonl"):
        if files := sorted(path.glob(pattern)):
            return [file.parent if file.name == EPISODES else file for file in files]
    return [path]


@dataclass(frozen=True, kw_only=True)
class EpisodeFilter:
    """A filter of episodes; None matches any."""

    task: str | None = None  # id or a part of it
    outcome: str | None = None  # "success", "failure" or "truncated"
    instance: int | None = None

    def has(self, row: EpisodeRow) -> bool:
        """Return True if a row matches."""
        outcomes = {"success": row.success, "failure": not row.success, "truncated": row.truncated}
        return (
            (self.task is None or self.task.lower() in row.task.lower())
            and (self.outcome is None or outcomes[self.outcome])
            and (self.instance is None or row.index == self.instance)
        )


def listing(runs: Sequence[RunFile], rows: Sequence[EpisodeRow]) -> dict[str, Any]:
    """Return the episode list of the page as columns."""
    names = ("run", "id", "task", "split", "index", "attempt", "seat", "turns", "score", "success", "truncated", "stop")
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    columns["score"] = [score if score is not None and math.isfinite(score) else None for score in columns["score"]]
    absent = [text for run in runs if (text := run.absent())]
    return {"runs": [run.name for run in runs], "absent": absent, "count": len(rows), "columns": columns}
