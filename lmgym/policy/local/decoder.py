"""One forward pass over the rows of a session, prompts and single tokens together, with a key-value cache.

All tokens of a pass are packed, so that only attention sees rows: single tokens attend together over the slots in use,
prompts in groups of similar length. A chunk that continues a cached row attends by itself on a CPU, and in a group of
similar length on a GPU, where a pass of single tokens alone is a captured graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from lmgym.policy.local.forward import Network, Rows
from lmgym.policy.local.graphs import StepGraphs
from lmgym.policy.local.kv_cache import KVCache
from lmgym.policy.models.vision import PICTURE_IDS, PreparedPicture

SINGLE, PROMPT, CONTINUED = range(3)


@dataclass(frozen=True)
class Chunk:
    """New tokens of a slot."""

    slot: int
    start: int  # position of the first token; all before it are cached
    ids: Sequence[int]  # with picture ids in place of placeholders
    pictures: Sequence[PreparedPicture] = ()  # in order
    rotary: Tensor | None = None  # rotary positions (3, n), if they differ from the positions in the slot

    @property
    def kind(self) -> int:
        """Kind of attention: SINGLE, PROMPT or CONTINUED."""
        return SINGLE if len(self.ids) == 1 else CONTINUED if self.start else PROMPT


class Decoder(Protocol):
    """A model that reads chunks and predicts the next token."""

    cache: KVCache

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of a token."""

    def feed(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """Return hidden states (R, H) and fp32 logits (R, V) after the last token of each chunk."""

    def limit(self, slots: int) -> None:
        """Use only the first `slots` slots from now on."""
        self.cache.most = slots

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of slot `source` to slot `target`."""
        self.cache.copy(source, target, length)


class PairedDecoder(Decoder):
    """Two models that read the same tokens: logits of the first, hidden states of both concatenated."""

    def __init__(
        self, first: Callable[[KVCache], Decoder], second: Callable[[KVCache], Decoder], cache: KVCache
    ) -> None:
        self.first, self.second = first(cache), second(KVCache())
        self.cache = cache

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of a token in both models."""
        return self.first.token_bytes + self.second.token_bytes

    def limit(self, slots: int) -> None:
        """Use only the first `slots` slots from now on."""
        self.first.limit(slots)
        self.second.limit(slots)

    def feed(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """Return hidden states (R, H1 + H2) and fp32 logits (R, V) after the last token of each chunk."""
        hidden, logits = self.first.feed(chunks)
        second, _ = self.second.feed(chunks)
        return torch.cat([hidden, second], -1), logits

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of slot `source` to slot `target`."""
        self.first.copy(source, target, length)
        self.second.copy(source, target, length)


@dataclass
class FusedDecoder(Decoder):
    """The decoder of architectures that `lmgym.policy.local.forward` computes."""

    network: Network
    cache: KVCache

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of a token."""
        net = self.network
        width = net.blocks[0].qkv.shape[0] // (net.heads + 2 * net.kv_heads)
        return len(net.blocks) * 2 * net.kv_heads * width * net.embed.itemsize

    @torch.inference_mode()
    def feed(self, chunks: Sequence[Chunk]) -> tuple[Tensor, Tensor]:
        """Return hidden states (R, H) and fp32 logits (R, V) after the last token of each chunk."""
        self.cache.reserve(max(c.slot for c in chunks) + 1, max(c.start + len(c.ids) for c in chunks))
        if self.network.embed.device.type == "cuda" and self.cache.keys and all(c.kind == SINGLE for c in chunks):
            ids, slots, positions = zip(*((c.ids[0], c.slot, c.start) for c in chunks), strict=True)
            return self._graphs().step(self.cache, ids, slots, positions)
        order = sorted(range(len(chunks)), key=lambda i: (chunks[i].kind, len(chunks[i].ids), chunks[i].slot))
        pack = Pack([chunks[i] for i in order], self.network.embed.device)
        groups = [group for at, part in pack.groups() for group in self._groups(part, pack.starts[at])]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self.cache.write(layer, pack.slots, pack.positions, k, v)
            return torch.cat([group.attend(layer, q, k, v) for group in groups])

        pictures = [picture for chunk in pack.chunks for picture in chunk.pictures]
        picture_tokens = (pack.ids >= PICTURE_IDS, pictures) if pictures else None
        hidden = self.network.hidden(pack.ids, pack.positions, attend, picture_tokens)
        hidden = hidden[pack.last[torch.tensor(order).argsort().to(pack.last.device)]]
        return hidden, F.linear(hidden, self.network.head).float()

    def _graphs(self) -> StepGraphs:
        """Return the captured steps of this network over this cache."""
        if self.cache.graphs is None or self.cache.graphs.network is not self.network:
            self.cache.graphs = StepGraphs(self.network)
        return self.cache.graphs

    def _groups(self, chunks: Sequence[Chunk], first: int) -> list[AttentionGroup]:
        """Group chunks of one kind by their attention; the first chunk is at `first` in the pack."""
        device = self.network.embed.device
        sparse = len(chunks) * 2 <= chunks[-1].slot and device.type == "cpu"  # one by one is cheaper on a CPU
        if chunks[0].kind == SINGLE and not sparse:
            return [SingleTokens(chunks, first, self.cache, device)]
        if chunks[0].kind == PROMPT:
            return [Prompts(chunks, first, device)]
        if chunks[0].kind == CONTINUED and device.type != "cpu":
            return [Continuations(chunks, first, self.cache, device)]
        starts = [first + sum(len(c.ids) for c in chunks[:i]) for i in range(len(chunks))]
        return [Continuation(chunk, at, self.cache, device) for chunk, at in zip(chunks, starts, strict=True)]


class Pack:
    """The tokens of ordered chunks, concatenated."""

    def __init__(self, chunks: Sequence[Chunk], device: torch.device) -> None:
        self.chunks = chunks
        lengths = torch.tensor([len(c.ids) for c in chunks])
        ends = lengths.cumsum(0)
        self.starts = (ends - lengths).tolist()  # of the chunks
        row = torch.repeat_interleave(torch.arange(len(chunks)), lengths)
        inside = torch.arange(int(ends[-1])) - (ends - lengths)[row]
        self.ids = torch.tensor([i for c in chunks for i in c.ids]).to(device)  # (N,)
        self.slots = torch.tensor([c.slot for c in chunks])[row].to(device)  # (N,)
        self.positions = (torch.tensor([c.start for c in chunks])[row] + inside).to(device)  # (N,)
        self.last = (ends - 1).to(device)  # (R,), of the last token of each chunk

    def groups(self) -> list[tuple[int, Sequence[Chunk]]]:
        """Return neighbours of one kind and similar length, each group with the index of its first chunk."""
        groups: list[tuple[int, Sequence[Chunk]]] = []
        begin = 0
        for i, chunk in enumerate(self.chunks):
            first = self.chunks[begin]
            if chunk.kind != first.kind or len(chunk.ids) > len(first.ids) * 1.5 + 8:
                groups.append((begin, self.chunks[begin:i]))
                begin = i
        return [*groups, (begin, self.chunks[begin:])]


class AttentionGroup(Protocol):
    """Attention of chunks that are neighbours in a pack."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the attention output of the group's tokens, (n, Hq D)."""


class SingleTokens:
    """Attention of one token a row over a view of the slots in use; the query heads of a group are query rows."""

    def __init__(self, chunks: Sequence[Chunk], first: int, cache: KVCache, device: torch.device) -> None:
        self.cache = cache
        self.span = slice(first, first + len(chunks))
        slots = torch.tensor([c.slot for c in chunks])
        lengths = torch.tensor([c.start + 1 for c in chunks])
        self.length = int(lengths.max())
        top = int(slots[-1]) + 1
        self.place: Tensor | None = None  # slots of the rows, if other slots lie between them
        self.rows: slice | Tensor = slice(0, top)
        if len(chunks) * 2 < top:
            self.rows = slots.to(device)
        elif len(chunks) < top:
            self.place = slots.to(device)
            lengths = torch.ones(top, dtype=torch.long).index_put_((slots,), lengths)
        self.visible = (torch.arange(self.length) < lengths[:, None])[:, None, None].to(device)  # (R, 1, 1, length)
        self.mask: Tensor | None = None

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the attention output of the single tokens, (n, Hq D)."""
        query = q[self.span]
        rows = query.view(len(query), k.shape[1], -1, query.shape[2])  # (n, Hk, G, D)
        if self.place is not None:
            rows = rows.new_zeros(len(self.visible), *rows.shape[1:]).index_copy_(0, self.place, rows)
        if self.mask is None:
            self.mask = torch.zeros(self.visible.shape, dtype=q.dtype, device=q.device)
            self.mask.masked_fill_(~self.visible, float("-inf"))
        keys, values = self.cache.read(layer, self.rows, self.length)
        out = F.scaled_dot_product_attention(rows, keys, values, attn_mask=self.mask)
        if self.place is not None:
            out = out.index_select(0, self.place)
        return out.reshape(len(query), -1)


class Prompts:
    """Causal attention of chunks at the start of their slots, which read no cache."""

    def __init__(self, chunks: Sequence[Chunk], first: int, device: torch.device) -> None:
        self.rows = Rows([len(c.ids) for c in chunks], device)
        self.span = slice(first, first + self.rows.tokens)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the attention output of the prompts' tokens, (n, Hq D)."""
        return self.rows.causal(q[self.span], k[self.span], v[self.span])


class Continuation:
    """Attention of a chunk that continues its slot, over a view of the slot's cache."""

    def __init__(self, chunk: Chunk, first: int, cache: KVCache, device: torch.device) -> None:
        self.span = slice(first, first + len(chunk.ids))
        self.row = slice(chunk.slot, chunk.slot + 1)
        self.cache = cache
        self.length = chunk.start + len(chunk.ids)
        positions = torch.arange(chunk.start, self.length)
        mask = torch.arange(self.length) <= positions[:, None]
        self.mask = mask.to(device) if len(positions) > 1 else None  # (T, length); a single token sees all

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the attention output of the chunk's tokens, (T, Hq D)."""
        keys, values = self.cache.read(layer, self.row, self.length)
        query = q[self.span].transpose(0, 1)[None]
        out = F.scaled_dot_product_attention(query, keys, values, attn_mask=self.mask, enable_gqa=True)
        return out[0].transpose(0, 1).flatten(1)


class Continuations:
    """Attention of chunks that continue their slots, padded to one width, over copies of the slots' caches."""

    def __init__(self, chunks: Sequence[Chunk], first: int, cache: KVCache, device: torch.device) -> None:
        self.cache = cache
        self.rows = Rows([len(c.ids) for c in chunks], device)
        self.span = slice(first, first + self.rows.tokens)
        self.slots = torch.tensor([c.slot for c in chunks], device=device)
        self.length = max(c.start + len(c.ids) for c in chunks)
        positions = torch.tensor([c.start for c in chunks])[:, None] + torch.arange(self.rows.width)  # (R, T)
        self.hidden = (torch.arange(self.length) > positions[..., None]).to(device)  # (R, T, length)
        self.mask: Tensor | None = None

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the attention output of the chunks' tokens, (n, Hq D)."""
        keys, values = self.cache.read(layer, self.slots, self.length)
        query = self.rows.pad(q[self.span])  # (R, Hq, T, D)
        grouped = query.reshape(len(query), k.shape[1], -1, query.shape[3])  # a group's heads are query rows
        if self.mask is None:
            mask = torch.zeros(self.hidden.shape, dtype=q.dtype, device=q.device).masked_fill_(self.hidden, -torch.inf)
            self.mask = mask.repeat(1, query.shape[1] // k.shape[1], 1)[:, None]  # (R, 1, G T, length)
        out = F.scaled_dot_product_attention(grouped, keys, values, attn_mask=self.mask)
        return self.rows.pack(out.view(query.shape))
