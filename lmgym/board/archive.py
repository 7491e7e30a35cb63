"""Archiving of a table: all its entries are replayed on the task's next version, and the table is kept as it was."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import date
from pathlib import Path

import msgspec

from lmgym.board import entry as entries
from lmgym.board import history
from lmgym.board.entry import Entry, folder_name
from lmgym.board.removed import table_name
from lmgym.board.store import BoardStore
from lmgym.board.verify import replay_level, replays
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import protocol


def archive(store: BoardStore, old: str, new: str, *, reason: str) -> Path:
    """Archive the table of `old`, whose next version is `new`, and return the file of the archived table.

    The entries leave the board; their files move to `archive/`. Each one is replayed on `new`, and the table states
    whether its actions still earn the same. Seeds belong to a version, so nothing is carried over unplayed. `new` may
    equal `old` if the task stays as it is but asks for other episodes; its next table then starts with all names free.
    """
    paths = sorted((store.entries / folder_name(old)).glob("*.json"))
    if not paths:
        raise SubmissionError(f"there are no entries on {old}")
    rows = []
    for path in paths:
        entry = entries.read(path)
        verdict = store.verdict(entry)
        if verdict is None:
            raise SubmissionError(f"{entry.name} on {entry.task} has no verdict as it is; run lmgym board grade first")
        score = msgspec.to_builtins(verdict.score)
        row = {"name": entry.name, "title": entry.title, "mark": verdict.mark, "entry": verdict.entry, "score": score}
        rows.append({**row, "holds": _holds(entry, path, new)})
    before = sum((event.what, event.task) == ("archived", old) for event in history.read(store.log))
    folder = store.root / "archive" / table_name(old, before + 1)
    table = folder.with_suffix(".json")
    folder.mkdir(parents=True)
    today = date.today().isoformat()
    content = {"task": old, "next": new, "date": today, "reason": reason, "rows": rows}
    table.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")
    for path, row in zip(paths, rows, strict=True):
        for file in (path, entries.episodes_path(path)):
            file.rename(folder / file.name)
        store.verdict_path(old, row["name"]).unlink(missing_ok=True)
        history.append(
            store.log, date=today, what="removed", task=old, name=row["name"], entry=row["entry"], reason=row["holds"]
        )
    history.append(store.log, date=today, what="archived", task=old, reason=f"{reason} Next: {new}")
    return table


def _holds(entry: Entry, path: Path, new: str) -> str:
    """Return "yes" if an entry's actions earn the same on the task `new`, or else the first difference."""
    rules = protocol(new)
    if replay_level(rules)[0] == "none":
        return "not known: cannot be replayed here"
    with closing(replays(entry, rules.spec, path)) as answers:
        refusals = (answer["refused"] for _, answer in answers if "refused" in answer)
        return next((f"no: {refusal}" for refusal in refusals), "yes")
