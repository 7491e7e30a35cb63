"""Predictions: patches by instance, as SWE-bench's JSONL and mini-swe-agent's `preds.json` hold them.

    python -m lmgym.tasks.swebench.predictions preds.json SWE-bench/SWE-bench_Verified test

grades a file, with the instances' images, and prints one JSON line for each instance of the split.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmgym.errors import BackendError, InstanceError, LmgymError
from lmgym.tasks.swebench import judge
from lmgym.tasks.swebench.instances import load

SUFFIXES = (".jsonl", ".json")
FIELDS = ("instance_id", "model_name_or_path", "model_patch")


def read(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the patches of a file by instance: JSONL, a JSON list, or a JSON object by instance."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        lines = (
            [json.loads(line) for line in text.splitlines() if line.strip()] if _is_lines(path) else json.loads(text)
        )
    except (OSError, ValueError, RecursionError) as error:
        raise InstanceError(f"{path} cannot be read as predictions: {error}") from error
    if isinstance(lines, dict):
        lines = [{"instance_id": name, **_record(path, value)} for name, value in lines.items()]
    if not isinstance(lines, list):
        raise InstanceError(f"{path} holds no predictions: a list, an object by instance, or JSON lines")
    patches = {}
    for record in lines:
        name = _record(path, record).get("instance_id")
        if not isinstance(name, str):
            raise InstanceError(f"{path}: a prediction has no instance_id: {str(record)[:80]}")
        patches[name] = str(record.get("model_patch") or "")
    return patches


def _is_lines(path: str | os.PathLike[str]) -> bool:
    return Path(path).suffix == ".jsonl"


def _record(path: str | os.PathLike[str], value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InstanceError(f"{path}: a prediction is an object with {', '.join(FIELDS)}; got {str(value)[:60]}")
    return value


def write(path: str | os.PathLike[str], patches: Mapping[str, str], *, model: str) -> None:
    """Write patches by instance: JSON lines to a `.jsonl` file, else mini-swe-agent's object by instance."""
    records = {name: dict(zip(FIELDS, (name, model, patch), strict=True)) for name, patch in patches.items()}
    text = "".join(f"{json.dumps(record)}\n" for record in records.values())
    Path(path).write_text(text if _is_lines(path) else json.dumps(records, indent=2) + "\n", encoding="utf-8")


def check(path: str | os.PathLike[str]) -> None:
    """Raise InstanceError if predictions cannot be added to this file."""
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise InstanceError(f"predictions={os.fspath(path)!r}: name a {' or '.join(SUFFIXES)} file")
    if not target.parent.is_dir() or target.is_dir():
        wrong = "is a folder" if target.is_dir() else "lies in no folder that exists"
        raise InstanceError(f"predictions={os.fspath(path)!r} {wrong}; name a file in a folder that exists")
    if target.suffix == ".json" and target.exists():
        _by_instance(target, target.read_text(encoding="utf-8"))


def append(path: str | os.PathLike[str], name: str, patch: str, *, model: str) -> None:
    """Add a prediction: a line to a `.jsonl` file, or an entry to mini-swe-agent's object by instance.

    The later of two predictions on an instance counts. Raises BackendError if the file cannot be written.
    """
    record = dict(zip(FIELDS, (name, model, patch), strict=True))
    try:
        if _is_lines(path):
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            return
        with open(path, "a+", encoding="utf-8") as file:  # environments in other processes may add to it as well
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            records = _by_instance(path, file.read())
            file.truncate(0)
            file.write(json.dumps({**records, name: record}, indent=2) + "\n")
    except OSError as error:
        raise BackendError(f"the prediction cannot be added to {os.fspath(path)}: {error.strerror or error}") from error


def _by_instance(path: str | os.PathLike[str], text: str) -> dict[str, Any]:
    """Return the object of a `preds.json`; an empty file has no predictions."""
    try:
        records = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InstanceError(f"{path} cannot be read as predictions: {error}") from error
    if not isinstance(records, dict):
        raise InstanceError(f"{path} holds no object by instance, so nothing can be added; name another file")
    return records


def graded(
    path: str | os.PathLike[str], data: str, split: str, *, image: str = "", python: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield the grade of each instance of a split; one without a prediction is not resolved."""
    patches = read(path)
    for instance in load(data, split):
        patch = patches.get(instance.instance_id, "")
        grade = judge.judge(instance, patch, judge.box(instance, image=image, python=python))
        yield {
            "instance_id": instance.instance_id,
            "resolved": grade.resolved,
            "status": grade.status,
            "fixed": grade.fixed,
            "kept": grade.kept,
            "reason": grade.reason,
        }


def main(arguments: list[str]) -> None:
    """Grade a file of predictions."""
    if len(arguments) not in (3, 4):
        sys.exit("usage: python -m lmgym.tasks.swebench.predictions FILE DATA SPLIT [IMAGE]")
    try:
        for line in graded(*arguments[:3], image="".join(arguments[3:])):
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    except LmgymError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
