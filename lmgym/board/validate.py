"""Validation of an entry before any of it is played: its place, texts and settings, and the protocol of its task."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec

from lmgym.board import parsing, texts
from lmgym.board.entry import (
    REFERENCES,
    Entry,
    Name,
    RecordedEpisode,
    RecordedTurn,
    episodes_path,
    folder_name,
    identity,
    parse_episode,
    plain,
    settings_of,
)
from lmgym.errors import InstanceError, RecipeError, SubmissionError
from lmgym.evaluation.protocol import OFFICIAL_TESTS, Protocol, protocol, trains_on
from lmgym.evaluation.settings import context_rule
from lmgym.rollout.answers import action_of
from lmgym.types import FIRST_SEAT

WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # file names that Windows reserves, with any suffix


def validate_entry(entry: Entry, path: Path) -> Protocol:
    """Check an entry's JSON and return the protocol of its task. Raises SubmissionError at the first violation."""
    try:
        rules = protocol(entry.task)
    except InstanceError as error:
        raise SubmissionError(f"cannot verify entries on {entry.task[:60]!r}: {error}") from error
    if rules.task != entry.task:
        raise SubmissionError(f"an entry names its task by the id {rules.task}; got {entry.task!r}")
    if rules.spec.part_of:
        raise SubmissionError(f"{rules.task} is part of another task and has no table of its own")
    check_name(entry.name)
    if entry.name in REFERENCES and entry.name != entry.policy.kind:
        raise SubmissionError(f"{entry.name} is the name of a reference; this policy is a {entry.policy.kind}")
    if path.name != f"{entry.name}.json" or path.parent.name != folder_name(entry.task):
        place = f"{folder_name(entry.task)}/{entry.name}.json"
        raise SubmissionError(f"the entry {entry.name} on {entry.task} belongs in {place}, not {path.parent.name}")
    _check_texts(entry)
    _check_date(entry.date)
    settings = settings_of(entry)
    try:
        context_rule(settings.context)
    except RecipeError as error:
        raise SubmissionError(f"settings: {error}") from error
    check_protocol(entry, rules)
    if FIRST_SEAT not in entry.seats or len(set(entry.seats)) < len(entry.seats):
        raise SubmissionError(f"seats are {FIRST_SEAT!r} and others, each once; got {', '.join(entry.seats)}")
    if (entry.user is None) != (len(entry.seats) == 1):
        raise SubmissionError("an entry names its user if and only if a policy played other seats")
    if strangers := set(settings.seat_max_tokens) - (set(entry.seats) - {FIRST_SEAT}):
        raise SubmissionError(
            f"seat_max_tokens names {min(strangers)!r}; it limits the entry's seats other than {FIRST_SEAT!r}"
        )
    for stated in entry.declared.trained_on:
        try:
            spec, split = trains_on(stated)
        except InstanceError as error:
            raise SubmissionError(f"trained_on {stated[:60]!r}: {error}") from error
        if split in (rules.held_out() if spec.id == rules.task else {*spec.held_out, *OFFICIAL_TESTS}):
            raise SubmissionError(f"the policy was trained on {stated}, which is held out for ranking")
    if entry.identity != identity(entry):
        raise SubmissionError(
            f"identity is {entry.identity[:16]}..., but these settings have {identity(entry)[:16]}..."
        )
    return rules


def check_name(name: str) -> None:
    """Raise SubmissionError unless a name suits entries, files on every system, and pages."""
    try:
        msgspec.convert(name, Name)
    except msgspec.ValidationError:
        raise SubmissionError(
            f"{name[:60]!r} is not a valid name: use at most 48 lower-case letters, digits, dots and dashes"
        ) from None
    if ".." in name or name == "index" or WINDOWS.fullmatch(name):
        raise SubmissionError(f"the name {name!r} is reserved; choose another --name")


def _check_texts(entry: Entry) -> None:
    """Check everything people read; what a model was sent has rules of its own."""
    headings = [("title", entry.title), *(("author", name) for name in entry.authors), ("policy", entry.policy.name)]
    sent = {name: entry.settings[name] for name in ("prompt", "request") if name in entry.settings}
    stated = {name: value for name, value in entry.settings.items() if name not in sent}
    lines = {"user": entry.user, **plain(entry.declared), "settings": stated}
    for where, text in headings:
        texts.check_line(text, where)
        texts.check_heading(text, where)
    for where, value in lines.items():
        for text in texts.nested_texts(list(value) if isinstance(value, tuple) else value):
            texts.check_line(text, where)
    for where, value in sent.items():
        for text in texts.nested_texts(value):
            texts.check_prompt(text, where)
    if entry.name not in REFERENCES and any(texts.same_title(entry.title, title) for title in REFERENCES.values()):
        raise SubmissionError(f"title {entry.title!r} is that of a reference; choose another --title")


