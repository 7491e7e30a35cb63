"""The records of the one data path: Message, Completion, Turn, Trajectory, Job.

All are frozen: whoever needs a changed record makes the next one with `dataclasses.replace`. Token ids are born
once, in a Completion; nothing on this path is ever decoded and encoded again.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "context", "filter", "broken"]  # broken: nobody answered, the episode is void
Kind = Literal["act", "summary", "given"]

FIRST_SEAT = "agent"


@dataclass(frozen=True, kw_only=True)
class Message:
    """One utterance as a policy sees it."""

    role: Role
    text: str
    images: tuple[str, ...] = ()  # digests of encoded images, kept once elsewhere


class Picture(NamedTuple):
    """Where a picture stands among ids."""

    digest: str
    start: int  # its first token
    length: int  # tokens from there to its last one


def digest_of(height: int, width: int, pixels: bytes) -> str:
    """The name of a picture: 128 bits of its sides and of its pixels, three bytes each, row by row."""
    return hashlib.blake2b(struct.pack(">II", height, width) + pixels, digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Completion:
    """What a policy answered, with the exact ids where there are any.

    `prompt_ids` are only the ids that were new before this answer: the ids of a segment are the concatenation of
    `prompt_ids + ids` over its turns. Without ids (endpoints, scripted players) the six sequences are empty.
    """

    text: str
    prompt_ids: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()  # sampled, the stop token included where it was sampled
    logprobs: tuple[float, ...] = ()  # of `ids` as sampled: after temperature, top-p and top-k
    entropy: tuple[float, ...] = ()  # nats, of the distribution each id was drawn from
    finish: Finish = "stop"
    version: int = 0  # of the weights that spoke
    fresh: bool = True  # `prompt_ids` render the whole conversation; False: they go on where the last answer ended
    thinking: str = ""  # reasoning that came apart from `text`; no part of the action
    pictures: tuple[Picture, ...] = ()  # that stand in `prompt_ids`
    usage: Mapping[str, Any] = field(default_factory=dict)  # of an endpoint's call: "in", "out" tokens, "seconds" ...


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What a seat was shown, what it said, and what came of it."""

    observation: Message
    completion: Completion
    action: str | None  # the words the environment was given; None if it never was
    reward: float = 0.0  # all that fell to the seat until its next turn
    terms: Mapping[str, float] = field(default_factory=dict)  # the reward by name; sums to `reward`
    info: Mapping[str, Any] = field(default_factory=dict)  # of the step that answered the action
    fresh: bool = False  # the prompt was rendered anew: a segment starts here
    kind: Kind = "act"


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """One seat's view of one episode."""

    id: str  # made of step, job and seat: never random
    root: str  # id of the trajectory this one was forked from, in the end; its own if none
    parent: str | None = None
    forked_at: int = 0  # turns[:forked_at] are shared with the parent
    task: str
    options: Mapping[str, Any] = field(default_factory=dict)
    split: str
    instance: Mapping[str, Any] | None = None  # where it was authored; else `index` names it
    index: int | None = None
    seed: int = 0
    attempt: int = 0
    reseed: int | None = None
    group: str = ""
    seat: str = FIRST_SEAT
    prompt: str | None = None  # system prompt of the seat
    tags: Mapping[str, Any] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)  # of reset; score and success of the end
    final: Message | None = None  # the observation after the last turn
    final_ids: tuple[int, ...] = ()  # of a cut episode: what the seat would have been shown next
    final_pictures: tuple[Picture, ...] = ()  # that stand in `final_ids`
    final_fresh: bool = False  # they render the whole view anew; False: they go on where the last answer ended
    terminated: bool = False
    truncated: bool = False
    stop: str = ""  # what ended it: "done", "max_turns", a planner's reason, "context", ...

    @property
    def reward(self) -> float:
        """Sum of the rewards of the turns (the undiscounted return)."""
        return sum(turn.reward for turn in self.turns)

    @property
    def score(self) -> float:
        """The benchmark's own figure in [0, 1], set when the episode ended."""
        return float(self.info["score"])

    @property
    def success(self) -> bool:
        """Whether the task calls this episode solved."""
        return bool(self.info["success"])


@dataclass(frozen=True, kw_only=True)
class Job:
    """One episode to play: what of a trajectory is known beforehand."""

    task: str
    split: str = "train"
    options: Mapping[str, Any] = field(default_factory=dict)
    index: int | None = None  # which instance of the split; None where `instance` is authored
    instance: Mapping[str, Any] | None = None
    seed: int = 0  # the environment's chance; the tries of one group share it
    attempt: int = 0  # which try: seeds the sampling, never the environment
    id: str = ""  # unique in a run; the engine numbers jobs that have none
    group: str = ""
    prompt: str | None = None
    tags: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None  # turns at most, below the task's own limit
    prefix: tuple[Turn, ...] = ()  # turns to play again before the policy takes over
    root: str | None = None
    parent: str | None = None
    reseed: int | None = None  # fresh chance from the end of the prefix on; None keeps the parent's


def pictures_in(said: Iterable[Completion]) -> tuple[Picture, ...]:
    """The pictures of a segment, by their places among its ids, from what was said in it."""
    found: list[Picture] = []
    begin = 0
    for each in said:
        found += (picture._replace(start=begin + picture.start) for picture in each.pictures)
        begin += len(each.prompt_ids) + len(each.ids)
    return tuple(found)
