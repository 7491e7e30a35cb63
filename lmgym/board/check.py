"""What an entry must be before anything of it is played: names, words and links, and the protocol of its task."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from lmgym.board import parsing
from lmgym.board.entry import (
    NAME,
    Entry,
    RecordedEpisode,
    RecordedTurn,
    episode,
    episodes_path,
    folder_name,
    identity,
    plain,
)
from lmgym.errors import InstanceError, RecipeError, SubmissionError
from lmgym.evaluation.protocol import OFFICIAL_TESTS, Protocol, trains_on
from lmgym.evaluation.settings import ToolMode, context_rule
from lmgym.types import FIRST_SEAT

STOPS = ("done", "max_turns", "context")  # what may end an episode: the task, its limit, the policy's want of room
SUMMARISING = "summarise"  # the context rule that asks for summaries
DEAREST = 1e6  # US dollars of an episode
IDS = 1 << 24  # token ids; the largest vocabularies have a 60th of them
COUNT = 1 << 40  # tokens, or parameters, beyond which a number is none
LONGEST = 200  # characters of a title, name or declaration
FREE = ("prompt", "request")  # settings that a model was sent: a stop may be the end of a line
PROMPT = 8_000  # characters of a system prompt, or of a text within a request
LINES = "\r\n\t\u200c\u200d"  # what such a text may have beside what is seen; the last two join signs or part them
HOTTEST = 2.0  # temperature: beyond, any token is as likely as another and no check of ids sees whose it is
RESERVED = ("null", "random", "oracle")  # names that are the references' own
LINK = re.compile(r"https://[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(/[A-Za-z0-9._~%!$&()*+,;=:@/?#-]*)?")
ROOTS = "home|root|tmp|usr|var|etc|opt|mnt|media|srv|proc|scratch|nfs|lustre|gpfs|workspace|Users|Volumes|private"
PRIVATE = (  # what tells of the author's machine
    re.compile(r"(?:^|[\s\"'=(:,])(?:~|\.\.?)?/[\w.-]+/"),
    re.compile(rf"(?:^|[\s\"'=(:,])/(?:{ROOTS})(?![\w-])"),
    re.compile(r"[A-Za-z]:\\|\\\\\w"),
    re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE),
    re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"),
    re.compile(r"\blocalhost\b|\S@\S+\.\S", re.IGNORECASE),
)
KEYS = (  # as their issuers make them: prefix, letters and length; words with dashes are none
    re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk|csk)-(?:\w+-)*(?=[A-Za-z_]*[0-9])[A-Za-z0-9_]{16,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:hf|gsk|api_org)_[A-Za-z0-9]{28,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:gh[opsur]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|glpat-[\w-]{20,})"),
    re.compile(r"(?<![A-Za-z0-9])xox[a-z]-(?=\S*[0-9])[\w-]{16,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:AIza[\w-]{30,}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])|r8_[A-Za-z0-9]{30,})"),
    re.compile(r"(?<![A-Za-z0-9])(?:xai|pplx|nvapi|fw)[-_](?=[A-Za-z_-]*[0-9])[\w-]{32,}"),
    re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\."),
    re.compile(r"\bBearer\s+(?=\S*[0-9])[\w.~+/=-]{16,}"),
)
DIGEST = re.compile(r"[0-9a-f]{16}")
WEIGHTS = re.compile(r"[0-9a-f]{64}")
SEAT = re.compile(r"[a-z][a-z0-9_-]{0,31}")
SETTINGS: Mapping[str, type | tuple[type, ...]] = {
    "seed": int,
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": int,
    "max_tokens": int,
    "context": str,
    "tools": str,
    "prompt": str,
    "seats": dict,
    "request": dict,
}
UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U000e0100-\U000e01ef]")
MARKUP = frozenset('<>&"`\\')


def check_entry(entry: Entry, protocol: Protocol, path: Path) -> None:
    """Raise SubmissionError at the first thing in an entry's JSON that may not be so."""
    _check_place(entry, path)
    for where, words in _texts(entry):
        check_words(words, where)
    for where in FREE:
        for _, words in _words(entry.settings.get(where), where):
            _check_lines(words, where)
    for name, link in plain(entry.links).items():
        check_link(link, name)
    if not 1 <= len(entry.authors) <= 50:
        raise SubmissionError(f"an entry has 1 to 50 authors; this one has {len(entry.authors)}")
    for where, words in (
        ("title", entry.title),
        ("policy", entry.policy.name),
        *(("author", a) for a in entry.authors),
    ):
        _check_shows(words, where)
    _check_date(entry.date)
    _check_settings(entry)
    check_asked(entry, protocol)
    _check_seats(entry)
    _check_training(entry, protocol)
    if entry.identity != identity(entry):
        raise SubmissionError(
            f"identity is {entry.identity[:16]}..., but these settings have {identity(entry)[:16]}..."
        )


