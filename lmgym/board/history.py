"""What happened to the board, in order: each line holds the digest of the one before, so that no past can be edited.

A later line that says so takes an entry away or grades it again; the line that let it in stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from lmgym.board import parsing
from lmgym.board.entry import as_record, canonical
from lmgym.errors import SubmissionError

EventKind = Literal["added", "regraded", "removed", "committed", "archived"]
START = "0" * 64  # what the first line names as the one before


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One line."""

    number: int
    previous: str  # digest of the line before
    date: str  # YYYY-MM-DD
    what: EventKind
    task: str
    name: str = ""  # of the entry; none where a task is archived or a seed committed to
    entry: str = ""  # digest
    mark: str = ""
    score: float | None = None
    verdict: str = ""  # its digest
    digest: str = ""  # of a hidden seed
    reason: str = ""


def read(path: Path) -> list[Event]:
    """All events. Raises SubmissionError where the chain is broken."""
    return parse(path.read_bytes()) if path.is_file() else []


def parse(content: bytes) -> list[Event]:
    """The events of a file's content."""
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
    """Add an event, given all but its number and the digest of the line before."""
    content = path.read_bytes() if path.is_file() else b""
    events = parse(content)
    previous = parsing.digest(content.splitlines()[-1]) if events else START
    event = Event(number=len(events) + 1, previous=previous, **fields)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(canonical(event) + b"\n")
    return event


def check_extends(old: bytes, new: bytes) -> None:
    """Raise SubmissionError unless `new` is `old` with whole lines added."""
    if not new.startswith(old):
        raise SubmissionError("the history was changed; lines may only be added to it")
    parse(new)


def current(events: Sequence[Event], task: str, name: str) -> Event | None:
    """The latest event of an entry; None where there is none, or it was removed."""
    latest = [event for event in events if (event.task, event.name) == (task, name)]
    return latest[-1] if latest and latest[-1].what != "removed" else None


def all_current(events: Sequence[Event]) -> list[Event]:
    """The latest event of every entry that was let in and not taken away since."""
    latest = {(event.task, event.name): event for event in events if event.name}
    return [event for event in latest.values() if event.what != "removed"]


def check_new(events: Sequence[Event], task: str, name: str, digest: str) -> None:
    """Raise SubmissionError where the name is another entry's, removed ones included, since the table was begun."""
    begun = max((event.number for event in events if (event.what, event.task) == ("archived", task)), default=0)
    for event in events[begun:]:
        if event.what == "added" and (event.task, event.name) == (task, name) and event.entry != digest:
            raise SubmissionError(f"{name} on {task} is another entry's name since {event.date}: choose another --name")


def committed(events: Sequence[Event], task: str, digest: str) -> Event | None:
    """The event that published the digest of a hidden seed."""
    return next((e for e in events if (e.what, e.task, e.digest) == ("committed", task, digest)), None)
