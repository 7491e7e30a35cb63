"""Changes to a leaderboard, held against the leaderboard before: what strangers propose and what keepers commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from lmgym.board import entry as entries
from lmgym.board import history, parsing
from lmgym.board.copies import check_copy
from lmgym.board.entry import REFERENCES
from lmgym.board.store import BoardStore, check_system
from lmgym.board.verdict import Verdict
from lmgym.board.verify import verify
from lmgym.errors import SubmissionError

ENTRY_FILE = re.compile(r"entries/[^/]+/[^/]+(\.json|\.episodes\.jsonl\.zst)")


def verify_proposal(
    base: BoardStore, proposed: Path, verify: Callable[[Path], Verdict]
) -> Iterator[tuple[Path, Verdict]]:
    """Verify the entries that a stranger's leaderboard adds to `base`, and yield their verdicts.

    Raises SubmissionError for every other change, for names of other systems and for copies.
    """
    added = added_entries(base.root, proposed)
    present = [*entries.all_paths(base.entries), *added]
    for path in added:
        check_system(entries.read(path), map(entries.read, present))
    events = history.read(base.log)
    for path in added:
        verdict = verify(path)
        history.check_unused(events, verdict.task, verdict.name, verdict.entry)
        others = [other for other in present if other.parent.name == path.parent.name and other.name != path.name]
        check_copy(path, others, audited=verdict.audit is not None)
        yield path, verdict


def added_entries(base: Path, proposed: Path) -> list[Path]:
    """Return the entries that a leaderboard adds to `base`. Raises SubmissionError for every other change."""
    if proposed.is_symlink():
        raise SubmissionError(f"{proposed.name} is a link; a proposal is a folder")
    before, after = (_files(folder) for folder in (base, proposed))
    if missing := sorted(before.keys() - after.keys()):
        raise SubmissionError(f"{missing[0]} was removed; a proposal adds entries and leaves the rest as it is")
    for name in sorted(before):
        if before[name].read_bytes() != parsing.regular_file(after[name]).read_bytes():
            raise SubmissionError(f"{name} was changed; a proposal adds entries and leaves the rest as it is")
    added = sorted(after.keys() - before.keys())
    for name in added:
        parsing.regular_file(after[name])
        if not ENTRY_FILE.fullmatch(name):
            raise SubmissionError(f"{name} is not a file of an entry; the board writes verdicts and history itself")
    paths = [after[name] for name in added if name.endswith(".json")]
    if taken := [path.stem for path in paths if path.stem in REFERENCES]:
        raise SubmissionError(f"{taken[0]} is a reference, which only the board itself plays")
    complete = {entries.episodes_path(path) for path in paths} | set(paths)
    if alone := [name for name in added if after[name] not in complete]:
        raise SubmissionError(f"{alone[0]} has no JSON file beside it")
    return paths


def _files(root: Path) -> dict[str, Path]:
    """Return all files and links below a folder by their relative names."""
    return {
        path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_symlink() or not path.is_dir()
    }


def check_continuation(base: BoardStore, store: BoardStore) -> int:
    """Return how many lines a leaderboard's history has beyond that of `base`.

    Raises SubmissionError for links, for a history that was edited or cut, and for entries missing without a line.
    """
    if link := next((path for path in (store.root, *store.root.rglob("*")) if path.is_symlink()), None):
        raise SubmissionError(f"{link.name} is a link; a leaderboard consists of regular files")
    before, after = (_content(each.log) or b"" for each in (base, store))
    history.check_extends(before, after)
    store.check_complete()
    return len(after.splitlines()) - len(before.splitlines())


def recheck(base: BoardStore, store: BoardStore) -> list[Path]:
    """Replay every entry whose files or verdict differ from `base`, and return these entries.

    Raises SubmissionError for everything `check_continuation` refuses, and for a verdict that replay contradicts.
    Audits are not repeated: that ids were scored again remains the statement of the board's keepers.
    """
    check_continuation(base, store)
    changed = []
    for path in entries.all_paths(store.entries):
        files = (path, entries.episodes_path(path), store.root / "verdicts" / path.relative_to(store.entries))
        if any(_content(file) != _content(base.root / file.relative_to(store.root)) for file in files):
            changed.append(path)
    for path in changed:
        entry = entries.read(path)
        stated = store.verdict(entry)
        if stated is None:
            raise SubmissionError(f"{entry.name} on {entry.task} has no verdict as it is; run lmgym board grade")
        replayed = verify(path)
        audited = stated.audit is not None and (stated.mark, replayed.mark) == ("reproduced", "verified")
        mark = "verified" if audited else stated.mark
        comparable = msgspec.structs.replace(stated, mark=mark, audit=None, lmgym=replayed.lmgym)
        for name in replayed.__struct_fields__:
            claimed, actual = getattr(comparable, name), getattr(replayed, name)
            if claimed != actual:
                raise SubmissionError(
                    f"the verdict on {stated.name} on {stated.task} states {name} {str(claimed)[:60]}; replay gives "
                    f"{str(actual)[:60]}"
                )
    return changed


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