def check_name(name: str) -> None:
    """Raise SubmissionError where `name` is no name of an entry, which is also a file's."""
    if not NAME.fullmatch(name) or ".." in name:
        raise SubmissionError(
            f"{name[:60]!r} is no name of an entry: lower-case letters, digits, dots and dashes, 48 at most"
        )


def check_words(words: str, where: str) -> None:
    """Raise SubmissionError for markup, control and direction characters, paths and hosts."""
    shown = f"{where} {words[:60]!r}"
    if len(words) > LONGEST:
        raise SubmissionError(f"{where} has {len(words):,} characters; {LONGEST} are the most")
    if MARKUP.intersection(words):
        raise SubmissionError(f"{shown} has markup; write plain words")
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp") for letter in words):
        raise SubmissionError(f"{shown} has control characters")
    if hidden := UNSEEN.search(words):
        raise SubmissionError(f"{shown} has a character that nobody sees: U+{ord(hidden[0]):04X}")
    _check_private(words, shown)


def _check_shows(words: str, where: str) -> None:
    """Raise SubmissionError where there is no letter, figure or sign to be read."""
    if not any(unicodedata.category(letter)[0] in "LNPS" for letter in words):
        raise SubmissionError(f"{where} {words[:60]!r} is blank")


def _check_private(words: str, shown: str) -> None:
    if any(pattern.search(words) for pattern in KEYS):
        raise SubmissionError(f"{shown.split(' ')[0]} holds what looks like a key")  # which is not repeated
    if any(pattern.search(words) for pattern in PRIVATE):
        raise SubmissionError(f"{shown} names a path or a host; an entry tells nothing of the machine it was made on")


def _check_lines(words: str, where: str) -> None:
    """Hold what a model was sent to what other words are held to, but that it may have lines, tags and joined signs."""
    if len(words) > PROMPT:
        raise SubmissionError(f"{where} has {len(words):,} characters; {PROMPT:,} are the most")
    hidden = [letter for letter in words if unicodedata.category(letter) in ("Cc", "Cf", "Co") and letter not in LINES]
    if hidden:
        raise SubmissionError(f"{where} has control characters: U+{ord(hidden[0]):04X}")
    _check_private(words, f"{where} {words[:60]!r}")


def check_link(link: str, where: str) -> None:
    """Raise SubmissionError for what is no plain https address."""
    if len(link) > LONGEST or not LINK.fullmatch(link):
        raise SubmissionError(f"the link {where} {link[:60]!r} is no plain https address")


def _check_place(entry: Entry, path: Path) -> None:
    check_name(entry.name)
    if entry.name in RESERVED and entry.name != entry.policy.kind:
        raise SubmissionError(f"{entry.name} is the name of a reference; this policy is a {entry.policy.kind}")
    if path.name != f"{entry.name}.json" or path.parent.name != folder_name(entry.task):
        place = f"{folder_name(entry.task)}/{entry.name}.json"
        raise SubmissionError(f"the entry {entry.name} on {entry.task} belongs into {place}, not {path.parent.name}")


def _texts(entry: Entry) -> Iterator[tuple[str, str]]:
    """Words of an entry that people read, by place, but for those that a model was sent: they have their own rules."""
    yield "title", entry.title
    yield from (("author", author) for author in entry.authors)
    yield "policy", entry.policy.name
    yield "user", entry.user or ""
    for name, value in plain(entry.declared).items():
        yield from ((name, words) for words in ([value] if isinstance(value, str) else value))
    yield from _words({name: value for name, value in entry.settings.items() if name not in FREE}, "settings")


def _words(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict | list):
        parts: Iterable[Any] = value if isinstance(value, list) else [*value, *value.values()]
        for part in parts:
            yield from _words(part, where)


def _check_date(text: str) -> None:
    try:
        well = date.fromisoformat(text).isoformat() == text
    except ValueError:
        well = False
    if not well:
        raise SubmissionError(f"date is written 2026-01-31; got {text[:40]!r}")
    if date.fromisoformat(text) > datetime.now(UTC).date() + timedelta(days=1):  # east of here
        raise SubmissionError(f"date {text} is yet to come")


