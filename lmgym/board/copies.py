"""Detection of entries that repeat another entry's play under a new name.

Names, titles, token counts and the wording around an action are easily changed, so actions are compared as words
without case, spacing and punctuation, and one may be embedded in other words; token ids are compared as they are. Two
policies may still act alike: ids scored again under an entry's own weights tell it from a copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from lmgym.board import entry as entries
from lmgym.board.entry import REFERENCES, RecordedEpisode, RecordedTurn
from lmgym.board.texts import words_of
from lmgym.errors import SubmissionError


def check_copy(path: Path, others: Iterable[Path], *, audited: bool) -> None:
    """Raise SubmissionError where the entry at `path` repeats one of the earlier entries `others`.

    References may act alike. An `audited` entry, whose ids were scored again, may act as one of other weights does.
    """
    entry = entries.read(path)
    if entry.name in REFERENCES:
        return
    for place in others:
        pairs = itertools.zip_longest(entries.read_episodes(path), entries.read_episodes(place))
        if not all(a is not None and b is not None and _same_play(a, b) for a, b in pairs):  # stops at the first
            continue
        other = entries.read(place)
        if not audited or entry.policy.weights in (None, other.policy.weights):
            raise SubmissionError(
                f"{entry.name} repeats the actions or token ids of {other.name} on {other.task}: a copy of an entry "
                "is no entry"
            )


def _same_play(a: RecordedEpisode, b: RecordedEpisode) -> bool:
    ids = [[turn.ids for turn in episode.turns] for episode in (a, b)]
    if ids[0] == ids[1] and all(ids[0]):
        return True
    acts = [[turn for turn in episode.turns if turn.action is not None] for episode in (a, b)]
    return len(acts[0]) == len(acts[1]) and all(map(_same_action, *acts))


def _same_action(a: RecordedTurn, b: RecordedTurn) -> bool:
    if a.seat != b.seat:
        return False
    if a.action == b.action:
        return True
    shorter, longer = sorted((f" {' '.join(words_of(turn.action or ''))} " for turn in (a, b)), key=len)
    return shorter == longer or (shorter.strip() != "" and shorter in longer)
