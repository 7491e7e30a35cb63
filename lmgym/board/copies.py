"""Entries that do what another did before: the same actions at every try say nothing of a second player.

Names, ids and numbers of tokens are easily changed; the actions are what replay proves. Two policies may still act
alike, so that ids scored again under weights of its own tell an entry from a copy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.check import RESERVED
from lmgym.board.history import Event
from lmgym.errors import SubmissionError


def deeds(path: Path) -> str:
    """Digest of who did what at each try of an entry: instance, try, seats and actions."""
    digest = hashlib.sha256()
    for line in parsing.lines(entries.episodes_path(path)):
        found = entries.episode(line, path.name)
        acts = [(ply.seat, ply.action) for ply in found.turns if ply.action is not None]
        digest.update(json.dumps([found.index, found.attempt, acts]).encode())
    return digest.hexdigest()


def check_copy(path: Path, others: Sequence[Path], *, scored: bool) -> None:
    """Raise SubmissionError where an entry's actions are those of one of `others`, which were there before.

    References may happen to act alike. Where ids were `scored` again, an entry may act as one of other weights does.
    """
    found = entries.read(path)
    if found.name in RESERVED:
        return
    mine = deeds(path) if others else ""
    for place in others:
        if deeds(place) != mine:
            continue
        other = entries.read(place)
        if not scored or found.policy.weights in (None, other.policy.weights):
            raise SubmissionError(
                f"the actions of {found.name} are those of {other.name} on {other.task}: these episodes are there "
                "already"
            )


def order(events: Sequence[Event]) -> dict[tuple[str, str], int]:
    """The line that let an entry in, by task and name; the latest where it left in between."""
    return {(event.task, event.name): event.number for event in events if event.what == "added"}
