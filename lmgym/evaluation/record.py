"""The folder of an evaluation: settings, episodes, calls and report.

run.json        settings with their identity, policy, state of local weights, versions
episodes.jsonl  one trajectory a line, as lmgym/rollout/episodes.py writes them
pictures/       PNGs by digest, if observations have any
calls.sqlite    every exchange and reply, if a policy makes calls
calls.json      their totals
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
from typing import Any

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
    """A run's folder, locked by one process at a time."""

    def __init__(self, folder: Path, facts: Mapping[str, Any], *, resume: bool, secrets: Secrets | None = None) -> None:
        """Start a run in `folder`, or resume the one there; `secrets` are struck from everything written.

        Raises RecipeError if the folder holds another run, if there is nothing to resume, or if the settings differ.
        """
        self.folder = folder
        self.secrets = secrets or Secrets.of_environment()
        folder.mkdir(parents=True, exist_ok=True)
        self._resumed = resume
        self._lock = (folder / LOCK).open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._claim(facts, resume=resume)
        except BlockingIOError as error:
            self.close()
            raise RecipeError(f"{folder} is in use by another process: wait for it, or choose another --out") from error
        except BaseException:
            self.close()
            raise
        self.pictures = PictureFolder(folder / PICTURES)

    def keep(self, seats: Sequence[Trajectory]) -> None:
        """Append an episode: the views of all its seats, the agent's last, which marks the episode as complete."""
        ordered = sorted(seats, key=lambda trajectory: trajectory.seat == FIRST_SEAT)
        episodes.append(self.folder / EPISODES, ordered, redact=self.secrets.struck_line)

    def played(self) -> Iterator[Trajectory]:
        """Yield the agent's view of every complete episode; an incomplete last one is removed from the file."""
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
            offset = _offsets(path)[-views][0]
            with path.open("r+b") as file:
                file.truncate(offset)

    def finish(self, report: Report, order: Mapping[str, int], account: Mapping[str, Any] | None) -> Report:
        """Write report and account of calls, sort the episodes by job, and return the report without secrets."""
        path = self.folder / EPISODES
        path.touch()
        lines = _offsets(path)
        wanted = sorted(lines, key=lambda line: order.get(line[2], order.get(line[2].rpartition("/")[0], len(order))))
        if wanted != lines:  # one line in memory at a time; the views of an episode stay together
            made = path.with_name(f".{path.name}.sorted")
            with path.open("rb") as old, made.open("wb") as new:
                for offset, length, _ in wanted:
                    old.seek(offset)
                    new.write(old.read(length))
                new.flush()
                os.fsync(new.fileno())
            made.replace(path)
        if account is not None:
            text = json.dumps(self.secrets.struck_all(account), indent=1) + "\n"
            write_whole(self.folder / ACCOUNT, text.encode())
        clean = Report.from_state(self.secrets.struck_all(report.state_dict()))
        reports.write(self.folder, clean)
        return clean

    def discard(self) -> None:
        """Remove a new run of which nothing was played."""
        if not self._resumed and not (self.folder / EPISODES).exists():
            for name in (FACTS, CALLS, f"{CALLS}-wal", f"{CALLS}-shm", LOCK):
                (self.folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # the folder has other files
                self.folder.rmdir()

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()

    def _claim(self, facts: Mapping[str, Any], *, resume: bool) -> None:
        path = self.folder / FACTS
        current = self.secrets.struck_all(json.loads(json.dumps({"format": FORMAT, **facts}, default=plain)))
        if not resume:
            if path.exists() or (self.folder / EPISODES).exists():
                raise RecipeError(
                    f"{self.folder} has a run already: continue it with --resume, or choose another folder with --out"
                )
            write_whole(path, (json.dumps({**current, "versions": versions()}, indent=1) + "\n").encode())
            return
        if not path.exists():
            raise RecipeError(f"nothing to resume: {self.folder} has no {FACTS}; leave --resume out to start there")
        recorded = read_facts(self.folder)
        weights = current.pop("weights", {})
        for name in current:
            if recorded.get(name) != current[name]:
                difference = _difference(name, recorded.get(name), current[name])
                raise RecipeError(f"{self.folder} was started with {difference}")
        for model, state in recorded.get("weights", {}).items():  # earlier versions recorded none
            if weights.get(model) != state:
                raise RecipeError(
                    f"{self.folder} was started with other weights of {model}: "
                    "restore them, or start a new run with --out"
                )


def read_facts(folder: Path) -> dict[str, Any]:
    """Return the content of `run.json`."""
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except ValueError as error:
        raise RecipeError(f"{folder / FACTS} is damaged: {error}; restore it, or start a new run with --out") from error
    return facts


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the packages that matter to a run; None for one that is not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return versions


def _difference(name: str, old: Any, new: Any) -> str:
    """Describe the first member in which two values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for member in {**old, **new}:
            if old.get(member) != new.get(member):
                return _difference(member, old.get(member), new.get(member))
    return f"{name}={old!r}, not {new!r}: resume with the same settings, or start a new run with --out"


def _offsets(path: Path) -> list[tuple[int, int, str]]:
    """Return offset, length and episode id of every complete line."""
    lines, offset = [], 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                head = line[:4096].decode(errors="replace").removeprefix('{"id": ')  # the id is the first member
                name, _ = json.JSONDecoder().raw_decode(head)
                lines.append((offset, len(line), str(name)))
            offset += len(line)
    return lines