def _check_date(text: str) -> None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise SubmissionError(f"date must have the form 2026-01-31; got {text[:40]!r}")
    if day > datetime.now(UTC).date() + timedelta(days=1):  # time zones are ahead by less than a day
        raise SubmissionError(f"date {text} is in the future")


def check_protocol(entry: Entry, rules: Protocol) -> None:
    """Raise SubmissionError where an entry states other episodes than its task asks for."""
    if entry.split != rules.split:
        raise SubmissionError(f"{entry.task} is ranked on split {rules.split!r}; this entry has {entry.split!r}")
    if entry.options:
        raise SubmissionError(f"{entry.task} is ranked with its default options; this entry has {entry.options}")
    for name in ("instances", "tries", "max_turns"):
        stated, required = getattr(entry, name), getattr(rules, name)
        if stated != required:
            raise SubmissionError(f"{entry.task} is ranked with {name} {required}; this entry states {stated}")
    if entry.episodes.count != len(rules):
        raise SubmissionError(f"{entry.task} asks for {len(rules)} episodes; this entry has {entry.episodes.count}")


def valid_episodes(entry: Entry, rules: Protocol, path: Path) -> Iterator[RecordedEpisode]:
    """Yield the episodes of a valid entry, each checked against the protocol and against the entry.

    Raises SubmissionError at the first violation, and after the last episode where one is missing or the file's digest
    does not match.
    """
    due = rules.names()
    content = hashlib.sha256()
    silent = set(entry.seats) - {FIRST_SEAT}
    file = episodes_path(path)
    for position, line in enumerate(parsing.lines(file), 1):
        episode = parse_episode(line, f"{file.name}, line {position}")
        _check_due(episode, next(due, None), rules)
        acts = sum(turn.action is not None and turn.seat == FIRST_SEAT for turn in episode.turns)
        if acts > rules.max_turns:
            raise SubmissionError(f"{episode.label} has {acts} turns; the limit is {rules.max_turns}")
        for number, turn in enumerate(episode.turns):
            _check_turn(turn, f"{episode.label}, turn {number}", entry)
        silent.difference_update(turn.seat for turn in episode.turns)
        content.update(line + b"\n")
        yield episode
    if (missing := next(due, None)) is not None:
        raise SubmissionError(f"instance {missing[0]}, try {missing[1]} is missing; an entry has every episode")
    if silent:  # replay checks the seats that do have turns
        raise SubmissionError(f"seat {min(silent)!r} has no turn in any episode: {entry.task} has no such player")
    if content.hexdigest() != entry.episodes.sha256:
        raise SubmissionError("the file of episodes does not match the entry's sha256")


def _check_due(episode: RecordedEpisode, due: tuple[int, int] | None, rules: Protocol) -> None:
    """Raise SubmissionError unless an episode is the one the protocol has at this place, with its seed."""
    name = (episode.index, episode.attempt)
    if not 0 <= episode.index < rules.instances:
        raise SubmissionError(f"{episode.label} is not one of the {rules.instances} instances of {rules.task}")
    if not 0 <= episode.attempt < rules.tries:
        raise SubmissionError(f"{episode.label}: {rules.task} asks for {rules.tries} tries of an instance, from 0")
    if due is None or name < due:
        raise SubmissionError(f"{episode.label} is repeated, or out of order")
    if name > due:
        raise SubmissionError(f"instance {due[0]}, try {due[1]} is missing; an entry has every episode")
    if episode.seed != (seed := rules.seed(*name)):
        raise SubmissionError(f"{episode.label} was played with seed {episode.seed}; the protocol derives {seed}")


def _check_turn(turn: RecordedTurn, where: str, entry: Entry) -> None:
    if turn.seat not in entry.seats:
        raise SubmissionError(f"{where} is of seat {turn.seat[:40]!r}, which is not a seat of this entry")
    if turn.action is None and not str(entry.settings.get("context", "")).startswith("summarise"):
        raise SubmissionError(f"{where} is a summary, but this entry's context rule asks for none")
    settings = settings_of(entry)
    if turn.action is not None and turn.words is not None:
        answers = settings.answers if turn.seat == FIRST_SEAT else "plain"
        if turn.action == turn.words or action_of(turn.words, answers) != turn.action:
            raise SubmissionError(f"{where} has words that are not an answer with its action: {turn.words[:40]!r}")
    limit = settings.max_tokens
    if turn.seat != FIRST_SEAT:
        limit = settings.seat_max_tokens.get(turn.seat, limit)
    if limit is not None and len(turn.ids) > limit:
        raise SubmissionError(f"{where} has {len(turn.ids)} tokens; this entry's limit is {limit}")
    for name in ("logprobs", "entropy"):
        if (count := len(getattr(turn, name))) not in (0, len(turn.ids)):
            raise SubmissionError(f"{where} has {len(turn.ids)} tokens and {count} {name}")
