"""Entries that left the board: their permalinks stay, and state where they went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgym.board.entry import folder_name
from lmgym.board.history import Event


@dataclass(frozen=True)
class RemovedEntry:
    """An entry that was on the board once."""

    events: Sequence[Event]  # all events of the entry; the last one removed it
    table: str = ""  # name of the archived table it left with; "": it was removed alone

    @property
    def left(self) -> Event:
        """Event of its removal."""
        return self.events[-1]


def table_name(task: str, number: int) -> str:
    """Return the name of a task's archived table; the first one is number 1."""
    return folder_name(task) + (f"-{number}" if number > 1 else "")


def archived(events: Sequence[Event]) -> dict[int, str]:
    """Return the names of archived tables by the numbers of the events that closed them."""
    closed: dict[str, list[int]] = {}
    for event in events:
        if event.what == "archived":
            closed.setdefault(event.task, []).append(event.number)
    return {line: table_name(task, n) for task, lines in closed.items() for n, line in enumerate(lines, 1)}


def removed_entries(events: Sequence[Event], archives: Mapping[str, Any]) -> list[RemovedEntry]:
    """Return the entries whose latest event removed them; `archives` holds the archived tables by name."""
    by_entry: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        if event.name:
            by_entry.setdefault((event.task, event.name), []).append(event)
    closed = archived(events)
    removed = []
    for own in by_entry.values():
        if (left := own[-1]).what != "removed":
            continue
        later = (name for line, name in closed.items() if line > left.number and events[line - 1].task == left.task)
        table = next(later, "")
        rows = archives.get(table, {}).get("rows", ())
        archived_here = any((row["name"], row["entry"]) == (left.name, left.entry) for row in rows)
        removed.append(RemovedEntry(own, table if archived_here else ""))
    return removed
