"""History of the board: a log whose lines hold the digest of the line before, so that no past can be edited.

A later line records that an entry was removed or graded again; the line that added it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from lmgym.board import parsing
from lmgym.board.entry import as_record, canonical
from lmgym.errors import SubmissionError

EventKind = Literal["added", "regraded", "removed", "archived"]
START = "0" * 64  # stands in the first line for the digest of the line before


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One line of the history."""

    number: int
    previous: str  # digest of the line before
    date: str  # YYYY-MM-DD
    what: EventKind
    task: str
    name: str = ""  # of the entry; empty where a table is archived
    entry: str = ""  # the entry's digest
    mark: str = ""
    score: float | None = None
    verdict: str = ""  # the verdict's digest
    reason: str = ""


def read(path: Path) -> list[Event]:
    """Read all events. Raises SubmissionError where the chain of digests is broken."""
    return parse(path.read_bytes()) if path.is_file() else []


def parse(content: bytes) -> list[Event]:
    """Parse the content of a history file."""
    events: list[Event] = []
    previous = START
    for number, line in enumerate(content.splitlines(), 1):
        event = as_record(parsing.parse(line, f"history, line {number}"), Event, f"history, line {number}")
        if canonical(event) != line or event.number != number:
            raise SubmissionError(f"history, line {number} is not as it was written")
        if event.previous != previous:
            raise SubmissionError(f"history, line {number} does not follow line {number - 1}: the chain is broken")
        previous = parsing.digest(line)
        events.append(event)
    return events


def append(path: Path, **fields: Any) -> Event:
    """Append an event; its number and the digest of the line before are filled in."""
    content = path.read_bytes() if path.is_file() else b""
    events = parse(content)
    previous = parsing.digest(content.splitlines()[-1]) if events else START
    event = Event(number=len(events) + 1, previous=previous, **fields)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(canonical(event) + b"\n")
    return event


def check_extends(old: bytes, new: bytes) -> None:
    """Raise SubmissionError unless `new` is `old` with complete lines added."""
    if not new.startswith(old):
        raise SubmissionError("the history was changed; lines may only be appended")
    parse(new)


def current(events: Sequence[Event], task: str, name: str) -> Event | None:
    """Return the latest event of an entry; None where it never was on the board, or was removed."""
    latest = [event for event in events if (event.task, event.name) == (task, name)]
    return latest[-1] if latest and latest[-1].what != "removed" else None


def all_current(events: Sequence[Event]) -> list[Event]:
    """Return the latest event of every entry that is on the board."""
    latest = {(event.task, event.name): event for event in events if event.name}
    return [event for event in latest.values() if event.what != "removed"]


def check_unused(events: Sequence[Event], task: str, name: str, digest: str) -> None:
    """Raise SubmissionError where the current table had another entry of this name, even a removed one."""
    start = max((event.number for event in events if (event.what, event.task) == ("archived", task)), default=0)
    for event in events[start:]:
        if event.what == "added" and (event.task, event.name) == (task, name) and event.entry != digest:
            raise SubmissionError(f"{name} on {task} names another entry since {event.date}; choose another --name")
