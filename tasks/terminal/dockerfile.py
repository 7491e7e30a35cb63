"""Dockerfiles without Docker: the instructions that a sandbox of one writable folder can carry.

FROM names an image that is not loaded: the sandbox shows the programs of this machine instead. WORKDIR, ENV, ARG, COPY
and RUN are carried out; LABEL, EXPOSE, CMD and MAINTAINER do not matter to a sandbox; all else, USER too, is refused.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lmgym.errors import InstanceError

IGNORED = frozenset({"FROM", "LABEL", "EXPOSE", "CMD", "MAINTAINER"})
VARIABLE = re.compile(r"\\\$|\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")
HOME = "/home/agent"
SEARCHED = "/opt/python/bin:/usr/local/bin:/usr/bin:/bin"
SYSTEM = ("bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "logs", "proc", "sbin", "sys", "tests", "usr")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LONGEST = 255  # characters of a folder's name
OPEN = (HOME, "/tmp")  # writable in every sandbox, beside the working folder


@dataclass(frozen=True)
class Copy:
    """Files of the build's folder, by their path inside."""

    files: Mapping[str, Path]


@dataclass(frozen=True)
class Run:
    """A command of the build."""

    command: str | list[str]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Build:
    """A Dockerfile's steps, in order, and what holds at its end."""

    folder: str
    environment: Mapping[str, str]
    steps: tuple[Copy | Run, ...]


