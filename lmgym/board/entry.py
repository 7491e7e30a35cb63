"""An entry: one JSON file that says what was run, and one file of episodes, an episode a line.

Episodes hold what replaying needs and nothing else: actions, rewards, digests of observations (64 bits: they find what
does not replay, they keep no secret), and token ids where the policy has any. Their text is canonical: an entry has
one digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from lmgym.board import parsing
from lmgym.errors import SubmissionError
from lmgym.types import FIRST_SEAT, Message

SUFFIX = ".episodes.jsonl.zst"
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,46}[a-z0-9])?")
Finish = Literal["stop", "length", "context", "filter"]

T = TypeVar("T")


class RecordedTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A turn of any seat, in the order of play."""

    observation: str  # digest of what the seat was shown
    action: str | None  # None: a summary, which no environment sees
    reward: float = 0.0  # all that fell to the seat until its next turn
    seat: str = FIRST_SEAT
    words: str | None = None  # a summary; else what the policy said is the action
    prompt: tuple[int, ...] = ()  # ids that were new before the answer
    ids: tuple[int, ...] = ()  # of the answer
    logprobs: tuple[float, ...] = ()
    entropy: tuple[float, ...] = ()  # nats
    finish: Finish = "stop"
    fresh: bool = True  # `prompt` renders the whole conversation


class RecordedEpisode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One try at one instance."""

    index: int
    attempt: int
    seed: int
    turns: tuple[RecordedTurn, ...]
    final: str | None  # digest of the last observation; None where it was shown to another seat
    score: float
    success: bool
    terminated: bool
    truncated: bool
    stop: str
    cost: float | None = None  # US dollars, as declared
    tokens_in: int | None = None  # as declared, where there are no ids; None: not known
    tokens_out: int | None = None


class PolicyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy that played."""

    name: str  # the string that makes it again, less paths and hosts
    kind: Literal["model", "script", "oracle", "random", "null", "human"]
    parameters: int | None = None
    weights: str | None = None  # SHA-256 over the weights


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the author says and nobody can check."""

    training: str = "not said"  # data
    trained_on: tuple[str, ...] = ()  # "task split", of lmgym's own tasks
    tools: str = "none"
    hidden_tries: str = "none"  # of which only these were handed in
    humans: str = "none"


class Links(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to read more; https only."""

    code: str | None = None
    paper: str | None = None
    weights: str | None = None


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Means that verification must arrive at."""

    score: float
    success: float


class EpisodeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of episodes."""

    count: int
    sha256: str  # of its lines, unpacked


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `<name>.json` holds."""

    schema: Literal[1]
    licence: Literal["CC0-1.0"]
    task: str  # id
    split: str
    options: dict[str, Any]  # of the task: the protocol knows none
    instances: int
    tries: int
    max_turns: int
    name: str  # of the system: the same on every task
    title: str
    authors: tuple[str, ...]
    date: str  # YYYY-MM-DD
    policy: PolicyRecord
    seats: tuple[str, ...]  # that the recorded turns play; the task's own players have the others
    user: str | None  # the policy in the other seats; None: the task's own players
    settings: dict[str, Any]
    identity: str  # digest of what a score depends on
    claim: Claim
    declared: Declaration
    links: Links
    episodes: EpisodeFile


def observation_digest(message: Message) -> str:
    """16 hex digits of SHA-256 over an observation's text and the digests of its pictures."""
    words = "\0".join([message.text, *message.images])
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def canonical(record: msgspec.Struct) -> bytes:
    """The one JSON text of a record."""
    return parsing.canonical(plain(record))


def plain(record: msgspec.Struct) -> dict[str, Any]:
    """A record as JSON has it, without the fields that have their defaults."""
    defaults = _defaults(type(record))
    values = ((name, getattr(record, name)) for name in record.__struct_fields__)
    return {name: _plain(value) for name, value in values if name not in defaults or value != defaults[name]}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return plain(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value] if value and isinstance(value[0], msgspec.Struct) else list(value)
    return value


@cache
def _defaults(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: field.default for field in msgspec.structs.fields(kind) if not field.required}


def digest(entry: Entry) -> str:
    """Of an entry, its episodes included: their digest is part of it."""
    return parsing.digest(canonical(entry))


def identity(entry: Entry) -> str:
    """Digest of everything that a score depends on: two scores compare where it says so."""
    facts = {
        "task": entry.task,
        "split": entry.split,
        "options": entry.options,
        "instances": entry.instances,
        "tries": entry.tries,
        "max_turns": entry.max_turns,
        "seats": list(entry.seats),
        "user": entry.user,
        "policy": msgspec.to_builtins(entry.policy),
        "settings": entry.settings,
    }
    return parsing.digest(parsing.canonical(facts))


def folder_name(task: str) -> str:
    """Name of a task's folder among the entries: the id without our own namespace."""
    return task.removeprefix("lmgym/").replace("/", "--")


def read(path: Path) -> Entry:
    """The entry in a JSON file."""
    return as_record(parsing.parse(parsing.small(path), path.name), Entry, path.name)


def episodes_path(path: Path) -> Path:
    """The file of episodes beside an entry's JSON file."""
    return path.with_name(path.name.removesuffix(".json") + SUFFIX)


def episode(line: bytes, where: str) -> RecordedEpisode:
    """The episode of a line. Raises SubmissionError where the line is not its canonical text."""
    found = as_record(parsing.parse(line, where), RecordedEpisode, where)
    if canonical(found) != line:
        raise SubmissionError(f"{where} is not written canonically: keys sorted, no spaces, no defaults")
    return found


def as_record(content: Any, kind: type[T], where: str) -> T:
    """A parsed value as a record. Raises SubmissionError at the first field that is not as it should be."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise SubmissionError(f"{where}: {error}") from error


def write(folder: Path, entry: Entry, episodes: Iterable[RecordedEpisode]) -> Path:
    """Write an entry under `folder`/task and return the path of its JSON file; what is there is never overwritten."""
    path = folder / folder_name(entry.task) / f"{entry.name}.json"
    if path.exists() or episodes_path(path).exists():
        raise SubmissionError(f"{path} is there: an entry is never overwritten; choose another --name")
    path.parent.mkdir(parents=True, exist_ok=True)
    episodes_path(path).write_bytes(parsing.compress(packed(episodes)))
    path.write_bytes(pretty(entry))
    return path


def packed(episodes: Iterable[RecordedEpisode]) -> bytes:
    """Lines of episodes."""
    return b"".join(canonical(each) + b"\n" for each in episodes)


def pretty(record: msgspec.Struct) -> bytes:
    """JSON to be read by people."""
    return json.dumps(plain(record), indent=1, sort_keys=True).encode() + b"\n"


def all_paths(folder: Path) -> Iterator[Path]:
    """JSON files of the entries under a folder, by task and name."""
    return iter(sorted(folder.glob("*/*.json")))


def schemas() -> dict[str, bytes]:
    """JSON Schemas of both files, by the names that they are published under."""
    kinds: dict[str, type[msgspec.Struct]] = {"entry.json": Entry, "episode.json": RecordedEpisode}
    return {
        name: json.dumps(msgspec.json.schema(kind), indent=1, sort_keys=True).encode() + b"\n"
        for name, kind in kinds.items()
    }
