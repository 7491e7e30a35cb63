"""One forward pass over the rows of a session: prompts and single tokens together, keys and values kept.

All tokens of a pass are packed, so that only attention sees rows: single tokens attend together over the slots in use,
prompts in groups of similar length, what goes on from a cache by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from lmgym.policy.local.forward import Network, Rows, Seen
from lmgym.policy.local.slots import KeyValues
from lmgym.policy.models.vision import NAMES, Sight

SINGLE, PROMPT, CONTINUED = range(3)


@dataclass(frozen=True)
class Chunk:
    """Tokens to feed into a slot."""

    slot: int
    start: int  # position of the first; all before it are in the cache
    ids: Sequence[int]  # places of pictures by their names, see `lmgym.policy.models.vision`
    sights: Sequence[Sight] = ()  # the pictures among them, in order
    turned: Tensor | None = None  # rotary positions (3, n), where pictures make them others than the places

    @property
    def kind(self) -> int:
        """What it attends to."""
        return SINGLE if len(self.ids) == 1 else CONTINUED if self.start else PROMPT


class Decoder(Protocol):
    """Feeds chunks and says what comes next."""

    cache: KeyValues

    def feed(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """Hidden states (R, H) and logits (R, V) in fp32 after the last token of each chunk."""

    def copy(self, source: int, target: int, length: int) -> None:
        """Give slot `target` the first `length` tokens of slot `source`."""


class SideBySide:
    """Two models fed with the same tokens: the logits of the first, the hidden states of both, one after the other."""

    def __init__(
        self, first: Callable[[KeyValues], Decoder], second: Callable[[KeyValues], Decoder], cache: KeyValues
    ) -> None:
        self.first, self.second = first(cache), second(KeyValues())
        self.cache = cache

    def feed(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """Hidden states (R, H1 + H2) and logits (R, V) in fp32 after the last token of each chunk."""
        hidden, logits = self.first.feed(chunks)
        beside, _ = self.second.feed(chunks)
        return torch.cat([hidden, beside], -1), logits

    def copy(self, source: int, target: int, length: int) -> None:
        """Give slot `target` the first `length` tokens of slot `source`."""
        self.first.copy(source, target, length)
        self.second.copy(source, target, length)


@dataclass
class FusedDecoder:
    """The decoder of a known architecture."""

    network: Network
    cache: KeyValues

    @torch.inference_mode()
    def feed(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """Hidden states (R, H) and logits (R, V) in fp32 after the last token of each chunk."""
        self.cache.reserve(max(c.slot for c in chunks) + 1, max(c.start + len(c.ids) for c in chunks))
        order = sorted(range(len(chunks)), key=lambda i: (chunks[i].kind, len(chunks[i].ids), chunks[i].slot))
        plan = Pack([chunks[i] for i in order], self.network.embed.device)
        groups = [group for at, part in plan.groups() for group in self._groups(part, plan.starts[at])]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self.cache.write(layer, plan.slots, plan.positions, k, v)
            return torch.cat([group.attend(layer, q, k, v) for group in groups])

        hidden = self.network.hidden(plan.ids, plan.positions, attend, plan.seen())
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        hidden = hidden[plan.last[back.to(plan.last.device)]]
        return hidden, self.network.logits(hidden)

    def copy(self, source: int, target: int, length: int) -> None:
        """Give slot `target` the first `length` tokens of slot `source`."""
        self.cache.copy(source, target, length)

    def _groups(self, chunks: Sequence[Chunk], first: int) -> list[Group]:
        """How chunks of one kind attend, the first of them at `first` in the pack."""
        device = self.network.embed.device
        sparse = len(chunks) * 2 <= chunks[-1].slot and device.type == "cpu"  # one by one is cheaper there
        if chunks[0].kind == SINGLE and not sparse:
            return [Singles(chunks, first, self.cache, device)]
        if chunks[0].kind == PROMPT:
            return [Prompts(chunks, first, device)]
        starts = [first + sum(len(c.ids) for c in chunks[:i]) for i in range(len(chunks))]
        return [Continued(chunk, at, self.cache, device) for chunk, at in zip(chunks, starts, strict=True)]


class Pack:
    """The tokens of ordered chunks one after another."""

    def __init__(self, chunks: Sequence[Chunk], device: torch.device) -> None:
        self.chunks = chunks
        lengths = torch.tensor([len(c.ids) for c in chunks])
        ends = lengths.cumsum(0)
        self.starts = (ends - lengths).tolist()  # of each chunk, in the pack
        row = torch.repeat_interleave(torch.arange(len(chunks)), lengths)
        inside = torch.arange(int(ends[-1])) - (ends - lengths)[row]
        self.ids = torch.tensor([i for c in chunks for i in c.ids]).to(device)  # (N,)
        self.slots = torch.tensor([c.slot for c in chunks])[row].to(device)  # (N,)
        self.positions = (torch.tensor([c.start for c in chunks])[row] + inside).to(device)  # (N,)
        self.last = (ends - 1).to(device)  # (R,), where the last token of each chunk stands

    def seen(self) -> Seen | None:
        """Where pictures stand, and which; None where there is none."""
        sights = [sight for chunk in self.chunks for sight in chunk.sights]
        return (self.ids >= NAMES, sights) if sights else None

    def groups(self) -> list[tuple[int, Sequence[Chunk]]]:
        """Neighbours of one kind and similar length, each with the index of its first chunk."""
        groups: list[tuple[int, Sequence[Chunk]]] = []
        begin = 0
        for i, chunk in enumerate(self.chunks):
            like = self.chunks[begin]
            if chunk.kind != like.kind or len(chunk.ids) > len(like.ids) * 1.5 + 8:
                groups.append((begin, self.chunks[begin:i]))
                begin = i
        return [*groups, (begin, self.chunks[begin:])]


class Group(Protocol):
    """Attention of some chunks that stand together in a pack."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the group's tokens read, (n, Hq D)."""


