"""Conversations in flight: rows that are sampled a token a step, replaced at once when they finish.

A key's keys and values stay in its slot between turns, and are computed again only where the ids no longer agree
(a fresh rendering) or the weights changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lmgym.policy.base import Conversation
from lmgym.policy.local.decoder import Chunk
from lmgym.policy.local.places import Places
from lmgym.policy.local.sampling import draw
from lmgym.policy.local.sharing import Copy, packed, plan
from lmgym.policy.models.vision import NAMES, Gallery, named, turned
from lmgym.policy.noise import stream, uniform
from lmgym.types import Completion, Finish, Picture, pictures_in

if TYPE_CHECKING:
    from lmgym.policy.local.policy import LocalPolicy

BUDGET = 4096  # tokens of one pass; a longer prompt is a pass by itself


@dataclass(eq=False)
class Row:
    """An answer in the making."""

    key: Hashable
    ids: list[int]  # of the segment so far, the answer included
    prompt: tuple[int, ...]  # those that this turn appended
    fresh: bool
    limit: int  # tokens of the answer
    stream: int  # of its noise
    version: int
    slot: int = -1
    cached: int = 0  # of `ids`, how many the slot holds
    pictures: tuple[Picture, ...] = ()  # by their places among `ids`, where they go by their names
    turned: tuple[Tensor, int] | None = None  # rotary positions, and what later ones are beyond their places
    logprobs: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)

    @property
    def answer(self) -> list[int]:
        """The ids sampled so far."""
        return self.ids[len(self.ids) - len(self.logprobs) :]

    def shown(self) -> tuple[Picture, ...]:
        """The pictures of the prompt, by their places in it."""
        begin = len(self.ids) - len(self.logprobs) - len(self.prompt)
        return tuple(p._replace(start=p.start - begin) for p in self.pictures if p.start >= begin)


class LocalSession:
    """The session of a LocalPolicy."""

    def __init__(self, policy: LocalPolicy, *, slots: int = 256) -> None:
        """At most `slots` conversations are answered at once or keep their caches; the longest idle one loses it."""
        self._policy = policy
        self._decoder = policy.decoder()
        self._version = policy.version
        self._places = Places(slots)
        self._waiting: dict[Hashable, Row] = {}
        self._rows: dict[Hashable, Row] = {}
        self._refused: dict[Hashable, Completion] = {}  # no room in the context
        self._names: dict[str, int] = {}  # of pictures among ids
        self.fed = 0  # tokens computed so far: prompts, less what was cached or copied, and answers

    def __len__(self) -> int:
        """Conversations put and not finished."""
        return len(self._waiting) + len(self._rows) + len(self._refused)

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Queue a conversation; the cache kept under `key` is reused where it extends what was there."""
        prompt, fresh = self._policy.prompt(conversation)
        spoken = () if fresh else conversation.spoken
        before = [i for said in spoken for i in (*said.prompt_ids, *said.ids)]
        new = self._policy.pictures(conversation, prompt, fresh=fresh)
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
        self._take_back(key)
        policy = self._policy
        ids = [*before, *prompt]
        if pictures:
            ids = named(ids, pictures, self._gallery.vision.token, self._names)
        if len(ids) >= policy.context:
            self._refused[key] = Completion(text="", finish="context", fresh=fresh, version=policy.version)
            return
        self._waiting[key] = Row(
            key=key,
            ids=ids,
            prompt=tuple(prompt),
            fresh=fresh,
            limit=policy.sampling.max_tokens if max_tokens is None else max_tokens,
            stream=stream(policy.sampling.seed, noise),
            version=policy.version,
            pictures=pictures,
        )

    @torch.inference_mode()
    def step(self) -> list[tuple[Hashable, Completion]]:
        """Advance all rows by one token and return those that finished."""
        self._renew()
        self._admit()
        finished = list(self._refused.items())
        self._refused = {}
        for wave in self._waves():
            for rows in _passes(wave):
                finished += self._advance(rows)
        return finished

    def drop(self, key: Hashable) -> None:
        """Forget `key`; what its slot holds may still begin another conversation."""
        self._take_back(key)
        self._places.release(key)

    def _take_back(self, key: Hashable) -> None:
        """Stop answering `key`, keeping what was computed."""
        self._waiting.pop(key, None)
        self._refused.pop(key, None)
        row = self._rows.pop(key, None)
        if row is not None:
            self._places.slots[row.slot].ids = row.ids[: row.cached]

    def _renew(self) -> None:
        """Where the weights changed, all caches are worthless: rows are computed again from their ids."""
        if self._version == self._policy.version:
            return
        self._version = self._policy.version
        self._decoder = self._policy.decoder(self._decoder.cache)
        self._places.forget()
        for row in self._rows.values():
            row.cached = 0

    def _admit(self) -> None:
        """Give waiting rows their slots, in order, while there are any."""
        for key, row in list(self._waiting.items()):
            place = self._places.claim(key, row.ids, {**self._rows, **self._waiting})
            if place is None:
                return
            row.slot, row.cached = place
            self._rows[key] = self._waiting.pop(key)

    def _waves(self) -> Iterator[list[Row]]:
        """Rows in the order in which they can be computed: a shared beginning is computed by the first that has it."""
        slots = self._places.slots
        rows = list(self._rows.values())
        cold = {row.slot: packed(row.ids) for row in rows if row.cached == 0}
        copies = plan(cold, {i: slot.origin for i, slot in enumerate(slots) if slot.origin}) if cold else []
        wave_of = {copy.target: copy.wave for copy in copies}
        by_slot = {row.slot: row for row in rows}
        for wave in range(max(wave_of.values(), default=0) + 1):
            for copy in copies:
                if copy.wave == wave:
                    self._copy(copy, by_slot[copy.target])
            yield [row for row in rows if wave_of.get(row.slot, 0) == wave]
        for slot, origin in cold.items():
            slots[slot].origin = origin

    def _copy(self, copy: Copy, row: Row) -> None:
        self._decoder.copy(copy.source, copy.target, copy.length)
        row.cached = copy.length

    def _advance(self, rows: list[Row]) -> list[tuple[Hashable, Completion]]:
        """Feed what the rows' slots lack, draw a token each, and return those that finished."""
        chunks = [
            self._seeing(row) if row.pictures else Chunk(row.slot, row.cached, row.ids[row.cached :]) for row in rows
        ]
        self.fed += sum(len(chunk.ids) for chunk in chunks)
        hidden, logits = self._decoder.feed(chunks)
        if self._policy.adjust is not None:
            logits = self._policy.adjust(hidden, logits)
        keys = np.array([row.stream for row in rows], dtype=np.uint64)
        counters = np.array([len(row.logprobs) for row in rows], dtype=np.uint64)
        noise = torch.from_numpy(uniform(keys, counters)).to(logits.device)
        drawn = (column.tolist() for column in draw(logits, noise, self._policy.sampling))
        finished = []
        for row, token, logprob, entropy in zip(rows, *drawn, strict=True):
            row.cached = len(row.ids)
            row.ids.append(token)
            row.logprobs.append(logprob)
            row.entropy.append(entropy)
            finish = self._finish(row)
            if finish is not None:
                self._take_back(row.key)
                finished.append((row.key, self._completion(row, finish)))
        return finished

    def _seeing(self, row: Row) -> Chunk:
        """What the slot of a row with pictures lacks."""
        gallery, begin, end = self._gallery, row.cached, len(row.ids)
        sights = [gallery[picture.digest] for picture in row.pictures if picture.start >= begin]
        positions = None
        if gallery.vision.turned:
            if row.turned is None:
                shown = torch.tensor(row.ids) >= NAMES
                row.turned = turned(shown, [gallery[picture.digest] for picture in row.pictures])
            known, beyond = row.turned
            later = torch.arange(max(begin, known.shape[1]), end) + beyond
            positions = torch.cat((known[:, begin:end], later.expand(3, -1)), 1)
        return Chunk(row.slot, begin, row.ids[begin:], sights, positions)

    @property
    def _gallery(self) -> Gallery:
        gallery = self._policy.gallery
        assert gallery is not None, "pictures for a policy that takes none"
        return gallery

    def _finish(self, row: Row) -> Finish | None:
        """Why the answer is over, or None."""
        policy = self._policy
        if row.ids[-1] in policy.stops:
            return "stop"
        if policy.sampling.stop and policy.stopped(row.answer):
            return "stop"
        if len(row.logprobs) >= row.limit:
            return "length"
        return "context" if len(row.ids) >= policy.context else None

    def _completion(self, row: Row, finish: Finish) -> Completion:
        answer = row.answer
        return Completion(
            text=self._policy.text(answer),
            prompt_ids=row.prompt,
            ids=tuple(answer),
            logprobs=tuple(row.logprobs),
            entropy=tuple(row.entropy),
            finish=finish,
            version=row.version,
            fresh=row.fresh,
            pictures=row.shown(),
        )


def _passes(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows in passes of at most BUDGET tokens, those with like amounts to compute together."""
    part: list[Row] = []
    tokens = 0
    for row in sorted(rows, key=lambda row: len(row.ids) - row.cached):
        size = len(row.ids) - row.cached
        if part and tokens + size > BUDGET:
            yield part
            part, tokens = [], 0
        part.append(row)
        tokens += size
    if part:
        yield part
