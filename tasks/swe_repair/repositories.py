"""Repositories that bugs are put into: packages of our own, and small PyPI libraries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lmgym.tasks.swe_repair.workspace import IGNORED, PYTEST_SETTINGS

FOLDER = Path(__file__).with_name("packages")
TEST = ("exprkit", "matgrid", "stateflow")  # never trained on


@dataclass(frozen=True)
class Repository:
    """A tested library without bugs."""

    name: str
    source: str  # folder of the code, from the root
    files: dict[str, str]  # text by path from the root

    def modules(self) -> list[str]:
        """Return the paths of the source files that may get a bug."""
        return [
            path
            for path in sorted(self.files)
            if path.startswith(f"{self.source}/") and path.endswith(".py") and self.files[path]
        ]


@cache
def own(name: str) -> Repository:
    """Return one of our packages."""
    folder = FOLDER / name
    files = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".py", ".md")
    }
    return Repository(name, name, {**files, "pyproject.toml": PYTEST_SETTINGS, ".gitignore": IGNORED})


def names(split: str) -> tuple[str, ...]:
    """Return the names of our packages of a split, sorted."""
    every = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
    return TEST if split == "test" else tuple(name for name in every if name not in TEST)


def named(name: str) -> Repository:
    """Return a repository by its name."""
    return own(name)
