"""Repositories that bugs are put into: packages of our own, and small PyPI libraries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lmgym.tasks.swe_repair import pypi
from lmgym.tasks.swe_repair.testing import LIMIT
from lmgym.tasks.swe_repair.workspace import IGNORED, PYTEST_SETTINGS

FOLDER = Path(__file__).with_name("packages")
TEST = ("exprkit", "matgrid", "stateflow")  # never trained on
LIBRARY_LIMIT = 120.0  # seconds of a core for one run of a PyPI library's tests, as in SWE-smith; most take two


@dataclass(frozen=True, eq=False)  # one object for each name, so that runs beside it can be kept
class Repository:
    """A tested library without bugs."""

    name: str
    source: str  # folder of the code, from the root
    files: dict[str, str]  # text by path from the root
    tested: tuple[str, ...] = ()  # modules that the tests cover; (): all
    limit: float = LIMIT  # seconds of a core for one run of the tests

    def modules(self) -> list[str]:
        """Return the paths of the source files that may get a bug."""
        return [
            path
            for path in sorted(self.files)
            if path.startswith(f"{self.source}/") and path.endswith(".py") and self.files[path]
            if not self.tested or path in self.tested
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


@cache
def library(name: str) -> Repository:
    """Return a PyPI library. Raises InstanceError if its archive is not here and cannot be fetched."""
    release = pypi.BY_NAME[name]
    deselected = "".join(f" --deselect tests/{test}" for test in release.deselected)
    settings = PYTEST_SETTINGS + f'addopts = "{deselected.strip()}"\n' * bool(deselected)
    files = {**pypi.texts(release), "pyproject.toml": settings, ".gitignore": IGNORED}
    return Repository(name, release.source, files, release.modules, LIBRARY_LIMIT)


def names(split: str) -> tuple[str, ...]:
    """Return the names of the repositories of a split, sorted."""
    if split == "pypi":
        return tuple(sorted(pypi.BY_NAME))
    every = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
    return TEST if split == "test" else tuple(name for name in every if name not in TEST)


def named(name: str) -> Repository:
    """Return a repository by its name."""
    return library(name) if name in pypi.BY_NAME else own(name)
