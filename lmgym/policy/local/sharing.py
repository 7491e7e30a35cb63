"""Prompts that begin alike are computed once: who copies how much of whose keys and values, and when.

Sorted by their ids, a prompt shares most with its neighbour. Of the prompts before it, one that itself computed the
end of the shared part has to be ready first: that makes waves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

WIDTH = 4  # bytes of an id: big-endian, so that bytes sort as the ids do


@dataclass(frozen=True)
class Copy:
    """The first `length` positions of slot `source` are given to slot `target` before wave `wave`."""

    source: int
    target: int
    length: int
    wave: int


def packed(ids: Sequence[int]) -> bytes:
    """Ids as bytes that sort like them."""
    return np.asarray(ids, dtype=">u4").tobytes()


def shared(one: bytes, other: bytes) -> int:
    """How many ids two packed sequences have in common at their beginning."""
    size = min(len(one), len(other)) // WIDTH
    a, b = (np.frombuffer(x, dtype=">u4", count=size) for x in (one, other))
    differ = np.flatnonzero(a != b)
    return int(differ[0]) if differ.size else size


def plan(cold: Mapping[int, bytes], live: Mapping[int, bytes], *, least: int = 16) -> list[Copy]:
    """Copies for the `cold` slots, from each other or from `live` ones; both map a slot to its packed ids.

    Shares of fewer than `least` ids are not worth a copy. A cold slot keeps at least its last id to compute.
    """
    entries = sorted([(ids, i, False) for i, ids in cold.items()] + [(ids, i, True) for i, ids in live.items()])
    copies: list[Copy] = []
    ready: list[tuple[int, int, int]] = []  # (slot, from which id on it computed, its wave), each needing those below
    last = b""
    for ids, slot, is_live in entries:
        size = 0 if is_live else min(shared(last, ids), len(ids) // WIDTH - 1)
        last = ids
        while ready and ready[-1][1] >= size:
            ready.pop()
        wave = 0
        if ready and size >= least:
            wave = ready[-1][2] + 1
            copies.append(Copy(source=ready[-1][0], target=slot, length=size, wave=wave))
        ready.append((slot, size if wave else 0, -1 if is_live else wave))
    return sorted(copies, key=lambda copy: copy.wave)
