"""Tokens per second of policies over many conversations of many turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np
import torch

from lmgym.policy.base import Conversation
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.session import LocalSession
from lmgym.types import Completion, Message

THINGS = ["apple", "bread", "candle", "cup", "fork", "knife", "mug", "pan", "plate", "pot", "spoon", "tomato", "vase"]
PLACES = ["armchair", "bed", "cabinet", "countertop", "desk", "drawer", "fridge", "microwave", "shelf", "sofa"]


@dataclass(frozen=True, kw_only=True)
class Load:
    """Conversations with a long first observation and answers of 8 to 48 tokens."""

    rows: int = 64
    turns: int = 10
    shortest: int = 8
    longest: int = 48
    seed: int = 0

    def lengths(self) -> list[list[int]]:
        """The number of tokens of each answer, by row and turn."""
        rng = np.random.default_rng(self.seed)
        return [
            [int(rng.integers(self.shortest, self.longest + 1)) for _ in range(self.turns)] for _ in range(self.rows)
        ]

    def observation(self, row: int, turn: int) -> str:
        """Return an observation of about 50 tokens, 150 in the first turn."""
        return _observation(self.seed, row, turn)


Sampler = TypeVar("Sampler", LocalPolicy, LocalSession)


@dataclass
class Player:
    """One row of the load: it puts its next turn as soon as the last one is answered."""

    load: Load
    row: int
    lengths: Sequence[int]
    messages: list[Message] = field(default_factory=list)
    spoken: list[Completion] = field(default_factory=list)

    def conversation(self) -> Conversation | None:
        """Return the next turn, or None after the last."""
        turn = len(self.spoken)
        if turn == self.load.turns:
            return None
        self.messages.append(Message(role="user", text=self.load.observation(self.row, turn)))
        return Conversation(
            messages=tuple(self.messages),
            spoken=tuple(self.spoken),
            noise=(self.row, turn),
            max_tokens=self.lengths[turn],
        )

    def heard(self, completion: Completion) -> None:
        """Record the answer."""
        self.spoken.append(completion)
        self.messages.append(Message(role="assistant", text=completion.text))


def with_session(policy: LocalPolicy, load: Load) -> int:
    """Return the tokens that a session samples for the load."""
    players = [Player(load, row, lengths) for row, lengths in enumerate(load.lengths())]
    session = policy.session()
    for player in players:
        session.put(player.row, _asked(player))
    while len(session):
        for key, completion in session.step():
            players[int(str(key))].heard(completion)
            conversation = players[int(str(key))].conversation()
            if conversation is not None:
                session.put(key, conversation)
    return sum(len(said.ids) for player in players for said in player.spoken)


def in_lockstep(session: LocalSession, load: Load) -> int:
    """Return the tokens that a session samples for the load if all rows wait for the slowest, as in training."""
    players = [Player(load, row, lengths) for row, lengths in enumerate(load.lengths())]
    for player in players:
        session.drop(player.row)
    for _ in range(load.turns):
        for player in players:
            session.put(player.row, _asked(player))
        while len(session):
            for key, completion in session.step():
                players[int(str(key))].heard(completion)
    return sum(len(said.ids) for player in players for said in player.spoken)


def with_generate(policy: LocalPolicy, load: Load) -> int:
    """Return the tokens that `model.generate` samples for the load, without a cache across turns and in lockstep."""
    players = [Player(load, row, lengths) for row, lengths in enumerate(load.lengths())]
    for _ in range(load.turns):
        asked = [_asked(player) for player in players]
        histories = [
            [i for said in player.spoken for i in (*said.prompt_ids, *said.ids)] + policy.prompt(conversation)[0]
            for player, conversation in zip(players, asked, strict=True)
        ]
        answers = _generated(policy, histories, max(conversation.max_tokens or 0 for conversation in asked))
        for player, conversation, answer in zip(players, asked, answers, strict=True):
            ids = _ended(answer[: conversation.max_tokens], policy.stops)
            prompt = policy.prompt(conversation)[0]
            player.heard(Completion(text=policy.text(ids), prompt_ids=tuple(prompt), ids=tuple(ids)))
    return sum(len(said.ids) for player in players for said in player.spoken)


def measure(policy: Sampler, load: Load, run: Callable[[Sampler, Load], int]) -> dict[str, float]:
    """Return tokens, seconds and tokens per second of one run, by a policy or a session."""
    began = time.perf_counter()
    tokens = run(policy, load)
    seconds = time.perf_counter() - began
    return {"tokens": tokens, "seconds": round(seconds, 3), "tokens_per_second": round(tokens / seconds, 1)}


@cache
def _observation(seed: int, row: int, turn: int) -> str:
    rng = np.random.default_rng([seed, row, turn])
    names = [f"a {rng.choice(THINGS)} {rng.integers(1, 4)}" for _ in range(12 if turn else 40)]
    return f"On the {rng.choice(PLACES)} {rng.integers(1, 20)}, you see {', '.join(names)}."


def _asked(player: Player) -> Conversation:
    conversation = player.conversation()
    assert conversation is not None
    return conversation


def _generated(policy: LocalPolicy, histories: Sequence[Sequence[int]], longest: int) -> Iterator[list[int]]:
    """Return the answers of `generate` to left-padded histories."""
    width = max(map(len, histories))
    ids = torch.tensor([[0] * (width - len(history)) + list(history) for history in histories])
    attention = torch.tensor([[0] * (width - len(history)) + [1] * len(history) for history in histories])
    with torch.inference_mode():
        output = policy.model.generate(
            input_ids=ids, attention_mask=attention, do_sample=True, max_new_tokens=longest, top_k=0, pad_token_id=0
        )
    yield from output[:, width:].tolist()


def _ended(ids: list[int], stops: frozenset[int]) -> list[int]:
    end = next((i + 1 for i, token in enumerate(ids) if token in stops), len(ids))
    return ids[:end]
