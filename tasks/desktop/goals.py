"""Goals: what the home folder starts with, what it must become, and the moves that get there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmgym.backends.desktop.session import Launch
from lmgym.tasks.desktop.moves import Move
from lmgym.tasks.desktop.office import Writer

WORDS = (
    "amber birch cedar delta ember fable grove haven ivory jasper kettle lantern meadow nectar orchid pebble quartz "
    "ribbon saffron timber umber velvet willow yarrow zephyr anchor basket candle dolphin engine falcon garnet"
)
VOCABULARY = tuple(WORDS.split())
KEYFILE = ".config/glib-2.0/settings/keyfile"
TERMINAL = (Launch("lxterminal"),)
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
    """Return a digest of every file that a user sees, by its path; "/" for folders."""
    digests = {}
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if any(part.startswith(".") for part in name.split("/")):
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            digests[name] = "special"
        else:
            digests[name] = "/" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
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
    """Return the text of a file; None if it is missing, no text, or a link out of the home folder."""
    try:
        return None if path.is_symlink() else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
