"""Leaderboard entries: one JSON file that states what was run, and one file with a recorded episode per line.

Episodes hold only what replay needs: actions, rewards, digests of observations, and token ids of local policies. An
observation digest has 64 bits, enough to detect a difference but not to keep a secret. Both files have one canonical
text, so that an entry has one digest. Constraints on single fields stand with the fields; `validate` checks the rest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from lmgym.board import parsing
from lmgym.errors import SubmissionError
from lmgym.evaluation.settings import ToolMode
from lmgym.rollout.answers import AnswerFormat
from lmgym.types import FIRST_SEAT, Message
from lmgym.visible import visible

SUFFIX = ".episodes.jsonl.zst"
REFERENCES = {"null": "Says nothing", "random": "Acts at random", "oracle": "Knows everything"}  # title by name
END = r"$(?!\n)"  # of a pattern: `$` alone also matches before a final line break

Name = Annotated[str, Meta(pattern=r"^[a-z0-9]([a-z0-9.-]{0,46}[a-z0-9])?" + END)]
SeatName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]{0,31}" + END)]
Hex16 = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}" + END)]
Hex64 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END)]
Line = Annotated[str, Meta(max_length=200)]
Link = Annotated[
    str,
    Meta(
        max_length=200,
        pattern=r"^https://[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(/[A-Za-z0-9._~%!$&()*+,;=:@/?#-]*)?" + END,
    ),
]
Share = Annotated[float, Meta(ge=0, le=1)]
TokenId = Annotated[int, Meta(ge=0, lt=1 << 24)]  # 60 times the largest vocabulary
TokenCount = Annotated[int, Meta(ge=0, le=1 << 40)]
AnswerLimit = Annotated[int, Meta(ge=1, le=1 << 40)]  # tokens
FigureName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,47}" + END)]
Finish = Literal["stop", "length", "context", "filter"]
PolicyKind = Literal["model", "script", "oracle", "random", "null", "human"]

T = TypeVar("T")


class RecordedTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One turn of any seat, in the order of play."""

    observation: Hex16  # digest of the observation that the seat answered
    action: str | None  # None: a summary, which the environment does not receive
    reward: float = 0.0  # everything the seat earned until its next turn
    seat: str = FIRST_SEAT
    words: str | None = None  # text of a summary, or of an answer if the action is a part of it
    prompt: tuple[TokenId, ...] = ()  # new ids before the answer
    ids: tuple[TokenId, ...] = ()  # ids of the answer
    logprobs: tuple[Annotated[float, Meta(le=0)], ...] = ()
    entropy: tuple[float, ...] = ()  # nats
    finish: Finish = "stop"
    fresh: bool = True  # `prompt` renders the whole conversation


class RecordedEpisode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One try at one instance."""

    index: int
    attempt: int
    seed: int
    turns: tuple[RecordedTurn, ...]
    final: str | None  # digest of the last observation; None where another seat received it
    score: Share
    success: bool
    terminated: bool
    truncated: bool
    stop: Literal["done", "max_turns", "context"]  # ended by the task, the turn limit, or a full context
    cost: Annotated[float, Meta(ge=0, le=1e6)] | None = None  # US dollars, as declared
    tokens_in: TokenCount | None = None  # as declared, for policies without recorded ids; None: unknown
    tokens_out: TokenCount | None = None
    figures: dict[FigureName, float] = {}  # the task's own

    @property
    def label(self) -> str:
        """Instance and try, for messages."""
        return f"instance {self.index}, try {self.attempt}"


class PolicyRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy that played."""

    name: Line  # its policy string, without paths and hosts
    kind: PolicyKind
    parameters: Annotated[int, Meta(ge=0, le=1 << 50)] | None = None
    weights: Hex64 | None = None  # SHA-256 of the weights


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Statements by the author that nobody can check."""

    training: Line = "not said"  # training data
    trained_on: tuple[Line, ...] = ()  # "TASK SPLIT", of lmgym's own tasks
    tools: Line = "none"
    hidden_tries: Line = "none"  # further tries, from which the submitted ones were chosen
    humans: Line = "none"


class Links(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Further reading, by https."""

    code: Link | None = None
    paper: Link | None = None
    weights: Link | None = None


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Mean score and success, which verification must reproduce."""

    score: float
    success: float


class EpisodeFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Size and digest of the file of episodes."""

    count: int
    sha256: Hex64  # of its uncompressed lines


class EntrySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the evaluation. An entry stores those that were given; the rest have these defaults."""

    seed: Literal[0] = 0  # the board's only seed, as in `lmgym eval --standard`
    temperature: Annotated[float, Meta(ge=0, le=2)] = 1.0  # any text is plausible at a higher one
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Meta(ge=0, lt=1 << 24)] = 0
    max_tokens: AnswerLimit | None = None  # per answer
    seat_max_tokens: dict[SeatName, AnswerLimit] = {}  # of seats whose limit is not the agent's
    context: Line = "full"
    tools: ToolMode = "none"
    prompt: str | None = None  # system prompt
    answers: AnswerFormat = "plain"  # the part of the agent's answers that is the action
    seats: dict[SeatName, Line] = {}  # public policy name by seat
    request: dict[str, Any] = {}  # further members of the requests to an endpoint


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of `<name>.json`."""

    schema: Literal[1]
    licence: Literal["CC0-1.0"]
    task: str  # id
    split: str
    options: dict[str, Any]  # task options; the protocol allows none
    instances: int
    tries: int
    max_turns: int
    name: Name  # system name, the same on every task
    title: Line
    authors: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=50)]
    date: str  # YYYY-MM-DD
    policy: PolicyRecord
    seats: tuple[SeatName, ...]  # seats with recorded turns; the task's own players have the others
    user: Line | None  # policy of the other seats; None: the task's own players
    settings: dict[str, Any]  # the given ones of EntrySettings
    identity: str  # digest of everything the score depends on
    claim: Claim
    declared: Declaration
    links: Links
    episodes: EpisodeFile