def _check_settings(entry: Entry) -> None:
    for name, value in entry.settings.items():
        if name not in SETTINGS:
            raise SubmissionError(f"settings have no {name[:40]!r}; they have {', '.join(SETTINGS)}")
        if isinstance(value, bool) or not isinstance(value, SETTINGS[name]):
            raise SubmissionError(f"the setting {name} cannot be {str(value)[:40]!r}")
    _check_values(entry.settings)
    if not 0.0 <= (heat := entry.settings.get("temperature", 1.0)) <= HOTTEST:  # NaN included
        raise SubmissionError(f"a temperature is between 0 and {HOTTEST:g}; this entry has {heat:g}")
    if entry.policy.weights is not None and not WEIGHTS.fullmatch(entry.policy.weights):
        raise SubmissionError(f"weights are named by 64 hexadecimal digits; got {entry.policy.weights[:70]!r}")
    if entry.policy.parameters is not None and not 0 <= entry.policy.parameters <= COUNT << 10:
        raise SubmissionError(f"a policy has no {entry.policy.parameters} parameters")
    if wrong := [seat for seat in entry.seats if not SEAT.fullmatch(seat)]:
        raise SubmissionError(f"{wrong[0][:40]!r} is no name of a seat")


def _check_values(settings: Mapping[str, Any]) -> None:
    """Raise SubmissionError where a setting is none that an evaluation can have, or another than the protocol's."""
    if (seed := settings.get("seed", 0)) != 0:
        raise SubmissionError(f"the board is played with seed 0, as by lmgym eval --standard; this entry has {seed}")
    try:
        context_rule(str(settings.get("context", "full")))
    except RecipeError as error:
        raise SubmissionError(f"the setting context: {error}") from error
    if (mode := settings.get("tools", "none")) not in get_args(ToolMode):
        raise SubmissionError(f"the setting tools is one of {', '.join(get_args(ToolMode))}; got {mode[:40]!r}")
    for name, low, high in (("max_tokens", 1, COUNT), ("top_k", 0, IDS), ("top_p", 1e-9, 1.0)):
        if not low <= (value := settings.get(name, high)) <= high:
            raise SubmissionError(f"the setting {name} is from {low:g} to {high:g}; this entry has {value:g}")
    for seat, who in settings.get("seats", {}).items():
        if not SEAT.fullmatch(seat) or not isinstance(who, str):
            raise SubmissionError(f"the setting seats names policies by seat; got {seat[:40]!r}: {str(who)[:40]!r}")


def check_asked(entry: Entry, protocol: Protocol) -> None:
    """Raise SubmissionError where an entry is of other episodes than its task asks for."""
    if entry.split != protocol.split:
        raise SubmissionError(f"{entry.task} is ranked on split {protocol.split!r}; this was played on {entry.split!r}")
    if entry.options:
        raise SubmissionError(f"{entry.task} is ranked with its own options; this was played with {entry.options}")
    for name in ("instances", "tries", "max_turns"):
        stated, wanted = getattr(entry, name), getattr(protocol, name)
        if stated != wanted:
            raise SubmissionError(f"{entry.task} is ranked with {name} {wanted}; this entry states {stated}")
    if entry.episodes.count != len(protocol):
        raise SubmissionError(f"{entry.task} asks for {len(protocol)} episodes; this entry has {entry.episodes.count}")


def _check_seats(entry: Entry) -> None:
    if FIRST_SEAT not in entry.seats or len(set(entry.seats)) < len(entry.seats):
        raise SubmissionError(f"seats are the agent's and others, each once; got {', '.join(entry.seats)}")
    if (entry.user is None) != (len(entry.seats) == 1):
        raise SubmissionError("an entry names its user exactly where other seats were played by a policy")


def _check_training(entry: Entry, protocol: Protocol) -> None:
    for stated in entry.declared.trained_on:
        try:
            spec, split = trains_on(stated)
        except InstanceError as error:
            raise SubmissionError(f"trained_on {stated[:60]!r}: {error}") from error
        barred = protocol.held_out() if spec.id == protocol.task else {*spec.held_out, *OFFICIAL_TESTS}
        if split in barred:
            raise SubmissionError(f"the policy was trained on {stated}, which is held out for ranking")


