"""Trajectories as JSON lines, complete with exact ids and log-probs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError
from lmgym.rollout.picture_folder import write_whole
from lmgym.types import Completion, Message, Picture, Trajectory, Turn

Record = Message | Completion | Turn | Trajectory


def dump(trajectory: Trajectory) -> str:
    """Return a trajectory as one line of JSON; values without a JSON form become lists, numbers or strings."""
    return json.dumps(_fields(trajectory), ensure_ascii=True, default=_json_value)


def parse(line: str) -> Trajectory:
    """Return the trajectory of a line; sequences in free fields (`info`, `tags`, `options`) come back as lists."""
    try:
        content = json.loads(line)
        content["turns"] = tuple(_turn(turn) for turn in content["turns"])
        content["final"] = content["final"] and _message(content["final"])
        content["final_ids"] = tuple(content["final_ids"])
        content["final_pictures"] = _pictures(content.get("final_pictures", ()))
        return Trajectory(**content)
    except (ValueError, KeyError, TypeError) as error:
        raise InstanceError(f"not a recorded episode: {line[:80]!r} ({error!r})") from error


def write(path: Path, trajectories: Iterable[Trajectory]) -> None:
    """Write a file of episodes atomically: readers of `path` see the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(f"{dump(trajectory)}\n" for trajectory in trajectories).encode())


def append(path: Path, trajectories: Iterable[Trajectory], *, redact: Callable[[str], str] = str) -> None:
    """Add episodes to a file, each line passed through `redact`; an incomplete last line is dropped first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.truncate(_complete_size(file))
        file.seek(0, os.SEEK_END)
        for trajectory in trajectories:
            file.write(f"{redact(dump(trajectory))}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> Iterator[Trajectory]:
    """Yield the episodes of a file; an incomplete last line is skipped."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield parse(line)


def _complete_size(file: Any) -> int:
    """Return the number of bytes up to the end of the last complete line."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - (1 << 16))
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return int(start + newline + 1)
        end = start
    return 0


def _fields(record: Record) -> dict[str, Any]:
    """Return the fields of a record and of the records in it."""
    content = {field.name: getattr(record, field.name) for field in fields(record)}
    for name, value in content.items():
        if isinstance(value, Record):
            content[name] = _fields(value)
        elif name == "turns":
            content[name] = [_fields(turn) for turn in value]
    return content


def _json_value(value: Any) -> Any:
    """Return the JSON form of numpy arrays and numbers, mappings and sets; of anything else, its string."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def _message(content: dict[str, Any]) -> Message:
    return Message(**{**content, "images": tuple(content["images"])})


def _pictures(content: Iterable[Any]) -> tuple[Picture, ...]:
    return tuple(Picture(*picture) for picture in content)


def _turn(content: dict[str, Any]) -> Turn:
    completion = content["completion"]
    completion |= {name: tuple(completion[name]) for name in ("prompt_ids", "ids", "logprobs", "entropy")}
    completion["pictures"] = _pictures(completion.get("pictures", ()))  # older files have none
    observation = _message(content["observation"])
    return Turn(**{**content, "observation": observation, "completion": Completion(**completion)})