class Singles:
    """One token a row, over a view of the slots in use; the query heads of a group are query rows."""

    def __init__(self, chunks: Sequence[Chunk], first: int, cache: KeyValues, device: torch.device) -> None:
        self.cache = cache
        self.span = slice(first, first + len(chunks))
        slots = torch.tensor([c.slot for c in chunks])
        lengths = torch.tensor([c.start + 1 for c in chunks])
        self.used = int(lengths.max())
        top = int(slots[-1]) + 1
        self.place: Tensor | None = None  # of the rows among the slots, where others lie between
        self.rows: slice | Tensor = slice(0, top)
        if len(chunks) * 2 < top:
            self.rows = slots.to(device)
        elif len(chunks) < top:
            self.place = slots.to(device)
            lengths = torch.ones(top, dtype=torch.long).index_put_((slots,), lengths)
        self.seen = (torch.arange(self.used) < lengths[:, None])[:, None, None].to(device)  # (R, 1, 1, used)
        self.mask: Tensor | None = None

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the single tokens read, (n, Hq D)."""
        query = q[self.span]
        apart = q.dtype == torch.bfloat16 and q.device.type == "cpu"  # its kernel is faster head by head
        rows = query.unsqueeze(2) if apart else query.view(len(query), k.shape[1], -1, query.shape[2])  # (n, Hk, G, D)
        if self.place is not None:
            rows = rows.new_zeros(len(self.seen), *rows.shape[1:]).index_copy_(0, self.place, rows)
        if self.mask is None:
            self.mask = torch.zeros(self.seen.shape, dtype=q.dtype, device=q.device)
            self.mask.masked_fill_(~self.seen, float("-inf"))
        keys, values = self.cache.read(layer, self.rows, self.used)
        out = F.scaled_dot_product_attention(rows, keys, values, attn_mask=self.mask, enable_gqa=apart)
        if self.place is not None:
            out = out.index_select(0, self.place)
        return out.reshape(len(query), -1)


class Prompts:
    """Chunks at the start of their slots: causal attention among themselves, no cache to read."""

    def __init__(self, chunks: Sequence[Chunk], first: int, device: torch.device) -> None:
        self.rows = Rows([len(c.ids) for c in chunks], device)
        self.span = slice(first, first + self.rows.tokens)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the prompts' tokens read, (n, Hq D)."""
        return self.rows.causal(q[self.span], k[self.span], v[self.span])


class Continued:
    """A chunk that goes on where its slot's cache ends, over a view of it."""

    def __init__(self, chunk: Chunk, first: int, cache: KeyValues, device: torch.device) -> None:
        self.span = slice(first, first + len(chunk.ids))
        self.row = slice(chunk.slot, chunk.slot + 1)
        self.cache = cache
        self.used = chunk.start + len(chunk.ids)
        reach = torch.arange(chunk.start, self.used)  # (T,), the last position a token sees
        seen = torch.arange(self.used) <= reach[:, None]
        self.seen = seen.to(device) if len(reach) > 1 else None  # (T, used); a single token sees all

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the chunk's tokens read, (T, Hq D)."""
        keys, values = self.cache.read(layer, self.row, self.used)
        query = q[self.span].transpose(0, 1)[None]
        out = F.scaled_dot_product_attention(query, keys, values, attn_mask=self.seen, enable_gqa=True)
        return out[0].transpose(0, 1).flatten(1)
