"""A changed board held against the one before: the history goes on, and every new verdict is found again by replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from lmgym.board import entry as entries
from lmgym.board import history
from lmgym.board.store import BoardStore
from lmgym.board.verdict import Verdict
from lmgym.board.verify import verify
from lmgym.errors import SubmissionError


def recheck(base: BoardStore, store: BoardStore) -> list[Path]:
    """The entries whose verdict differs from the base's, each replayed and found as its verdict says.

    Raises SubmissionError for links, for a history that was edited, for an entry that is gone without a line that says
    so, and for a verdict that replay does not find. What only the policy itself can show (ids scored again, fresh
    instances) stays the word of whoever keeps the board.
    """
    check_links(store.root)
    history.check_extends(*(each.log.read_bytes() if each.log.is_file() else b"" for each in (base, store)))
    store.check_whole()
    changed = list(_changed(base, store))
    for path in changed:
        found = entries.read(path)
        stated = store.verdict(found)
        if stated is None:
            raise SubmissionError(f"{found.name} on {found.task} was never verified as it is: lmgym board grade")
        _check_equal(stated, verify(path))
    return changed


def check_links(root: Path) -> None:
    """Raise SubmissionError where a folder is a link or holds one: it would be read in the place of something else."""
    if link := next((path for path in (root, *root.rglob("*")) if path.is_symlink()), None):
        raise SubmissionError(f"{link.name} is a link; a leaderboard is made of plain files")


def _changed(base: BoardStore, store: BoardStore) -> Iterator[Path]:
    """Entries of which anything, or whose verdict, is not as in the base."""
    for path in entries.all_paths(store.entries):
        files = (path, entries.episodes_path(path), store.root / "verdicts" / path.relative_to(store.entries))
        if any(_content(file) != _content(base.root / file.relative_to(store.root)) for file in files):
            yield path


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _check_equal(stated: Verdict, found: Verdict) -> None:
    """Whether a verdict says what replay finds, whichever version of lmgym wrote it."""
    mark = stated.mark
    if mark == "reproduced" and found.mark == "verified" and (stated.audit or stated.fresh):
        mark = "verified"
    held = msgspec.structs.replace(stated, mark=mark, audit=None, fresh=None, lmgym=found.lmgym)
    for name in found.__struct_fields__:
        said, is_so = getattr(held, name), getattr(found, name)
        if said != is_so:
            raise SubmissionError(
                f"the verdict on {stated.name} on {stated.task} says {name} {str(said)[:60]}; replay finds "
                f"{str(is_so)[:60]}"
            )
