"""The folder of a leaderboard: its entries, their verdicts, and its history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from lmgym.board import entry as entries
from lmgym.board import history, parsing
from lmgym.board.copies import check_copy
from lmgym.board.entry import Entry
from lmgym.board.history import Event
from lmgym.board.verdict import Verdict
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import promise


@dataclass(frozen=True)
class BoardStore:
    """A leaderboard on disk."""

    root: Path

    @property
    def entries(self) -> Path:
        """Folder of the entries, by task."""
        return self.root / "entries"

    @property
    def log(self) -> Path:
        """File of the history."""
        return self.root / "history.jsonl"

    def path(self, task: str, name: str) -> Path:
        """Return the JSON file of an entry."""
        return self.entries / entries.folder_name(task) / f"{name}.json"

    def verdict_path(self, task: str, name: str) -> Path:
        """Return the file of an entry's verdict."""
        return self.root / "verdicts" / entries.folder_name(task) / f"{name}.json"

    def verdict(self, entry: Entry) -> Verdict | None:
        """Return an entry's verdict; None where there is none, or it is about another version of the entry."""
        path = self.verdict_path(entry.task, entry.name)
        if not path.is_file():
            return None
        verdict = entries.as_record(parsing.parse(path.read_bytes(), path.name), Verdict, path.name)
        return verdict if verdict.entry == entries.digest(entry) else None

    def stale(self) -> list[Path]:
        """Return the entries without a valid verdict: it is missing, or the task's golden episodes changed since."""
        paths = []
        for path in entries.all_paths(self.entries):
            entry = entries.read(path)
            verdict = self.verdict(entry)
            if verdict is None or verdict.promise != promise(entry.task):
                paths.append(path)
        return paths

    def admit(self, entry: Entry, verdict: Verdict, *, reason: str = "") -> None:
        """Store a verdict and log it. An entry that is already on the board is graded again, for a `reason`."""
        events = history.read(self.log)
        digest = entries.digest(entry)
        if verdict.entry != digest:
            raise SubmissionError(f"the verdict is not about {entry.name} on {entry.task} as it is")
        history.check_unused(events, entry.task, entry.name, digest)
        check_system(entry, (entries.read(path) for path in entries.all_paths(self.entries)))
        self.check_copy(entry, events, audited=verdict.audit is not None)
        before = history.current(events, entry.task, entry.name)
        if before is not None and not reason:
            raise SubmissionError(f"{entry.name} on {entry.task} was graded on {before.date}; give a --reason")
        path = self.verdict_path(entry.task, entry.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entries.canonical(verdict) + b"\n")
        history.append(
            self.log,
            date=date.today().isoformat(),
            what="added" if before is None else "regraded",
            task=entry.task,
            name=entry.name,
            entry=digest,
            mark=verdict.mark,
            score=verdict.score.mean,
            verdict=parsing.digest(entries.canonical(verdict)),
            reason="" if before is None else reason,
        )

    def check_copy(self, entry: Entry, events: Sequence[Event], *, audited: bool) -> None:
        """Raise SubmissionError where an entry repeats the play of one that was added to its table before."""
        added = {(event.task, event.name): event.number for event in events if event.what == "added"}  # the latest
        own = added.get((entry.task, entry.name), len(events) + 1)
        names = [event.name for event in history.all_current(events) if event.task == entry.task]
        earlier = [self.path(entry.task, name) for name in names if added[entry.task, name] < own]
        check_copy(self.path(entry.task, entry.name), earlier, audited=audited)

    def remove(self, task: str, name: str, *, reason: str) -> None:
        """Remove an entry from the board; the history keeps that it was there."""
        before = history.current(history.read(self.log), task, name)
        if before is None:
            raise SubmissionError(f"there is no entry {name} on {task}")
        today = date.today().isoformat()
        history.append(self.log, date=today, what="removed", task=task, name=name, entry=before.entry, reason=reason)
        path = self.path(task, name)
        for file in (path, entries.episodes_path(path), self.verdict_path(task, name)):
            file.unlink(missing_ok=True)

    def check_complete(self) -> None:
        """Raise SubmissionError where a file of an entry is missing although the history has the entry."""
        for event in history.all_current(history.read(self.log)):
            path = self.path(event.task, event.name)
            for file in (path, entries.episodes_path(path)):
                if not file.is_file():
                    raise SubmissionError(
                        f"{event.name} on {event.task} is in the history since {event.date}, but "
                        f"{file.relative_to(self.root)} is missing; remove entries by lmgym board remove"
                    )


def check_system(entry: Entry, others: Iterable[Entry]) -> None:
    """Raise SubmissionError where an entry's name belongs to another system."""
    for other in others:
        if (other.task, other.name) == (entry.task, entry.name):
            continue
        if other.name == entry.name and (other.authors, other.policy) != (entry.authors, entry.policy):
            raise SubmissionError(
                f"{entry.name} names another system on {other.task}: a name stands for one policy of the same authors; "
                "choose another --name"
            )
