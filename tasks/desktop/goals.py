"""Goals: what the home folder starts with, what it must become, and the actions that get there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmgym.backends.desktop.session import Launch

WORDS = (
    "amber birch cedar delta ember fable grove haven ivory jasper kettle lantern meadow nectar orchid pebble quartz "
    "ribbon saffron timber umber velvet willow yarrow zephyr anchor basket candle dolphin engine falcon garnet"
)
VOCABULARY = tuple(WORDS.split())
Plan = Callable[[], Iterator[str]]


@dataclass(frozen=True, kw_only=True)
class DesktopGoal:
    """One goal; paths are relative to the home folder."""

    text: str
    files: Mapping[str, str]  # contents of the files it starts with; a name that ends in "/" is a folder
    launches: tuple[Launch, ...]
    plan: Plan  # the oracle's actions, without the final one
    reached: Callable[[Path], bool] = lambda home: False
    changes: frozenset[str] = frozenset()  # files that may be changed, made or removed
    feasible: bool = True

    def furnish(self, home: Path) -> None:
        """Write the files."""
        for name, content in self.files.items():
            path = home / name
            if name.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")


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


def content(path: Path) -> str | None:
    """Return the text of a file; None if it is missing, no text, or a link out of the home folder."""
    try:
        return None if path.is_symlink() else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
