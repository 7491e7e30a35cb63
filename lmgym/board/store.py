"""The folder of a leaderboard: entries, what verification said of them, and their history."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from lmgym.board import entry as entries
from lmgym.board import history, parsing
from lmgym.board.check import RESERVED
from lmgym.board.copies import check_copy, order
from lmgym.board.entry import Entry
from lmgym.board.history import Event
from lmgym.board.verdict import Verdict
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import promise

ENTRY_FILE = re.compile(r"entries/[^/]+/[^/]+(\.json|\.episodes\.jsonl\.zst)")


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
        """The history."""
        return self.root / "history.jsonl"

    def path(self, task: str, name: str) -> Path:
        """JSON file of an entry."""
        return self.entries / entries.folder_name(task) / f"{name}.json"

    def verdict_path(self, task: str, name: str) -> Path:
        """What verification said of it."""
        return self.root / "verdicts" / entries.folder_name(task) / f"{name}.json"

    def verdict(self, found: Entry) -> Verdict | None:
        """What verification said of an entry as it is; None where it said nothing, or of another version of it."""
        path = self.verdict_path(found.task, found.name)
        if not path.is_file():
            return None
        verdict = entries.as_record(parsing.parse(path.read_bytes(), path.name), Verdict, path.name)
        return verdict if verdict.entry == entries.digest(found) else None

    def admit(self, found: Entry, verdict: Verdict, *, reason: str = "") -> None:
        """Keep a verdict and say so in the history. An entry that stands is graded again; nothing is overwritten."""
        events = history.read(self.log)
        digest = entries.digest(found)
        if verdict.entry != digest:
            raise SubmissionError(f"the verdict is about another entry than {found.name} on {found.task}")
        history.check_new(events, found.task, found.name, digest)
        check_others(found, (entries.read(path) for path in entries.all_paths(self.entries)))
        self.check_copy(found, events, scored=verdict.audit is not None)
        before = history.current(events, found.task, found.name)
        if before is not None and not reason:
            raise SubmissionError(f"{found.name} on {found.task} was graded on {before.date}: say why it is again")
        path = self.verdict_path(found.task, found.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entries.canonical(verdict) + b"\n")
        history.append(
            self.log,
            date=date.today().isoformat(),
            what="added" if before is None else "regraded",
            task=found.task,
            name=found.name,
            entry=digest,
            mark=verdict.mark,
            score=verdict.score.mean,
            verdict=parsing.digest(entries.canonical(verdict)),
            reason="" if before is None else reason,
        )

    def check_copy(self, found: Entry, events: Sequence[Event], *, scored: bool) -> None:
        """Raise SubmissionError where an entry does what another of its task did that was let in before."""
        added = order(events)
        own = added.get((found.task, found.name), len(events) + 1)
        stand = [event.name for event in history.all_current(events) if event.task == found.task]
        before = [self.path(found.task, name) for name in stand if added[found.task, name] < own]
        check_copy(self.path(found.task, found.name), before, scored=scored)

    def remove(self, task: str, name: str, *, reason: str) -> None:
        """Take an entry off the board; the history keeps that it was there."""
        before = history.current(history.read(self.log), task, name)
        if before is None:
            raise SubmissionError(f"there is no entry {name} on {task}")
        today = date.today().isoformat()
        history.append(self.log, date=today, what="removed", task=task, name=name, entry=before.entry, reason=reason)
        for path in (self.path(task, name), self.verdict_path(task, name)):
            path.unlink(missing_ok=True)
        entries.episodes_path(self.path(task, name)).unlink(missing_ok=True)

    def stale(self) -> list[Path]:
        """Entries that no verdict stands for, or one found when the task promised something else."""
        found = [(path, entries.read(path)) for path in entries.all_paths(self.entries)]
        verdicts = [(path, entry.task, self.verdict(entry)) for path, entry in found]
        return [path for path, task, verdict in verdicts if verdict is None or verdict.promise != promise(task)]

    def commit(self, task: str, digest: str, *, reason: str) -> None:
        """Publish the digest of a hidden seed, before anything is drawn from it."""
        history.append(
            self.log, date=date.today().isoformat(), what="committed", task=task, digest=digest, reason=reason
        )

    def check_whole(self) -> None:
        """Raise SubmissionError where an entry that stands in the history is gone, or its episodes are."""
        for event in history.all_current(history.read(self.log)):
            path = self.path(event.task, event.name)
            for file in (path, entries.episodes_path(path)):
                if not file.is_file():
                    raise SubmissionError(
                        f"{event.name} on {event.task} stands in the history since {event.date}, but "
                        f"{file.relative_to(self.root)} is gone: entries leave by lmgym board remove"
                    )

    def all(self) -> Iterator[tuple[Entry, Verdict | None]]:
        """Entries with what verification said of them."""
        for path in entries.all_paths(self.entries):
            found = entries.read(path)
            yield found, self.verdict(found)


def check_others(found: Entry, others: Iterable[Entry]) -> None:
    """Raise SubmissionError where an entry's name is another's system: one policy of one author's on all tasks."""
    for other in others:
        if (other.task, other.name) == (found.task, found.name):
            continue
        if other.name == found.name and (other.authors, other.policy) != (found.authors, found.policy):
            raise SubmissionError(
                f"{found.name} is the name of another system on {other.task}: one policy, of the same authors, has one "
                "name; choose another --name"
            )


def new_entries(base: Path, proposed: Path) -> list[Path]:
    """Entries that a changed leaderboard adds to another.

    Raises SubmissionError for every other change: a proposal adds entries, and nothing it says about them counts.
    """
    if proposed.is_symlink():
        raise SubmissionError(f"{proposed.name} is a link; a proposal is a folder")
    before, after = (_files(folder) for folder in (base, proposed))
    if gone := sorted(before.keys() - after.keys()):
        raise SubmissionError(f"{gone[0]} was removed; a proposal adds entries and leaves all else as it is")
    for name in sorted(before):
        if before[name].read_bytes() != parsing.regular(after[name]).read_bytes():
            raise SubmissionError(f"{name} was changed; a proposal adds entries and leaves all else as it is")
    added = sorted(after.keys() - before.keys())
    for name in added:
        parsing.regular(after[name])
        if not ENTRY_FILE.fullmatch(name):
            raise SubmissionError(f"{name} is no file of an entry; verdicts and history are written by the board")
    found = [after[name] for name in added if name.endswith(".json")]
    if taken := [path.stem for path in found if path.stem in RESERVED]:
        raise SubmissionError(f"{taken[0]} is a reference: those are played by the board itself")
    beside = {entries.episodes_path(path) for path in found} | set(found)
    if alone := [name for name in added if after[name] not in beside]:
        raise SubmissionError(f"{alone[0]} has no JSON file beside it")
    return found


def _files(root: Path) -> dict[str, Path]:
    """All files under a folder by their relative names; links count as files."""
    return {
        path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_symlink() or not path.is_dir()
    }
