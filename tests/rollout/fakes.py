"""A policy whose tokens are bytes and whose log-probs anybody can compute from the ids; a planner of all decisions."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from lmgym.policy.base import Conversation
from lmgym.rollout.context import Full, MarkovState, Stub, Summarise, Window
from lmgym.rollout.fork import fork
from lmgym.rollout.planner import Fork, Planner, Replace, Stop
from lmgym.rollout.segments import segments
from lmgym.types import Completion, Message, Trajectory

ROLES = {"system": 256, "user": 257, "assistant": 258}
END = 259
CONTEXTS = [Full(), Window(1), Window(2, stride=2), Stub(), MarkovState(), Summarise(48)]


def number(conversation: Conversation) -> str:
    """A number that depends on the noise and on nothing else."""
    return str(zlib.crc32(repr(conversation.noise).encode()) % 100)


def scored(ids: Sequence[int]) -> float:
    """Log-prob of the last of `ids` after the others."""
    return -(zlib.crc32(repr(tuple(ids)).encode()) % 1000) / 100 - 0.01


def rendered(messages: Sequence[Message]) -> list[int]:
    return [i for message in messages for i in (ROLES[message.role], *message.text.encode(), END)]


@dataclass
class Bytes:
    """Finishes `pace` rows a step."""

    answer: Callable[[Conversation], str] = number
    pace: int = 1000
    context: int = 1_000_000
    wants: frozenset[str] = frozenset()
    version: int = 0
    name: str = "bytes"
    heard: list[Conversation] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        return [self.completion(conversation) for conversation in conversations]

    def count(self, messages: Sequence[Message]) -> int:
        return len(rendered(messages)) + 1

    def session(self) -> Session:
        return Session(self)

    def completion(self, conversation: Conversation) -> Completion:
        self.heard.append(conversation)
        before = [i for said in conversation.spoken for i in (*said.prompt_ids, *said.ids)]
        prompt = rendered(conversation.messages)
        if before:
            assert prompt[: len(before)] == before, "what was spoken is not what is rendered"
            prompt = prompt[len(before) :]
        prompt = [*prompt, ROLES["assistant"]]
        ids = [*before, *prompt]
        if len(ids) >= self.context:
            return Completion(text="", finish="context", fresh=not before)
        text = self.answer(conversation)
        answer = [*text.encode(), END]
        logprobs = [scored([*ids, *answer[: n + 1]]) for n in range(len(answer))]
        return Completion(
            text=text,
            prompt_ids=tuple(prompt),
            ids=tuple(answer),
            logprobs=tuple(logprobs),
            entropy=tuple(-x / 2 for x in logprobs),
            fresh=not before,
            version=self.version,
        )


@dataclass
class Session:
    policy: Bytes
    waiting: dict[Hashable, Conversation] = field(default_factory=dict)

    def put(self, key: Hashable, conversation: Conversation) -> None:
        self.waiting[key] = conversation

    def step(self) -> list[tuple[Hashable, Completion]]:
        keys = list(self.waiting)[: self.policy.pace]
        self.policy.batches.append(len(keys))
        return [(key, self.policy.completion(self.waiting.pop(key))) for key in keys]

    def drop(self, key: Hashable) -> None:
        self.waiting.pop(key, None)

    def __len__(self) -> int:
        return len(self.waiting)


class Dicing(Planner):
    """Replaces, forks, stops and asks for more as a die falls that the episode's place in the tree throws."""

    def __init__(self, seed):
        self.seed = seed

    def throw(self, *place):
        return zlib.crc32(repr((self.seed, *place)).encode()) % 12

    def before_step(self, node):
        return Replace("roll") if self.throw("before", node.job.id, len(node.turns)) == 0 else None

    def after_step(self, node):
        match self.throw("after", node.job.id, len(node.turns)):
            case 0 if len(node.job.id) < 20:
                return Fork(2)
            case 1 if len(node.job.id) < 20:
                return Fork(turn=len(node.turns) // 2, reseed=1, stop="rewound")
            case 2:
                return Stop("enough")
        return super().after_step(node)

    def after_episode(self, trajectory, others):
        if len(trajectory.id) < 20 and self.throw("more", trajectory.id) < 4:
            yield fork(trajectory, self.throw(trajectory.id) % (len(trajectory.turns) + 1), number=99)


def assert_trained_once(trajectories: Sequence[Trajectory]) -> int:
    """Each sampled token is a loss token in exactly one segment of all; returns how many there are."""
    said = {id(turn.completion): turn.completion for t in trajectories for turn in t.turns if turn.kind != "given"}
    expected = sorted((round(x, 9), i) for c in said.values() for i, x in zip(c.ids, c.logprobs, strict=True))
    rows = [segment for trajectory in trajectories for segment in segments(trajectory)]
    trained = sorted(
        (round(x, 9), i) for row in rows for i, x, mask in zip(row.ids, row.logprobs, row.sampled, strict=True) if mask
    )
    assert trained == expected
    return len(trained)


def assert_rescored(trajectories: Sequence[Trajectory]) -> None:
    """The ids of a row give the log-probs with which they were sampled."""
    for trajectory in trajectories:
        for row in segments(trajectory):
            for position, mask in enumerate(row.sampled):
                if mask:
                    assert row.logprobs[position] == scored(row.ids[: position + 1])
