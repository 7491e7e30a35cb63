"""Which conversation holds which slot of the key-value cache, and what of the slot's contents is still good."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field

from lmgym.policy.local.sharing import WIDTH


@dataclass
class Slot:
    """What a slot's keys and values stand for."""

    ids: Sequence[int] = ()
    origin: bytes = b""  # the prompt it was begun with, packed: other conversations may begin with the same


@dataclass
class Places:
    """A fixed number of slots, the lowest free one first, so that those in use lie close together."""

    size: int
    slots: list[Slot] = field(init=False)
    held: dict[Hashable, int] = field(default_factory=dict)  # key -> slot, the longest unused first
    free: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.slots = [Slot() for _ in range(self.size)]
        self.free = list(range(self.size))

    def claim(self, key: Hashable, ids: Sequence[int], busy: Collection[Hashable]) -> tuple[int, int] | None:
        """The slot of `key` and how many of `ids` it holds already; None if all slots belong to `busy` keys."""
        slot = self.held.pop(key, None)
        if slot is None:
            slot = self._vacant(busy)
            if slot is None:
                return None
            self.slots[slot] = Slot()
        self.held[key] = slot
        content = self.slots[slot]
        good = _common(content.ids, ids)
        content.origin = content.origin[: good * WIDTH]
        return slot, min(good, len(ids) - 1)  # the last one is computed for its logits

    def release(self, key: Hashable) -> None:
        """Give the slot of `key` back; what is in it stays good for others until it is claimed."""
        if key in self.held:
            heapq.heappush(self.free, self.held.pop(key))

    def forget(self) -> None:
        """Contents of all slots have become worthless."""
        self.slots = [Slot() for _ in range(self.size)]

    def _vacant(self, busy: Collection[Hashable]) -> int | None:
        if self.free:
            return heapq.heappop(self.free)
        oldest = next((key for key in self.held if key not in busy), None)
        return None if oldest is None else self.held.pop(oldest)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common beginning."""
    size = min(len(one), len(other))
    if list(one[:size]) == list(other[:size]):
        return size
    return next(i for i in range(size) if one[i] != other[i])