class _Reader:
    """The state between two instructions."""

    def __init__(self, path: Path, name: str) -> None:
        self.context, self.name = path.parent, name
        self.folder = ""
        self.environment: dict[str, str] = {}
        self.arguments: dict[str, str] = {}
        self.steps: list[Copy | Run] = []
        self.images = 0

    def take(self, keyword: str, rest: str) -> None:
        """Read an instruction."""
        if keyword == "FROM":
            self.images += 1
            if self.images > 1:
                raise self.refusal("a build of several stages")
        elif keyword == "WORKDIR":
            self._enter(self._expanded(rest.strip()))
        elif keyword == "ENV":
            for name, value in self._pairs(rest):
                self.environment[self._variable(name)] = self._expanded(value)
        elif keyword == "ARG":
            name, _, value = rest.strip().partition("=")
            self.arguments[self._variable(name)] = self._expanded(value.strip("\"'"))
        elif keyword == "COPY":
            self.steps.append(Copy(dict(self._copied(rest))))
        elif keyword == "RUN":
            self.steps.append(Run(self._command(rest), {**self.arguments, **self.environment}))
        elif keyword not in IGNORED:
            raise self.refusal(keyword)

    def refusal(self, what: str) -> InstanceError:
        """Return the error that Docker is needed."""
        return InstanceError(
            f"task {self.name}: without Docker the Dockerfile cannot have {what}; start Docker (lmgym doctor says how)"
        )

    def _enter(self, folder: str) -> None:
        path = posixpath.normpath(PurePosixPath("/", self.folder, folder))
        if self.folder and path != self.folder:
            raise self.refusal(f"a second WORKDIR ({path} after {self.folder})")
        if path == "/" or path.split("/")[1] in SYSTEM:
            raise self.refusal(f"WORKDIR {path}")
        if "\0" in path or max(map(len, path.split("/"))) > LONGEST:
            raise InstanceError(f"task {self.name}: the Dockerfile has a WORKDIR that is no path: {path[:60]!r}")
        self.folder = path

    def _expanded(self, text: str) -> str:
        values = {"PATH": SEARCHED, "HOME": HOME, **self.arguments, **self.environment}

        def value(match: re.Match[str]) -> str:
            name = match[1] or match[3]
            return values.get(name, match[2] or "") if name else "$"

        return VARIABLE.sub(value, text)

    def _command(self, rest: str) -> str | list[str]:
        if rest.startswith("--") or re.match(r"<<-?['\"]?\w", rest):
            raise self.refusal(f"RUN {rest.split()[0]}")
        command = self._list(rest) if rest.startswith("[") else rest
        if not command:
            raise InstanceError(f"task {self.name}: the Dockerfile has a RUN without a command")
        return command

    def _list(self, rest: str) -> list[str]:
        try:
            words = json.loads(rest)
        except ValueError:
            words = None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise InstanceError(f"task {self.name}: the Dockerfile has a list that is no JSON: {rest[:60]}")
        return words

    def _variable(self, name: str) -> str:
        """Return the name of a variable, once it is one."""
        if not VARIABLE_NAME.fullmatch(name):
            raise InstanceError(f"task {self.name}: the Dockerfile sets {name!r}, which is no name of a variable")
        return name

    def _words(self, text: str) -> list[str]:
        try:
            return shlex.split(text)
        except ValueError as error:
            raise InstanceError(f"task {self.name}: the Dockerfile has {text[:60]!r}: {error}") from error

    def _pairs(self, rest: str) -> Iterator[tuple[str, str]]:
        """Yield names and values of ENV: `A=1 B=2`, or `A 1`."""
        if "=" not in rest.partition(" ")[0]:
            name, _, value = rest.strip().partition(" ")
            yield name, value.strip()
            return
        for word in self._words(rest):
            name, _, value = word.partition("=")
            yield name, value

    def _copied(self, rest: str) -> Iterator[tuple[str, Path]]:
        words = self._list(rest) if rest.startswith("[") else self._words(self._expanded(rest))
        while words and words[0].startswith(("--chown=", "--chmod=")):
            words.pop(0)
        if len(words) < 2 or words[0].startswith("--"):
            raise self.refusal(f"COPY {rest.strip()[:60]}")
        *sources, target = words
        inside = posixpath.normpath(PurePosixPath("/", self.folder, target))
        into = target.endswith(("/", ".")) or len(sources) > 1
        for pattern in sources:
            for path in self._matches(pattern):
                if path.is_dir():
                    for file in sorted(each for each in path.rglob("*") if each.is_file()):
                        yield f"{inside}/{file.relative_to(path).as_posix()}", self._own(file, pattern)
                else:
                    yield (f"{inside}/{path.name}" if into else inside), self._own(path, pattern)

    def _matches(self, pattern: str) -> list[Path]:
        relative = PurePosixPath(pattern.lstrip("/") or ".")
        if ".." in relative.parts:
            raise self._outside(pattern)
        try:
            paths = [self.context] if str(relative) == "." else sorted(self.context.glob(str(relative)))
        except (ValueError, NotImplementedError) as error:
            raise InstanceError(f"task {self.name}: COPY {pattern!r} is no pattern: {error}") from error
        if not paths:
            raise InstanceError(f"task {self.name}: COPY {pattern} names no file of environment/")
        return paths

    def _own(self, path: Path, pattern: str) -> Path:
        """Return a path after the links that lead out of the build's folder are refused."""
        if not path.resolve().is_relative_to(self.context.resolve()):
            raise self._outside(pattern)
        return path

    def _outside(self, pattern: str) -> InstanceError:
        return InstanceError(f"task {self.name}: COPY {pattern} leaves the build's folder")

    def end(self) -> Build:
        """Return the build."""
        if not self.images:
            raise InstanceError(f"task {self.name}: the Dockerfile has no FROM")
        if not self.folder:
            raise self.refusal("no WORKDIR")
        for step in self.steps:
            for target in step.files if isinstance(step, Copy) else ():
                if not target.startswith(tuple(f"{base}/" for base in (self.folder, *OPEN))):
                    raise self.refusal(f"COPY to {target}, outside of {self.folder}, {HOME} and /tmp")
        return Build(self.folder, dict(self.environment), tuple(self.steps))


def parse(path: Path, name: str) -> Build:
    """Return the build of the Dockerfile at `path`, of the task `name`.

    Raises InstanceError for an instruction that cannot be carried out.
    """
    reader = _Reader(path, name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InstanceError(f"task {name}: the Dockerfile cannot be read: {error}") from error
    for keyword, rest in _instructions(text):
        reader.take(keyword, rest)
    return reader.end()


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield keyword and rest of each instruction; lines that end in a backslash go on."""
    parts: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts.append(line.rstrip().removesuffix("\\"))
        if not line.rstrip().endswith("\\"):
            yield _split("".join(parts))
            parts = []
    if parts:
        yield _split("".join(parts))


def _split(instruction: str) -> tuple[str, str]:
    keyword, *rest = instruction.split(None, 1)
    return keyword.upper(), "".join(rest)
