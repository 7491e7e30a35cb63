"""Preallocated keys and values, a slot a conversation; grows in slots and in positions by doubling."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass
class KeyValues:
    """Keys and values of all layers, each (slots, Hk, positions, D); layers are made when first written."""

    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    slots: int = 8
    positions: int = 256

    def reserve(self, slots: int, positions: int) -> None:
        """Make room for `slots` conversations of `positions` tokens."""
        if slots <= self.slots and positions <= self.positions:
            return
        self.slots = _doubled(self.slots, slots)
        self.positions = _doubled(self.positions, positions)
        self.keys = [self._grown(layer) for layer in self.keys]
        self.values = [self._grown(layer) for layer in self.values]

    def write(self, layer: int, slots: Tensor, positions: Tensor, keys: Tensor, values: Tensor) -> None:
        """Put `keys` and `values` (N, Hk, D) at `slots` (N,) and `positions` (N,)."""
        if layer == len(self.keys):
            shape = (self.slots, keys.shape[1], self.positions)
            self.keys.append(keys.new_zeros(*shape, keys.shape[2]))
            self.values.append(values.new_zeros(*shape, values.shape[2]))
        self.keys[layer][slots, :, positions] = keys
        self.values[layer][slots, :, positions] = values

    def read(self, layer: int, rows: slice | Tensor, used: int) -> tuple[Tensor, Tensor]:
        """Keys and values of `rows`, (R, Hk, used, D): views for a slice, copies for indices."""
        keys, values = self.keys[layer], self.values[layer]
        if isinstance(rows, slice):
            return keys[rows, :, :used], values[rows, :, :used]
        return keys[:, :, :used].index_select(0, rows), values[:, :, :used].index_select(0, rows)

    def copy(self, source: int, target: int, length: int) -> None:
        """Give slot `target` the first `length` positions of slot `source`."""
        self.reserve(target + 1, length)
        for layer in (*self.keys, *self.values):
            layer[target, :, :length] = layer[source, :, :length]

    def _grown(self, layer: Tensor) -> Tensor:
        grown = layer.new_zeros(self.slots, layer.shape[1], self.positions, layer.shape[3])
        grown[: layer.shape[0], :, : layer.shape[2]] = layer
        return grown


def _doubled(size: int, least: int) -> int:
    while size < least:
        size *= 2
    return size