def observation_digest(message: Message) -> str:
    """Return 16 hex digits of SHA-256 over an observation's text and the digests of its pictures."""
    text = "\0".join([message.text, *message.images])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def canonical(record: msgspec.Struct) -> bytes:
    """Return the canonical JSON text of a record."""
    return parsing.canonical(plain(record))


def plain(record: msgspec.Struct) -> dict[str, Any]:
    """Return a record as plain values, without fields that have their defaults."""
    defaults = _defaults(type(record))
    values = ((name, getattr(record, name)) for name in record.__struct_fields__)
    return {name: _plain(value) for name, value in values if name not in defaults or value != defaults[name]}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return plain(value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value] if value and isinstance(value[0], msgspec.Struct) else list(value)
    return value


@cache
def _defaults(kind: type[msgspec.Struct]) -> dict[str, Any]:
    fields = [field for field in msgspec.structs.fields(kind) if not field.required]
    return {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in fields
    }


def digest(entry: Entry) -> str:
    """Return the digest of an entry; it covers the episodes, whose digest is a field."""
    return parsing.digest(canonical(entry))


def identity(entry: Entry) -> str:
    """Return the digest of everything a score depends on; entries that agree in it measure the same thing."""
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


def settings_of(entry: Entry) -> EntrySettings:
    """Return the settings of an entry with the defaults filled in. Raises SubmissionError for an invalid one."""
    return as_record(entry.settings, EntrySettings, "settings")


def folder_name(task: str) -> str:
    """Return the name of a task's folder among the entries: the id without lmgym's own namespace."""
    return task.removeprefix("lmgym/").replace("/", "--")


def read(path: Path) -> Entry:
    """Parse an entry's JSON file."""
    return as_record(parsing.parse(parsing.read_small(path), path.name), Entry, path.name)


def episodes_path(path: Path) -> Path:
    """Return the file of episodes beside an entry's JSON file."""
    return path.with_name(path.name.removesuffix(".json") + SUFFIX)


def read_episodes(path: Path) -> Iterator[RecordedEpisode]:
    """Parse the episodes of the entry whose JSON file is `path`, one at a time."""
    file = episodes_path(path)
    for number, line in enumerate(parsing.lines(file), 1):
        yield parse_episode(line, f"{file.name}, line {number}")


def parse_episode(line: bytes, where: str) -> RecordedEpisode:
    """Parse the line of an episode. Raises SubmissionError unless it is the canonical text."""
    episode = as_record(parsing.parse(line, where), RecordedEpisode, where)
    if canonical(episode) != line:
        raise SubmissionError(f"{where} is not canonical JSON: sort the keys, omit spaces and default values")
    return episode


def as_record(content: Any, kind: type[T], where: str) -> T:
    """Convert a parsed value to a record. Raises SubmissionError at the first field that violates its type."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise SubmissionError(f"{where}: {visible(str(error)[:300])}") from error


def write(folder: Path, entry: Entry, episodes: Iterable[RecordedEpisode]) -> Path:
    """Write an entry to `folder`/TASK and return the path of its JSON file. Raises SubmissionError if it exists."""
    path = folder / folder_name(entry.task) / f"{entry.name}.json"
    if path.exists() or episodes_path(path).exists():
        raise SubmissionError(f"{path} exists, and an entry is never overwritten; choose another --name")
    path.parent.mkdir(parents=True, exist_ok=True)
    episodes_path(path).write_bytes(parsing.compress(packed(episodes)))
    path.write_bytes(json.dumps(plain(entry), indent=1, sort_keys=True).encode() + b"\n")
    return path


def packed(episodes: Iterable[RecordedEpisode]) -> bytes:
    """Return the uncompressed content of a file of episodes."""
    return b"".join(canonical(episode) + b"\n" for episode in episodes)


def all_paths(folder: Path) -> Iterator[Path]:
    """Yield the JSON files of the entries in a folder, sorted by task and name."""
    return iter(sorted(folder.glob("*/*.json")))


def schemas() -> dict[str, bytes]:
    """Return the JSON Schemas of both files, by the file names under which they are published."""
    kinds: dict[str, type[msgspec.Struct]] = {
        "entry.json": Entry,
        "settings.json": EntrySettings,
        "episode.json": RecordedEpisode,
    }
    return {
        name: json.dumps(msgspec.json.schema(kind), indent=1, sort_keys=True).encode() + b"\n"
        for name, kind in kinds.items()
    }
