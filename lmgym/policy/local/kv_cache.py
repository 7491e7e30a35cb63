"""The key-value cache: its tensors, the slots that conversations hold, and the prefixes that slots share.

A slot belongs to one conversation and keeps its keys and values between turns. Prompts that begin alike are computed
once: `plan_copies` says which slots copy the shared prefix from which.
"""

from __future__ import annotations

import heapq
import math
import os
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from lmgym.policy.local.graphs import StepGraphs

ID_BYTES = 4  # bytes of a packed id: big-endian, so that bytes sort as the ids do


@dataclass
class KVCache:
    """Keys and values of all layers, each (slots, Hk, positions, D); layers are allocated when first written."""

    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    slots: int = 8
    positions: int = 256
    most: int | None = None  # slots to keep when the cache grows
    graphs: StepGraphs | None = None  # captured passes over these tensors, on a GPU

    def reserve(self, slots: int, positions: int) -> None:
        """Make room for `slots` conversations of `positions` tokens; both sizes grow by doubling."""
        if slots <= self.slots and positions <= self.positions:
            return
        self.positions = doubled(self.positions, positions)
        self.slots = doubled(self.slots, slots)
        if self.most is not None:
            self.slots = max(slots, min(self.slots, self.most))
        self.graphs = None
        for layers in (self.keys, self.values):
            for number, layer in enumerate(layers):  # one by one, so that each old layer is freed
                layers[number] = self._grown(layer)

    def write(self, layer: int, slots: Tensor, positions: Tensor, keys: Tensor, values: Tensor) -> None:
        """Write `keys` and `values` (N, Hk, D) at `slots` (N,) and `positions` (N,)."""
        if layer == len(self.keys):
            shape = (self.slots, keys.shape[1], self.positions)
            self.keys.append(keys.new_zeros(*shape, keys.shape[2]))
            self.values.append(values.new_zeros(*shape, values.shape[2]))
        self.keys[layer][slots, :, positions] = keys
        self.values[layer][slots, :, positions] = values

    def read(self, layer: int, rows: slice | Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Return keys and values of `rows`, (R, Hk, length, D): views for a slice, copies for indices."""
        keys, values = self.keys[layer], self.values[layer]
        if isinstance(rows, slice):
            return keys[rows, :, :length], values[rows, :, :length]
        return keys[:, :, :length].index_select(0, rows), values[:, :, :length].index_select(0, rows)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of slot `source` to slot `target`."""
        self.reserve(target + 1, length)
        for layer in (*self.keys, *self.values):
            layer[target, :, :length] = layer[source, :, :length]

    def _grown(self, layer: Tensor) -> Tensor:
        grown = layer.new_zeros(self.slots, layer.shape[1], self.positions, layer.shape[3])
        grown[: layer.shape[0], :, : layer.shape[2]] = layer[: self.slots]
        return grown


def fitting_memory(device: torch.device) -> int:
    """Return the bytes that a cache may take: a third of the device's memory."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory) // 3
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 3


def doubled(size: int, least: int) -> int:
    """Double `size` until it is at least `least`."""
    while size < least:
        size *= 2
    return size


@dataclass
class Slot:
    """The contents of a slot."""

    ids: Sequence[int] = ()
    prefix: bytes = b""  # valid ids of the prompt it began with, packed: other prompts may share them
    used: int = 0  # step of the last answer


@dataclass
class SlotTable:
    """The assignment of slots to conversations; the lowest free slot is taken first, which keeps used ones dense."""

    size: int
    slots: list[Slot] = field(init=False)
    assigned: dict[Hashable, int] = field(default_factory=dict)  # key -> slot, least recently used first
    free: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.slots = [Slot() for _ in range(self.size)]
        self.free = list(range(self.size))

    def claim(
        self, key: Hashable, ids: Sequence[int], busy: Collection[Hashable], *, before: float = math.inf
    ) -> tuple[int, int] | None:
        """Return the slot of `key` and how many of `ids` it holds, or None if there is no slot for it.

        A key without a slot gets a free one. If there is none, it takes that of the least recently used key which is
        not `busy` and whose last answer was before step `before`.
        """
        slot = self.assigned.pop(key, None)
        if slot is None:
            if self.free:
                slot = heapq.heappop(self.free)
            else:
                idle = (k for k, at in self.assigned.items() if k not in busy and self.slots[at].used < before)
                other = next(idle, None)
                if other is None:
                    return None
                slot = self.assigned.pop(other)
            self.slots[slot] = Slot()
        self.assigned[key] = slot
        contents = self.slots[slot]
        valid = shared_length(packed(contents.ids), packed(ids))
        contents.prefix = contents.prefix[: valid * ID_BYTES]
        return slot, min(valid, len(ids) - 1)  # the last id is computed for its logits

    def release(self, key: Hashable) -> None:
        """Free the slot of `key`; until it is claimed, others may copy its contents."""
        if key in self.assigned:
            heapq.heappush(self.free, self.assigned.pop(key))

    def shrink(self, size: int) -> list[Hashable]:
        """Keep the first `size` slots only; return the keys that held one of the others."""
        self.size = size
        del self.slots[size:]
        self.free = sorted(slot for slot in self.free if slot < size)
        lost = [key for key, slot in self.assigned.items() if slot >= size]
        for key in lost:
            del self.assigned[key]
        return lost

    def invalidate(self) -> None:
        """Empty all slots."""
        self.slots = [Slot() for _ in range(self.size)]


@dataclass(frozen=True)
class PrefixCopy:
    """A copy of the first `length` positions of slot `source` to slot `target`, due before wave `wave`."""

    source: int
    target: int
    length: int
    wave: int


def packed(ids: Sequence[int]) -> bytes:
    """Return ids as bytes that sort like them."""
    return np.asarray(ids, dtype=">u4").tobytes()


def shared_length(one: bytes, other: bytes) -> int:
    """Return the number of ids that two packed sequences share at the beginning."""
    size = min(len(one), len(other)) // ID_BYTES
    a, b = (np.frombuffer(x, dtype=">u4", count=size) for x in (one, other))
    differ = np.flatnonzero(a != b)
    return int(differ[0]) if differ.size else size


def plan_copies(empty: Mapping[int, bytes], filled: Mapping[int, bytes], *, least: int = 16) -> list[PrefixCopy]:
    """Plan copies to the `empty` slots, from each other or from `filled` ones; both map a slot to its packed ids.

    Sorted by its ids, a prompt shares most with its neighbour. The source has to compute the end of the shared prefix
    first, which makes waves. Prefixes of fewer than `least` ids are not worth a copy, and an empty slot keeps at least
    its last id to compute.
    """
    entries = sorted([(ids, i, False) for i, ids in empty.items()] + [(ids, i, True) for i, ids in filled.items()])
    copies: list[PrefixCopy] = []
    sources: list[tuple[int, int, int]] = []  # (slot, first id that it computes, wave), each building on those below
    previous = b""
    for ids, slot, is_filled in entries:
        size = 0 if is_filled else min(shared_length(previous, ids), len(ids) // ID_BYTES - 1)
        previous = ids
        while sources and sources[-1][1] >= size:
            sources.pop()
        wave = 0
        if sources and size >= least:
            wave = sources[-1][2] + 1
            copies.append(PrefixCopy(source=sources[-1][0], target=slot, length=size, wave=wave))
        sources.append((slot, size if wave else 0, -1 if is_filled else wave))
    return sorted(copies, key=lambda copy: copy.wave)
