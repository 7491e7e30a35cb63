"""Entries that left the board: their permalinks stay, and say where they went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgym.board.entry import folder_name
from lmgym.board.history import Event
from lmgym.board.tables import permalink


@dataclass(frozen=True)
class Gone:
    """An entry that stood on the board once: its permalink says where it went."""

    events: Sequence[Event]  # all that are about it; the last took it away
    archived: bool = False  # with its table

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
        return f"archive/{folder_name(self.task)}.html"


def all_gone(events: Sequence[Event], archives: Mapping[str, Any]) -> list[Gone]:
    """Entries whose latest event took them away; `archives` are the archived tables by folder."""
    told: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        if event.name:
            told.setdefault((event.task, event.name), []).append(event)
    left = {key: found for key, found in told.items() if found[-1].what == "removed"}
    tables = {task: archives.get(folder_name(task), {}).get("rows", ()) for task, _ in left}
    return [Gone(es, any(row["name"] == name for row in tables[task])) for (task, name), es in left.items()]
