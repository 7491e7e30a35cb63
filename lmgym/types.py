"""Records of the data path: Message, Completion, Turn, Trajectory, Job.

All are frozen; `dataclasses.replace` makes a changed copy. Token ids are made once, in a Completion; nothing on this
path is decoded and encoded again.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "context", "filter", "broken"]  # broken: no answer, the episode is void
Kind = Literal["act", "summary", "given"]

FIRST_SEAT = "agent"


@dataclass(frozen=True, kw_only=True)
class Message:
    """One utterance as a policy sees it."""

    role: Role
    text: str
    images: tuple[str, ...] = ()  # digests of encoded images, which are stored once elsewhere


class Picture(NamedTuple):
    """Position of a picture among token ids."""

    digest: str
    start: int  # its first token
    length: int  # in tokens


def digest_of(height: int, width: int, pixels: bytes) -> str:
    """Return a picture's digest: 128 bits over its size and its RGB pixels, row by row."""
    return hashlib.blake2b(struct.pack(">II", height, width) + pixels, digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A policy's answer with its exact ids.

    `prompt_ids` are only the ids that were new before this answer: the ids of a segment are the concatenation of
    `prompt_ids + ids` over its turns. Without ids (endpoints, scripted players) all sequences are empty.
    """

    text: str
    prompt_ids: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()  # sampled, including the stop token if it was sampled
    logprobs: tuple[float, ...] = ()  # of `ids` as sampled: after temperature, top-p and top-k
    entropy: tuple[float, ...] = ()  # nats, of the distribution each id was drawn from
    finish: Finish = "stop"
    version: int = 0  # of the weights that sampled
    fresh: bool = True  # `prompt_ids` render the whole conversation; False: they continue after the last answer
    thinking: str = ""  # reasoning that is separate from `text` and not part of the action
    pictures: tuple[Picture, ...] = ()  # in `prompt_ids`
    usage: Mapping[str, Any] = field(default_factory=dict)  # of an endpoint's call: "in", "out" tokens, "seconds" ...


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One observation of a seat, its answer and the result."""

    observation: Message
    completion: Completion
    action: str | None  # text sent to the environment; None if none was
    reward: float = 0.0  # everything the seat earned until its next turn
    terms: Mapping[str, float] = field(default_factory=dict)  # the reward by name; sums to `reward`
    info: Mapping[str, Any] = field(default_factory=dict)  # of the step that answered the action
    fresh: bool = False  # the prompt was rendered anew: a segment starts here
    kind: Kind = "act"


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """One seat's view of one episode."""

    id: str  # made of step, job and seat; never random
    root: str  # id of the first trajectory in the chain of forks; its own if it is no fork
    parent: str | None = None
    forked_at: int = 0  # turns[:forked_at] are shared with the parent
    task: str
    options: Mapping[str, Any] = field(default_factory=dict)
    split: str
    instance: Mapping[str, Any] | None = None  # if authored; otherwise `index` names it
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
    final_ids: tuple[int, ...] = ()  # of a cut episode: the prompt of the turn that was not played
    final_pictures: tuple[Picture, ...] = ()  # in `final_ids`
    final_fresh: bool = False  # True: they render the whole view anew; False: they continue after the last answer
    terminated: bool = False
    truncated: bool = False
    stop: str = ""  # reason of the end: "done", "max_turns", a planner's reason, "context", ...

    @property
    def reward(self) -> float:
        """Sum of the rewards of the turns (the undiscounted return)."""
        return sum(turn.reward for turn in self.turns)

    @property
    def score(self) -> float:
        """The benchmark's score in [0, 1], set when the episode ended."""
        return float(self.info["score"])

    @property
    def success(self) -> bool:
        """True if the task counts this episode as solved."""
        return bool(self.info["success"])

    @property
    def figures(self) -> Mapping[str, float]:
        """The task's own figures of the episode by name."""
        return dict(self.info.get("figures", {}))


@dataclass(frozen=True, kw_only=True)
class Job:
    """One episode to play."""

    task: str
    split: str = "train"
    options: Mapping[str, Any] = field(default_factory=dict)
    index: int | None = None  # of the instance in the split; None if `instance` is authored
    instance: Mapping[str, Any] | None = None
    seed: int = 0  # of the environment's chance; the tries of one group share it
    attempt: int = 0  # number of the try: seeds the sampling, never the environment
    id: str = ""  # unique in a run; the engine numbers jobs that have none
    group: str = ""
    prompt: str | None = None
    tags: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None  # maximum of turns, below the task's own limit
    prefix: tuple[Turn, ...] = ()  # turns to replay before the policy takes over
    root: str | None = None
    parent: str | None = None
    reseed: int | None = None  # seed of chance after the prefix; None keeps the parent's


def pictures_in(completions: Iterable[Completion]) -> tuple[Picture, ...]:
    """Return the pictures of a segment by their positions among its ids."""
    pictures: list[Picture] = []
    start = 0
    for each in completions:
        pictures += (picture._replace(start=start + picture.start) for picture in each.pictures)
        start += len(each.prompt_ids) + len(each.ids)
    return tuple(pictures)