def checked_episodes(entry: Entry, protocol: Protocol, path: Path) -> Iterator[tuple[bytes, RecordedEpisode]]:
    """Yield the lines and episodes of an entry, each checked against the protocol and those before it.

    Raises SubmissionError at the first that may not be so; after the last where one is missing or the digest differs.
    """
    owed = protocol.names()
    content = hashlib.sha256()
    idle = set(entry.seats) - {FIRST_SEAT}
    file = episodes_path(path)
    for number, line in enumerate(parsing.lines(file), 1):
        found = episode(line, f"{file.name}, line {number}")
        _check_due(found, next(owed, None), protocol)
        _check_episode(found, entry, protocol)
        idle.difference_update(ply.seat for ply in found.turns)
        content.update(line + b"\n")
        yield line, found
    if (missing := next(owed, None)) is not None:
        raise SubmissionError(f"instance {missing[0]}, try {missing[1]} is missing: every one owed must be there")
    if idle:  # whether a seat that has turns is the task's, replaying finds
        raise SubmissionError(f"the seat {min(idle)!r} has no turn in any episode: {entry.task} has no such player")
    if content.hexdigest() != entry.episodes.sha256:
        raise SubmissionError("the file of episodes is another than the one that the entry was signed with (sha256)")


def _check_due(found: RecordedEpisode, due: tuple[int, int] | None, protocol: Protocol) -> None:
    """Whether this is the episode that the protocol owes at this place."""
    name = (found.index, found.attempt)
    shown = f"instance {found.index}, try {found.attempt}"
    if not 0 <= found.index < protocol.instances:
        raise SubmissionError(f"{shown} is none of the {protocol.instances} instances that {protocol.task} asks for")
    if not 0 <= found.attempt < protocol.tries:
        raise SubmissionError(f"{shown}: {protocol.task} asks for {protocol.tries} tries of each instance, from 0")
    if due is None or name < due:
        raise SubmissionError(f"{shown} is there twice, or out of order")
    if name > due:
        raise SubmissionError(f"instance {due[0]}, try {due[1]} is missing: every one owed must be there")
    if found.seed != (wanted := protocol.seed(*name)):
        raise SubmissionError(f"{shown} was played with seed {found.seed}; the protocol derives {wanted}")


def _check_episode(found: RecordedEpisode, entry: Entry, protocol: Protocol) -> None:
    shown = f"instance {found.index}, try {found.attempt}"
    if found.stop not in STOPS:
        raise SubmissionError(f"{shown} was stopped by {found.stop[:40]!r}; what ends an episode is {', '.join(STOPS)}")
    if not (0.0 <= found.score <= 1.0):
        raise SubmissionError(f"{shown} has score {found.score}; scores are in [0, 1]")
    if found.cost is not None and not 0.0 <= found.cost <= DEAREST:
        raise SubmissionError(f"{shown} says it cost {found.cost:g} US dollars")
    tokens = [count for count in (found.tokens_in, found.tokens_out) if count is not None]
    if min(tokens, default=0) < 0:
        raise SubmissionError(f"{shown} took fewer than no tokens")
    if max(tokens, default=0) > COUNT:
        raise SubmissionError(f"{shown} says it took {max(tokens):,} tokens")
    acted = sum(ply.action is not None and ply.seat == FIRST_SEAT for ply in found.turns)
    if acted > protocol.max_turns:
        raise SubmissionError(f"{shown} has {acted} turns; the limit is {protocol.max_turns}")
    for number, ply in enumerate(found.turns):
        _check_ply(ply, f"{shown}, turn {number}", entry)


def _check_ply(ply: RecordedTurn, shown: str, entry: Entry) -> None:
    if ply.seat not in entry.seats:
        raise SubmissionError(f"{shown} is of seat {ply.seat[:40]!r}, which this entry says nobody played")
    summarises = str(entry.settings.get("context", "")).startswith(SUMMARISING)
    if ply.action is None and not summarises:
        raise SubmissionError(f"{shown} is a summary, but the context rule of this entry asks for none")
    if ply.action is not None and ply.words is not None:
        raise SubmissionError(f"{shown} was played otherwise than it was said: {ply.words[:40]!r}")
    limit = entry.settings.get("max_tokens")
    if isinstance(limit, int) and len(ply.ids) > limit:
        raise SubmissionError(f"{shown} has {len(ply.ids)} tokens; this entry's limit is {limit}")
    for name in ("logprobs", "entropy"):
        given = len(getattr(ply, name))
        if given not in (0, len(ply.ids)):
            raise SubmissionError(f"{shown} has {len(ply.ids)} tokens and {given} {name}")
    if any(value > 0.0 for value in ply.logprobs):
        raise SubmissionError(f"{shown} has a log-probability above 0")
    if not DIGEST.fullmatch(ply.observation):
        raise SubmissionError(
            f"{shown}: an observation is named by 16 hexadecimal digits; got {ply.observation[:40]!r}"
        )
    if any(not 0 <= value < IDS for value in (*ply.ids, *ply.prompt)):
        raise SubmissionError(f"{shown} has a token id that no vocabulary has: ids go from 0 to {IDS - 1:,}")
