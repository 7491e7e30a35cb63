"""The folder of an evaluation: what was asked for, every episode, every call, and the report.

run.json        settings with their identity, policy, versions
episodes.jsonl  one trajectory a line, as lmgym/rollout/episodes.py writes them
pictures/       PNGs by digest, where observations bring any
calls.sqlite    every exchange and reply, where a policy makes calls
calls.json      the account of them
report.json     outcomes of all episodes
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from lmgym.errors import RecipeError
from lmgym.evaluation import report as reports
from lmgym.evaluation.runner import Report
from lmgym.evaluation.settings import plain
from lmgym.policy.endpoints.secrets import Secrets
from lmgym.rollout import episodes
from lmgym.rollout.picture_folder import PICTURES, PictureFolder, write_whole
from lmgym.types import FIRST_SEAT, Trajectory

FACTS, EPISODES, CALLS, ACCOUNT = "run.json", "episodes.jsonl", "calls.sqlite", "calls.json"
LOCK = ".lock"
FORMAT = 1
PACKAGES = ("lmgym", "numpy", "gymnasium", "torch", "transformers", "httpx", "litellm")


class Record:
    """A run's folder, held by one process at a time."""

    def __init__(self, folder: Path, facts: Mapping[str, Any], *, resume: bool, secrets: Secrets | None = None) -> None:
        """Begin a run in `folder`, or go on with the one that is there; no `secrets` are written.

        Raises RecipeError where another run has the folder, where there is none to go on with, or with other settings.
        """
        self.folder = folder
        self.secrets = secrets or Secrets.of_environment()
        folder.mkdir(parents=True, exist_ok=True)
        self._resumed = resume
        self._lock = _locked(folder)
        try:
            self._claim(facts, resume=resume)
        except BaseException:
            self.close()
            raise
        self.pictures = PictureFolder(folder / PICTURES)

    def keep(self, seats: Sequence[Trajectory]) -> None:
        """Add an episode: the views of all its seats, the agent's last, so that it vouches for the others."""
        ordered = sorted(seats, key=lambda trajectory: trajectory.seat == FIRST_SEAT)
        episodes.append(self.folder / EPISODES, ordered, redact=self.secrets.struck_line)

    def played(self) -> Iterator[Trajectory]:
        """The agent's views of the episodes that are whole; others are taken out of the file."""
        path = self.folder / EPISODES
        if not path.exists():
            return
        views = 0
        for trajectory in episodes.read(path):
            views += 1
            if trajectory.seat == FIRST_SEAT:
                views = 0
                yield trajectory
        if views:
            _drop_last(path, views)

    def finish(self, report: Report, order: Mapping[str, int], account: Mapping[str, Any] | None) -> Report:
        """Write report and account of calls, put the episodes into the order of jobs; the report without secrets."""
        path = self.folder / EPISODES
        path.touch()
        _sort(path, order)
        if account is not None:
            found = self.secrets.struck_all(account)
            write_whole(self.folder / ACCOUNT, (json.dumps(found, indent=1) + "\n").encode())
        clean = Report.from_state(self.secrets.struck_all(report.state_dict()))
        reports.write(self.folder, clean)
        return clean

    def discard(self) -> None:
        """Take back a run of which nothing was played."""
        if not self._resumed and not (self.folder / EPISODES).exists():
            for name in (FACTS, CALLS, f"{CALLS}-wal", f"{CALLS}-shm", LOCK):
                (self.folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # it holds something else
                self.folder.rmdir()

    def close(self) -> None:
        """Let other processes have the folder."""
        self._lock.close()

    def _claim(self, facts: Mapping[str, Any], *, resume: bool) -> None:
        path = self.folder / FACTS
        given = self.secrets.struck_all(json.loads(json.dumps({"format": FORMAT, **facts}, default=plain)))
        if not resume:
            if path.exists() or (self.folder / EPISODES).exists():
                raise RecipeError(
                    f"{self.folder} has a run already: go on with --resume, or choose another folder with --out"
                )
            write_whole(path, (json.dumps({**given, "versions": versions()}, indent=1) + "\n").encode())
            return
        if not path.exists():
            raise RecipeError(f"nothing to resume: {self.folder} has no {FACTS}; leave --resume out to begin there")
        begun = read_facts(self.folder)
        for name in given:
            if begun.get(name) != given[name]:
                raise RecipeError(f"{self.folder} was begun with {_difference(name, begun.get(name), given[name])}")


def read_facts(folder: Path) -> dict[str, Any]:
    """What `run.json` says."""
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except ValueError as error:
        raise RecipeError(f"{folder / FACTS} is damaged: {error}; restore it, or begin anew with --out") from error
    return facts


def versions() -> dict[str, str | None]:
    """Versions of what a run stands on; None for what is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _locked(folder: Path) -> IO[bytes]:
    file = (folder / LOCK).open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise RecipeError(f"{folder} is in use by another process: wait for it, or choose another --out") from error
    return file


def _difference(name: str, old: Any, new: Any) -> str:
    """The first member in which two values differ, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        for member in {**old, **new}:
            if old.get(member) != new.get(member):
                return _difference(member, old.get(member), new.get(member))
    return f"{name}={old!r}, not {new!r}: resume with the same settings, or begin anew with --out"


def _offsets(path: Path) -> list[tuple[int, int, str]]:
    """Place, length and id of every line."""
    found = []
    with path.open("rb") as file:
        place = 0
        for line in file:
            if line.endswith(b"\n"):
                found.append((place, len(line), _id(line)))
            place += len(line)
    return found


def _id(line: bytes) -> str:
    """The id of an episode, which is the first member of its line."""
    head = line[:4096].decode(errors="replace").removeprefix('{"id": ')
    name, _ = json.JSONDecoder().raw_decode(head)
    return str(name)


def _sort(path: Path, order: Mapping[str, int]) -> None:
    """Put the lines of a file into the order of jobs, a line at a time; a seat's view goes with its episode."""
    lines = _offsets(path)
    wanted = sorted(lines, key=lambda line: order.get(line[2], order.get(line[2].rpartition("/")[0], len(order))))
    if wanted == lines:
        return
    made = path.with_name(f".{path.name}.sorted")
    with path.open("rb") as old, made.open("wb") as new:
        for place, length, _ in wanted:
            old.seek(place)
            new.write(old.read(length))
        new.flush()
        os.fsync(new.fileno())
    made.replace(path)


def _drop_last(path: Path, views: int) -> None:
    """Take the last lines out of a file."""
    place = _offsets(path)[-views][0]
    with path.open("r+b") as file:
        file.truncate(place)
