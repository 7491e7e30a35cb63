"""The protocol of `lmgym serve`: requests and responses as JSON.

A request contains calls and its response one answer per call, so that one message can step many sessions. Pictures are
PNG in base64.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

PATH = "/v1"
TOKEN = "LMGYM_REMOTE_TOKEN"
HINTS = ("oracle", "demonstrator", "admissible")  # `Ask.what`, if revealed
SECRETS = (*HINTS, "answer", "seats", "instances")  # seats: play other seats; instances: authored ones
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # errors of decoding untrusted JSON

Shape = TypeVar("Shape")


class Open(Struct, tag_field="op", tag="open", forbid_unknown_fields=True):
    """Open a session: an environment for any number of episodes."""

    task: str
    split: str | None = None  # None: the task's default
    options: dict[str, bool | int | float | str] = {}
    max_turns: int | None = None  # None: the task's default
    others: str = "scripted"  # or "caller": the client plays all seats


class Reset(Struct, tag_field="op", tag="reset", forbid_unknown_fields=True):
    """Start an episode of a given or a random instance."""

    session: str
    seed: int | None = None
    index: int | None = None
    instance: dict[str, Any] | None = None  # authored


class Step(Struct, tag_field="op", tag="step", forbid_unknown_fields=True):
    """Play an action for the seat on turn, after reseeding the environment if `reseed` is set."""

    session: str
    action: str
    reseed: int | None = None


class Cut(Struct, tag_field="op", tag="cut", forbid_unknown_fields=True):
    """End the episode in its present state."""

    session: str


class Ask(Struct, tag_field="op", tag="ask", forbid_unknown_fields=True):
    """Ask for an action of the oracle, the demonstrator or a scripted seat, or for all admissible actions."""

    session: str
    what: str  # "oracle", "demonstrator", "admissible" or "scripted"
    seat: str = ""  # for "scripted"
    afresh: bool = True  # from the present state; False: the action after the last one


class Close(Struct, tag_field="op", tag="close", forbid_unknown_fields=True):
    """End a session."""

    session: str


EnvCall = Open | Reset | Step | Cut | Ask  # an environment answers these
AnyCall = EnvCall | Close


class RequestMessage(Struct, forbid_unknown_fields=True):
    """A message to the server: calls in order."""

    calls: list[AnyCall]
    id: int = 0  # returned with the response


class Error(Struct, omit_defaults=True):
    """The reason why a call or a message has no answer."""

    code: str
    message: str
    retry_after: float = 0.0  # seconds


class ErrorAnswer(Struct):
    """An error in place of an answer."""

    error: Error


class OpenAnswer(Struct):
    """The answer to Open: the session and its environment."""

    session: str
    task: str
    split: str
    splits: list[str]
    size: int  # instances of the split
    max_turns: int  # the server truncates here
    task_turns: int  # the task's default
    text: int  # highest number of characters of an observation
    images: tuple[int, int, int] | None  # height, width and highest number of pictures; None: no pictures
    deterministic: bool
    reveals: list[str]  # of SECRETS


class Info(Struct, omit_defaults=True):
    """The info of a step; other entries of a task's info never leave the server."""

    instance: str
    valid: bool
    reward_terms: dict[str, float]
    seat: str
    seat_rewards: dict[str, float] | UnsetType = UNSET
    points: list[list[float]] | UnsetType = UNSET  # where the action pointed
    score: float | UnsetType = UNSET
    success: bool | UnsetType = UNSET
    seat_scores: dict[str, float] | UnsetType = UNSET
    figures: dict[str, float] | UnsetType = UNSET
    answer: str | UnsetType = UNSET  # if revealed
    prompts: dict[str, str] | UnsetType = UNSET  # by seat, after Reset
    more: dict[str, Any] = {}  # entries that the task's spec declares public


BASE = frozenset(Info.__struct_fields__) - {"more"}  # names in info that every task has
ENGINE = frozenset({"ply", "reseed"})  # names in info that the rollout engine adds


class StepAnswer(Struct, omit_defaults=True):
    """The answer to Reset and Step."""

    text: str
    info: Info
    images: list[str] = []  # PNG in base64
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    tools: list[dict[str, Any]] | UnsetType = UNSET  # of the seat on turn, if they differ from the answer before


class CutAnswer(Struct, omit_defaults=True):
    """The answer to Cut."""

    score: float
    success: bool
    seat_scores: dict[str, float] | UnsetType = UNSET
    figures: dict[str, float] | UnsetType = UNSET


class AskAnswer(Struct):
    """The answer to Ask: an action, or all admissible actions; None if there is none."""

    advice: str | list[str] | None


class CloseAnswer(Struct):
    """The answer to Close."""

    closed: bool = True


Answer = OpenAnswer | StepAnswer | CutAnswer | AskAnswer | CloseAnswer | ErrorAnswer


class RawResponse(Struct, omit_defaults=True):
    """A response as the client decodes it first: undecoded answers, or the error of the whole message."""

    id: int = 0
    answers: list[msgspec.Raw] = []
    error: Error | None = None


class ResponseMessage(Struct, omit_defaults=True):
    """A response as the server encodes it: one answer per call."""

    answers: list[Answer]
    id: int = 0


def read(raw: bytes | str | msgspec.Raw, shape: type[Shape]) -> Shape:
    """Decode JSON of a given shape. Raises one of MALFORMED for anything else."""
    return msgspec.json.decode(raw, type=shape)
