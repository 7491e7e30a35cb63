"""Goals: what the home folder starts with, what it must become, and the moves that get there."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmgym.backends.desktop.session import Launch
from lmgym.tasks.desktop.moves import Move
from lmgym.tasks.desktop.office import LARGEST, Writer
from lmgym.tasks.desktop.reading import read_plain

WORDS = (
    "amber birch cedar delta ember fable grove haven ivory jasper kettle lantern meadow nectar orchid pebble quartz "
    "ribbon saffron timber umber velvet willow yarrow zephyr anchor basket candle dolphin engine falcon garnet"
)
VOCABULARY = tuple(WORDS.split())
KEYFILE = ".config/glib-2.0/settings/keyfile"
TERMINAL = (Launch("lxterminal"),)
HASHED = 256 << 20  # bytes of all files of a snapshot; more is no goal's
FILES = (Launch("thunar"),)


@dataclass(frozen=True, kw_only=True)
class DesktopGoal:
    """One goal; paths are relative to the home folder."""

    text: str
    files: Mapping[str, str | Writer]  # what it starts with; a name that ends in "/" is a folder
    launches: tuple[Launch, ...]
    plan: tuple[Move, ...]  # the oracle's, without the final action
    reached: Callable[[Path], bool] = lambda home: False
    changes: frozenset[str] = frozenset()  # files that may be changed, made or removed
    feasible: bool = True

    def furnish(self, home: Path) -> None:
        """Write the files."""
        for name, content in self.files.items():
            path = home / name
            if name.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                path.write_text(content, encoding="utf-8")
            else:
                content(path)


Builder = Callable[[np.random.Generator], DesktopGoal]


def snapshot(home: Path) -> dict[str, str]:
    """Return a digest of every file that a user sees, by its path; "/" for folders.

    What cannot be read, no plain file and what is beyond HASHED bytes have words in place of a digest.
    """
    digests, left, waiting = {}, HASHED, [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(home / folder) as listing:
                entries = sorted((entry for entry in listing if entry.name[0] != "."), key=lambda entry: entry.name)
        except OSError:  # without the right to read, or deeper than a path can be long
            digests[f"{folder}/"] = "unreadable"
            continue
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                digests[name] = "/"
                waiting.append(name)
            elif not entry.is_file(follow_symlinks=False):
                digests[name] = "special"
            else:
                data = read_plain(home / name, min(LARGEST, left))
                left -= len(data or b"")
                digests[name] = "unreadable" if data is None else hashlib.sha256(data).hexdigest()
    return digests


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Return different words."""
    return [VOCABULARY[i] for i in rng.permutation(len(VOCABULARY))[:count]]


def note(rng: np.random.Generator, lines: int) -> str:
    """Return lines of four words."""
    return "".join(" ".join(words(rng, 4)) + "\n" for _ in range(lines))


def numbers(rng: np.random.Generator, count: int, low: int = 10, high: int = 99) -> list[int]:
    """Return different whole numbers from `low` to `high`."""
    return [int(number) for number in low + rng.permutation(high - low + 1)[:count]]


def editor(*names: str) -> tuple[Launch, ...]:
    """Return the launches of a text editor for each file."""
    return tuple(Launch("mousepad", (name,), name) for name in names)


def office(name: str) -> tuple[Launch, ...]:
    """Return the launch of LibreOffice with a file."""
    return (Launch("soffice", (name,), name),)


def content(path: Path) -> str | None:
    """Return the text of a file; None if it is missing, no text, too large, no plain file or a link."""
    data = read_plain(path, LARGEST)
    try:
        return None if data is None else io.TextIOWrapper(io.BytesIO(data), "utf-8").read()
    except UnicodeDecodeError:
        return None
