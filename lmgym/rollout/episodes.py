"""Trajectories as JSON lines: everything they hold, exact ids and log-probs included."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError
from lmgym.types import Completion, Message, Picture, Trajectory, Turn

Record = Message | Completion | Turn | Trajectory


def dump(trajectory: Trajectory) -> str:
    """One line of JSON. What JSON does not know is written as its list, its number or its name."""
    return json.dumps(_plain(trajectory), ensure_ascii=True, default=_foreign)


def parse(line: str) -> Trajectory:
    """The trajectory of a line; sequences in free fields (`info`, `tags`, `options`) come back as lists."""
    try:
        content = json.loads(line)
        turns = tuple(_turn(turn) for turn in content.pop("turns"))
        final = content.pop("final")
        final_ids = tuple(content.pop("final_ids"))
        pictures = _pictures(content.pop("final_pictures", ()))
        return Trajectory(
            **content, turns=turns, final=final and _message(final), final_ids=final_ids, final_pictures=pictures
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InstanceError(f"no recorded episode: {line[:80]!r} ({error!r})") from error


def write(path: Path, trajectories: Iterable[Trajectory]) -> None:
    """Write a file of episodes as a whole: whoever reads `path` finds the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            _put(file, trajectories)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def append(path: Path, trajectories: Iterable[Trajectory], *, struck: Callable[[str], str] = str) -> None:
    """Add episodes to a file, each line as `struck` makes it; one that was cut off is dropped first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.truncate(_whole(file))
    with path.open("a", encoding="utf-8") as file:
        _put(file, trajectories, struck)


def read(path: Path) -> Iterator[Trajectory]:
    """Yield the episodes of a file; a last one that was cut off while it was written is none."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield parse(line)


def _put(file: Any, trajectories: Iterable[Trajectory], struck: Callable[[str], str] = str) -> None:
    for trajectory in trajectories:
        file.write(struck(dump(trajectory)) + "\n")
    file.flush()
    os.fsync(file.fileno())


def _whole(file: Any) -> int:
    """Bytes up to the end of the last whole line."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - (1 << 16))
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return int(start + found + 1)
        end = start
    return 0


def _plain(record: Record) -> dict[str, Any]:
    """The fields of a record, those of the records in it included."""
    content = {field.name: getattr(record, field.name) for field in fields(record)}
    for name, value in content.items():
        if isinstance(value, Record):
            content[name] = _plain(value)
        elif name == "turns":
            content[name] = [_plain(turn) for turn in value]
    return content


def _foreign(value: Any) -> Any:
    """What JSON knows for a value it does not: numpy's arrays and numbers, mappings, sets; else its text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def _message(content: dict[str, Any]) -> Message:
    return Message(**{**content, "images": tuple(content["images"])})


def _pictures(content: Iterable[Any]) -> tuple[Picture, ...]:
    return tuple(Picture(*found) for found in content)


def _turn(content: dict[str, Any]) -> Turn:
    said = content.pop("completion")
    said |= {name: tuple(said[name]) for name in ("prompt_ids", "ids", "logprobs", "entropy")}
    said["pictures"] = _pictures(said.get("pictures", ()))  # files made before there were any lack it
    return Turn(**{**content, "observation": _message(content["observation"]), "completion": Completion(**said)})
