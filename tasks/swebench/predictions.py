"""Predictions: patches by instance, as SWE-bench's JSONL and mini-swe-agent's `preds.json` hold them.

    python -m lmgym.tasks.swebench.predictions preds.json SWE-bench/SWE-bench_Verified test

grades a file, with the instances' images, and prints one JSON line for each instance of the split.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError, LmgymError
from lmgym.tasks.swebench import judge
from lmgym.tasks.swebench.instances import load

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


def append(path: str | os.PathLike[str], name: str, patch: str, *, model: str) -> None:
    """Append a prediction to a file of JSON lines."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(dict(zip(FIELDS, (name, model, patch), strict=True))) + "\n")


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
