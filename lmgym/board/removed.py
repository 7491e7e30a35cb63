"""Entries that left the board: their permalinks stay, and say where they went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgym.board.entry import folder_name
from lmgym.board.history import Event
from lmgym.board.tables import permalink


@dataclass(frozen=True)
class RemovedEntry:
    """An entry that stood on the board once: its permalink says where it went."""

    events: Sequence[Event]  # all that are about it; the last took it away
    table: str = ""  # with which it was archived: name of its file; "": it was removed alone

    @property
    def left(self) -> Event:
        """How it left."""
        return self.events[-1]

    @property
    def task(self) -> str:
        """Id."""
        return self.left.task

    @property
    def name(self) -> str:
        """Of the system."""
        return self.left.name

    @property
    def link(self) -> str:
        """Permalink, from the site's root."""
        return permalink(self.task, self.name)

    @property
    def archive(self) -> str:
        """Page of the archived table."""
        return f"archive/{self.table}.html"


def table_name(task: str, number: int) -> str:
    """Name of a task's archived table without the suffix; the first is number 1."""
    return folder_name(task) + (f"-{number}" if number > 1 else "")


def archived(events: Sequence[Event]) -> dict[int, str]:
    """Names of archived tables by the numbers of the lines that closed them."""
    closed: dict[str, list[int]] = {}
    for event in events:
        if event.what == "archived":
            closed.setdefault(event.task, []).append(event.number)
    return {line: table_name(task, n) for task, lines in closed.items() for n, line in enumerate(lines, 1)}


def removed_entries(events: Sequence[Event], archives: Mapping[str, Any]) -> list[RemovedEntry]:
    """Entries whose latest event took them away; `archives` are the archived tables by name."""
    told: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        if event.name:
            told.setdefault((event.task, event.name), []).append(event)
    left = {key: found for key, found in told.items() if found[-1].what == "removed"}
    closed = archived(events)
    return [RemovedEntry(found, _table(found[-1], events, closed, archives)) for found in left.values()]


def _table(left: Event, events: Sequence[Event], closed: Mapping[int, str], archives: Mapping[str, Any]) -> str:
    """Name of the table that an entry left with."""
    names = [name for line, name in closed.items() if line > left.number and events[line - 1].task == left.task]
    rows = archives.get(names[0], {}).get("rows", ()) if names else ()
    return names[0] if any((row["name"], row["entry"]) == (left.name, left.entry) for row in rows) else ""
