"""A real entry, and ways to change it that keep everything else consistent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.entry import Entry, PolicyRecord, RecordedEpisode
from lmgym.board.submit import Signature, build
from lmgym.board.validate import validate_entry
from lmgym.evaluation.protocol import protocol
from lmgym.policy.base import Conversation, Policy
from lmgym.policy.scripted import Scripted
from lmgym.rollout.engine import Engine

Change = Callable[[dict[str, Any], list[dict[str, Any]]], object]


def signature(name: str = "honest", **changes: Any) -> Signature:
    given = {"title": "An honest player", "authors": ("A. Uthor",), "date": "2026-11-21"}
    return Signature(**{"name": name, **given, "policy": PolicyRecord(name="wavering", kind="script"), **changes})


def validated(path: Path) -> Entry:
    """Read and validate an entry without its episodes."""
    entry = entries.read(path)
    validate_entry(entry, path)
    return entry


def wavering() -> Scripted:
    """A good player who gives up a third of the episodes."""

    def answer(conversation: Conversation) -> str:
        return "give up" if conversation.noise[0] % 3 == 0 else str(conversation.hints["demonstrator"])

    return Scripted("wavering", answer, wants=frozenset({"demonstrator"}))


def played(task: str, policy: Policy, /, **changes: Any) -> tuple[Entry, list[RecordedEpisode]]:
    """An entry of the whole protocol of a task."""
    return build(Engine().run(policy, protocol(task).jobs()), signature(**changes))


class Forger:
    """Copies an honest entry and changes it."""

    def __init__(self, honest: Path, folder: Path) -> None:
        self.path = folder / honest.parent.name / honest.name
        self.path.parent.mkdir(parents=True)
        for file in (honest, entries.episodes_path(honest)):
            shutil.copy(file, self.path.parent / file.name)

    def change(self, change: Change, *, signed: bool = True) -> Path:
        """Change the entry and its episodes as plain values; digests and means are made to fit unless not `signed`."""
        entry = json.loads(self.path.read_bytes())
        episodes = [json.loads(line) for line in parsing.lines(entries.episodes_path(self.path))]
        change(entry, episodes)
        packed = b"".join(parsing.canonical(each) + b"\n" for each in episodes)
        if signed:
            entry["episodes"] = {"count": len(episodes), "sha256": parsing.digest(packed)}
            if "claim" in entry and episodes:
                for name in entry["claim"]:
                    entry["claim"][name] = sum(float(each[name]) for each in episodes) / len(episodes)
            self.sign(entry)
        entries.episodes_path(self.path).write_bytes(parsing.compress(packed))
        self.path.write_text(json.dumps(entry))
        return self.path

    @staticmethod
    def sign(entry: dict[str, Any]) -> None:
        """Make the identity fit, where the entry can be read at all."""
        try:
            entry["identity"] = entries.identity(msgspec.convert(entry, Entry))
        except msgspec.ValidationError:
            return

    def raw(self, content: bytes) -> Path:
        """Put bytes in place of the entry's JSON."""
        self.path.write_bytes(content)
        return self.path

    def raw_episodes(self, content: bytes) -> Path:
        """Put bytes in place of the file of episodes."""
        entries.episodes_path(self.path).write_bytes(content)
        return self.path

    def line(self, content: bytes, number: int = 0) -> Path:
        """Put a line in place of an episode's."""
        lines = list(parsing.lines(entries.episodes_path(self.path)))
        lines[number] = content
        return self.raw_episodes(parsing.compress(b"".join(line + b"\n" for line in lines)))
