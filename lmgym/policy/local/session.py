"""Conversations in flight: rows are sampled one token a step and replaced as soon as they finish.

A conversation's keys and values stay in its slot between turns, and are computed again only if its ids no longer agree
(a fresh rendering), the weights changed, or it lost its slot. There are as many slots as memory holds at the length of
the longest conversation. As this grows, slots are given up; the answers in them wait, and go on later where they were.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lmgym.policy.base import Conversation
from lmgym.policy.local.decoder import Chunk, Decoder
from lmgym.policy.local.kv_cache import KVCache, SlotTable, doubled, fitting_memory, packed, plan_copies
from lmgym.policy.local.sampling import Adjust, Sampling, draw
from lmgym.policy.local.template import ChatTemplate
from lmgym.policy.models.vision import PICTURE_IDS, Gallery, rotary_positions, with_picture_ids
from lmgym.policy.noise import stream, uniform
from lmgym.policy.tools import split_thinking
from lmgym.types import Completion, Finish, Picture, pictures_in

BUDGET = {"cpu": 4096, "cuda": 32_768}  # tokens of one forward pass; a longer prompt is a pass by itself
PATIENCE = 64  # steps that an idle conversation keeps its slot while others are answered


class Sampler(Protocol):
    """The part of a LocalPolicy that a session uses."""

    version: int
    sampling: Sampling
    adjust: Adjust | None
    context: int
    stops: frozenset[int]
    gallery: Gallery | None
    template: ChatTemplate

    @property
    def device(self) -> torch.device:
        """Device of the model."""

    def decoder(self, cache: KVCache | None = None) -> Decoder:
        """Return a decoder with the current weights over `cache`."""

    def text(self, answer: Sequence[int]) -> str:
        """Decode a sampled answer."""

    def stopped(self, answer: Sequence[int]) -> bool:
        """Return True if a stop string occurs in the last tokens of an answer."""


@dataclass(eq=False)
class BatchRow:
    """An answer being sampled."""

    key: Hashable
    ids: list[int]  # of the segment so far, the answer included
    prompt: tuple[int, ...]  # those that this turn appended
    fresh: bool
    limit: int  # tokens of the answer
    stream: int  # of its noise
    version: int = 0  # of the weights with which it began
    slot: int = -1
    cached: int = 0  # how many of `ids` the slot holds
    pictures: tuple[Picture, ...] = ()  # located in `ids`, which name them by picture ids
    positions: tuple[Tensor, int] | None = None  # rotary positions (3, T) of the first T ids, and the later ids' offset
    logprobs: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)

    @property
    def answer(self) -> list[int]:
        """Ids sampled so far."""
        return self.ids[len(self.ids) - len(self.logprobs) :]

    def completion(self, thinking: str, words: str, finish: Finish) -> Completion:
        """Return the finished answer."""
        begin = len(self.ids) - len(self.logprobs) - len(self.prompt)
        return Completion(
            text=words,
            thinking=thinking,
            prompt_ids=self.prompt,
            ids=tuple(self.answer),
            logprobs=tuple(self.logprobs),
            entropy=tuple(self.entropy),
            finish=finish,
            version=self.version,
            fresh=self.fresh,
            pictures=tuple(p._replace(start=p.start - begin) for p in self.pictures if p.start >= begin),
        )


class LocalSession:
    """The session of a LocalPolicy."""

    def __init__(self, policy: Sampler, *, slots: int = 256, memory: int | None = None) -> None:
        """`slots` limits the conversations that are answered at once or keep their caches; idle ones lose theirs.

        `memory` limits the bytes of the caches, by default to a third of the device's memory.
        """
        self._policy = policy
        self._memory = fitting_memory(policy.device) if memory is None else memory
        self._decoder = policy.decoder()
        self._version = policy.version
        self._slots = SlotTable(slots)
        self._waiting: dict[Hashable, BatchRow] = {}
        self._rows: dict[Hashable, BatchRow] = {}
        self._overflown: dict[Hashable, Completion] = {}  # prompts that exceed the context
        self._picture_ids: dict[str, int] = {}  # by digest
        self._steps = 0
        self.computed = 0  # tokens so far: prompts, less what was cached or copied, and answers

    def __len__(self) -> int:
        """Return the number of conversations put and not finished."""
        return len(self._waiting) + len(self._rows) + len(self._overflown)

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Queue a conversation; the cache of `key` is reused if the conversation extends it."""
        template = self._policy.template
        prompt, fresh = template.extend(conversation)
        spoken = () if fresh else conversation.spoken
        before = [i for completion in spoken for i in (*completion.prompt_ids, *completion.ids)]
        new = template.pictures(conversation, prompt, fresh=fresh)
        pictures = (*pictures_in(spoken), *(p._replace(start=len(before) + p.start) for p in new))
        noise, limit = conversation.noise, conversation.max_tokens
        self.put_ids(key, before, prompt, fresh=fresh, noise=noise, max_tokens=limit, pictures=pictures)

    def put_ids(
        self,
        key: Hashable,
        before: Sequence[int],
        prompt: Sequence[int],
        *,
        fresh: bool,
        noise: Sequence[int],
        max_tokens: int | None = None,
        pictures: tuple[Picture, ...] = (),
    ) -> None:
        """Queue an answer to the ids `before + prompt`, of which this turn appends `prompt`, with their `pictures`."""
        self._withdraw(key)
        policy = self._policy
        ids = [*before, *prompt]
        if pictures:
            ids = with_picture_ids(ids, pictures, self._gallery.vision.token, self._picture_ids)
        if len(ids) >= policy.context:
            self._overflown[key] = Completion(text="", finish="context", fresh=fresh, version=policy.version)
            return
        self._waiting[key] = BatchRow(
            key=key,
            ids=ids,
            prompt=tuple(prompt),
            fresh=fresh,
            limit=policy.sampling.max_tokens if max_tokens is None else max_tokens,
            stream=stream(policy.sampling.seed, noise),
            pictures=pictures,
        )

    @torch.inference_mode()
    def step(self) -> list[tuple[Hashable, Completion]]:
        """Advance all rows by one token and return those that finished."""
        if self._version != self._policy.version:  # the weights changed: compute all caches again
            self._version = self._policy.version
            self._decoder = self._policy.decoder(self._decoder.cache)
            self._slots.invalidate()
            for row in self._rows.values():
                row.cached = 0
        self._steps += 1
        self._fit()
        self._admit()
        finished = list(self._overflown.items())
        self._overflown = {}
        for wave in self._waves():
            for rows in _passes(wave, BUDGET.get(self._policy.device.type, BUDGET["cpu"])):
                finished += self._advance(rows)
        return finished

    def _fit(self) -> None:
        """Give up slots if memory cannot hold all of them at the length of the longest row; their rows wait again."""
        rows = [*self._rows.values(), *self._waiting.values()]
        positions = doubled(self._decoder.cache.positions, max((len(row.ids) for row in rows), default=0))
        size = max(1, self._memory // (positions * self._decoder.token_bytes))
        if size < self._slots.size:
            lost = {key: self._rows.pop(key) for key in self._slots.shrink(size) if key in self._rows}
            for row in lost.values():
                row.slot, row.cached = -1, 0
            self._waiting = {**lost, **self._waiting}
        self._decoder.limit(self._slots.size)

    def _admit(self) -> None:
        """Let the waiting rows begin for which there are slots, in order.

        On a GPU all wait while more rows are being answered: a pass with prompts costs it several steps of single
        tokens, which are captured graphs.
        """
        if self._policy.device.type == "cuda" and len(self._waiting) < len(self._rows):
            return
        full = False
        for key in list(self._waiting):
            if not full or key in self._slots.assigned:
                full |= not self._begin(key, before=self._steps - PATIENCE)
        if self._waiting and not self._rows:
            self._begin(next(iter(self._waiting)), before=math.inf)

    def _begin(self, key: Hashable, *, before: float) -> bool:
        """Let a waiting row begin if `SlotTable.claim` finds a slot for it; return True if it does."""
        row = self._waiting[key]
        claim = self._slots.claim(key, row.ids, {**self._rows, **self._waiting}, before=before)
        if claim is None:
            return False
        row.slot, row.cached = claim
        if not row.logprobs:
            row.version = self._version
        self._rows[key] = self._waiting.pop(key)
        return True

    def drop(self, key: Hashable) -> None:
        """Forget `key`; other conversations may still copy what its slot holds."""
        self._withdraw(key)
        self._slots.release(key)

    def _withdraw(self, key: Hashable) -> None:
        """Stop answering `key`, and keep what was computed."""
        self._waiting.pop(key, None)
        self._overflown.pop(key, None)
        row = self._rows.pop(key, None)
        if row is not None:
            slot = self._slots.slots[row.slot]
            slot.ids, slot.used = row.ids[: row.cached], self._steps

    def _waves(self) -> Iterator[list[BatchRow]]:
        """Yield the rows in the order in which they can be computed: a shared prefix is computed once, then copied."""
        slots = self._slots.slots
        rows = list(self._rows.values())
        empty = {row.slot: packed(row.ids) for row in rows if row.cached == 0}
        copies = plan_copies(empty, {i: slot.prefix for i, slot in enumerate(slots) if slot.prefix}) if empty else []
        wave_of = {copy.target: copy.wave for copy in copies}
        by_slot = {row.slot: row for row in rows}
        for wave in range(max(wave_of.values(), default=0) + 1):
            for copy in copies:
                if copy.wave == wave:
                    self._decoder.copy(copy.source, copy.target, copy.length)
                    by_slot[copy.target].cached = copy.length
            yield [row for row in rows if wave_of.get(row.slot, 0) == wave]
        for slot, prefix in empty.items():
            slots[slot].prefix = prefix

    def _advance(self, rows: list[BatchRow]) -> list[tuple[Hashable, Completion]]:
        """Compute what the rows' slots lack, draw a token for each, and return those that finished."""
        policy = self._policy
        chunks = [
            self._picture_chunk(row) if row.pictures else Chunk(row.slot, row.cached, row.ids[row.cached :])
            for row in rows
        ]
        self.computed += sum(len(chunk.ids) for chunk in chunks)
        hidden, logits = self._decoder.feed(chunks)
        if policy.adjust is not None:
            logits = policy.adjust(hidden, logits)
        keys = np.array([row.stream for row in rows], dtype=np.uint64)
        counters = np.array([len(row.logprobs) for row in rows], dtype=np.uint64)
        noise = torch.from_numpy(uniform(keys, counters)).to(logits.device)
        columns = (column.tolist() for column in draw(logits, noise, policy.sampling))
        finished = []
        for row, token, logprob, entropy in zip(rows, *columns, strict=True):
            row.cached = len(row.ids)
            row.ids.append(token)
            row.logprobs.append(logprob)
            row.entropy.append(entropy)
            finish = self._finish(row)
            if finish is not None:
                self._withdraw(row.key)
                opened = policy.template.opens_thinking(row.prompt)
                thinking, words = split_thinking(policy.text(row.answer), opened=opened)
                finished.append((row.key, row.completion(thinking, words, finish)))
        return finished

    def _picture_chunk(self, row: BatchRow) -> Chunk:
        """Return the tokens that the slot of a row with pictures lacks."""
        gallery, begin, end = self._gallery, row.cached, len(row.ids)
        pictures = [gallery[picture.digest] for picture in row.pictures if picture.start >= begin]
        positions = None
        if gallery.vision.grid_positions:
            if row.positions is None:
                placeholders = torch.tensor(row.ids) >= PICTURE_IDS
                row.positions = rotary_positions(placeholders, [gallery[p.digest] for p in row.pictures])
            first, offset = row.positions
            later = torch.arange(max(begin, first.shape[1]), end) + offset
            positions = torch.cat((first[:, begin:end], later.expand(3, -1)), 1)
        return Chunk(row.slot, begin, row.ids[begin:], pictures, positions)

    @property
    def _gallery(self) -> Gallery:
        gallery = self._policy.gallery
        assert gallery is not None, "pictures for a policy without vision"
        return gallery

    def _finish(self, row: BatchRow) -> Finish | None:
        """Return the reason if the answer is complete, else None."""
        policy = self._policy
        if row.ids[-1] in policy.stops or (policy.sampling.stop and policy.stopped(row.answer)):
            return "stop"
        if len(row.logprobs) >= row.limit:
            return "length"
        return "context" if len(row.ids) >= policy.context else None


def _passes(rows: list[BatchRow], budget: int) -> Iterator[list[BatchRow]]:
    """Yield the rows in passes of at most `budget` tokens, rows with similar amounts to compute together."""
    batch: list[BatchRow] = []
    tokens = 0
    for row in sorted(rows, key=lambda row: len(row.ids) - row.cached):
        size = len(row.ids) - row.cached
        if batch and tokens + size > budget:
            yield batch
            batch, tokens = [], 0
        batch.append(row)
        tokens += size
    if batch:
        yield batch
