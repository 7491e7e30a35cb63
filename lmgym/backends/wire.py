"""What a server of environments and its clients say to each other: JSON of these shapes, and nothing else.

A message has calls, each of which is answered in its place, so that one message steps many sessions. Pictures travel
as PNG in base64; nothing is pickled.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

PATH = "/v1"
TOKEN = "LMGYM_REMOTE_TOKEN"
HINTS = ("oracle", "demonstrator", "admissible")  # what a call may ask about, of what may be withheld
SECRETS = (*HINTS, "answer", "seats", "instances")  # seats: playing those that others play; instances: authored ones
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # what reading a stranger's JSON may raise

Shape = TypeVar("Shape")


class Open(Struct, tag_field="op", tag="open", forbid_unknown_fields=True):
    """Open a session: one environment, for one episode after the other."""

    task: str
    split: str | None = None  # None: as the task has it, most often "train"
    options: dict[str, bool | int | float | str] = {}
    max_turns: int | None = None  # None: as the task has it
    others: str = "scripted"  # or "caller", who then plays all seats


class Reset(Struct, tag_field="op", tag="reset", forbid_unknown_fields=True):
    """Begin an episode: of an instance, or of one that is drawn."""

    session: str
    seed: int | None = None
    index: int | None = None
    instance: dict[str, Any] | None = None  # authored


class Step(Struct, tag_field="op", tag="step", forbid_unknown_fields=True):
    """Play an action of the seat on turn, after fresh chance where `reseed` is given."""

    session: str
    action: str
    reseed: int | None = None


class Cut(Struct, tag_field="op", tag="cut", forbid_unknown_fields=True):
    """End the episode where it stands."""

    session: str


class Ask(Struct, tag_field="op", tag="ask", forbid_unknown_fields=True):
    """Ask for an action: of an adviser, or of the task's own player of a seat."""

    session: str
    what: str  # "oracle", "demonstrator", "admissible" or "scripted"
    seat: str = ""  # of "scripted"
    afresh: bool = True  # from the present state; else what follows the adviser's last word


class Close(Struct, tag_field="op", tag="close", forbid_unknown_fields=True):
    """End a session."""

    session: str


EnvCall = Open | Reset | Step | Cut | Ask  # an environment answers these
AnyCall = EnvCall | Close


class RequestMessage(Struct, forbid_unknown_fields=True):
    """A message to the server."""

    calls: list[AnyCall]
    id: int = 0  # the answer has the same


class Error(Struct, omit_defaults=True):
    """Why there is no answer."""

    code: str
    message: str
    retry_after: float = 0.0  # seconds


class ErrorAnswer(Struct):
    """In the place of an answer."""

    error: Error


class OpenAnswer(Struct):
    """A session, and what it plays."""

    session: str
    task: str
    split: str
    splits: list[str]
    size: int  # instances of the split
    max_turns: int  # that the server cuts at
    task_turns: int  # that the task has when nobody chooses
    text: int  # characters of an observation at most
    images: tuple[int, int, int] | None  # height, width and number of pictures at most; None: there are none
    deterministic: bool
    reveals: list[str]  # of SECRETS


class Info(Struct, omit_defaults=True):
    """What a step's info holds; anything else that a task puts there stays at the server."""

    instance: str
    valid: bool
    reward_terms: dict[str, float]
    seat: str
    seat_rewards: dict[str, float] | UnsetType = UNSET
    points: list[list[float]] | UnsetType = UNSET  # where the action pointed
    score: float | UnsetType = UNSET
    success: bool | UnsetType = UNSET
    seat_scores: dict[str, float] | UnsetType = UNSET
    answer: str | UnsetType = UNSET  # withheld, unless the operator says otherwise
    more: dict[str, Any] = {}  # what the task's spec says may be told beside


BASE = frozenset(Info.__struct_fields__) - {"more"}  # names in info that are the base class's
ENGINE = frozenset({"ply", "reseed"})  # and those that the engine writes beside


class StepAnswer(Struct, omit_defaults=True):
    """The answer to Reset and Step."""

    text: str
    info: Info
    images: list[str] = []  # PNG in base64
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    tools: list[dict[str, Any]] = []  # after Reset


class CutAnswer(Struct, omit_defaults=True):
    """The answer to Cut."""

    score: float
    success: bool
    seat_scores: dict[str, float] | UnsetType = UNSET


class AskAnswer(Struct):
    """The answer to Ask: an action, or all admissible ones; None where there is none."""

    advice: str | list[str] | None


class CloseAnswer(Struct):
    """The answer to Close."""

    closed: bool = True


Answer = OpenAnswer | StepAnswer | CutAnswer | AskAnswer | CloseAnswer | ErrorAnswer


class RawResponse(Struct, omit_defaults=True):
    """A message from the server: an answer a call, or why there are none."""

    id: int = 0
    answers: list[msgspec.Raw] = []
    error: Error | None = None


class ResponseMessage(Struct, omit_defaults=True):
    """The same, as the server writes it."""

    answers: list[Answer]
    id: int = 0


def read(raw: bytes | str | msgspec.Raw, shape: type[Shape]) -> Shape:
    """Return what JSON says in a shape; one of MALFORMED where it is no JSON or of another shape."""
    return msgspec.json.decode(raw, type=shape)
