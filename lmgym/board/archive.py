"""A task's next version: all entries of the old one are replayed on it, and the old table is kept as it stood."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from lmgym.board import entry as entries
from lmgym.board import history, parsing
from lmgym.board.entry import Entry, folder_name
from lmgym.board.removed import table_name
from lmgym.board.store import BoardStore
from lmgym.board.workers import WorkerPool, isolating
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import protocol


def archive(store: BoardStore, old: str, new: str, *, reason: str) -> Path:
    """Close the table of `old`, whose next version is `new`; return the file of the archived table.

    The entries leave the board, their files stay under `archive/`. Each was replayed on `new`: whether its actions
    still earn the same stands beside it. Seeds are the version's own, so nothing is carried over unplayed. Where
    `new` is `old`, the task is the same and asks for other episodes: its next table begins, with all names free.
    """
    folder = store.entries / folder_name(old)
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise SubmissionError(f"there are no entries on {old}")
    rows = [_row(store, path, new) for path in paths]
    before = sum((event.what, event.task) == ("archived", old) for event in history.read(store.log))
    kept = store.root / "archive" / table_name(old, before + 1)
    table = kept.with_suffix(".json")
    kept.mkdir(parents=True)
    today = date.today().isoformat()
    content = {"task": old, "next": new, "date": today, "reason": reason, "rows": rows}
    table.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")
    for path, row in zip(paths, rows, strict=True):
        for file in (path, entries.episodes_path(path)):
            file.rename(kept / file.name)
        store.verdict_path(old, row["name"]).unlink(missing_ok=True)
        history.append(
            store.log, date=today, what="removed", task=old, name=row["name"], entry=row["entry"], reason=row["holds"]
        )
    history.append(store.log, date=today, what="archived", task=old, reason=f"{reason} Next: {new}")
    return table


def _row(store: BoardStore, path: Path, new: str) -> dict[str, Any]:
    found = entries.read(path)
    verdict = store.verdict(found)
    if verdict is None:
        raise SubmissionError(f"{found.name} on {found.task} was never verified as it is; the old table is not whole")
    return {
        "name": found.name,
        "title": found.title,
        "mark": verdict.mark,
        "entry": verdict.entry,
        "score": msgspec.to_builtins(verdict.score),
        "holds": _holds(found, path, new),
    }


def _holds(found: Entry, path: Path, new: str) -> str:
    """Whether the actions of an entry earn the same on another task, or where they first do not."""
    spec = protocol(new).spec
    if not spec.deterministic or (spec.runs_code and not isolating()):
        return "not known: cannot be replayed here"
    order = {"task": new, "split": found.split, "seats": list(found.seats), "exact": spec.goldens == "exact"}
    with closing(WorkerPool(order, isolated=spec.runs_code).run(parsing.lines(entries.episodes_path(path)))) as answers:
        for _, answer in answers:
            if "refused" in answer:
                return f"no: {answer['refused']}"
    return "yes"
