"""Instances of SWE-bench and its relatives, by path or through `datasets`.

Classic instances name a repository and a version; those of version 5 carry image, evaluation script and log parser.
In SWE-smith `patch` is the bug, and the solution its reverse.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError, MissingExtra
from lmgym.tasks.swebench.repositories import SWE_BENCH

WHERE = (
    "set SWEBENCH_DATA, or data=, to a .jsonl, .json or .parquet file, a folder of `datasets`, "
    "or a name such as SWE-bench/SWE-bench_Verified"
)
OPTIONAL = ("base_commit", "version", "test_patch", "image", "image_name", "eval_script", "log_parser", "eval_type")
REQUIRED = ("instance_id", "repo", "patch", "problem_statement")


@dataclass(frozen=True)
class Instance:
    """An issue of a repository, and the tests that decide."""

    instance_id: str
    repo: str
    base_commit: str
    version: str
    patch: str  # solution, or the bug if `synthetic`
    test_patch: str
    problem_statement: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    image: str = ""  # that the data names
    eval_script: str = ""
    log_parser: str = ""
    fail_only: bool = False  # a test that is not in the log passes
    synthetic: bool = False  # of SWE-smith: the image holds the good version

    def image_name(self, template: str = "") -> str:
        """Return the image: by a template with `{id}`, as the data says, or by the official naming."""
        if template:
            return template.replace("{id}", self.instance_id.lower())
        if self.image:
            return self.image
        owner, separator = ("swebench", "_1776_") if self.repo in SWE_BENCH else ("xingyaoww", "_s_")
        return f"{owner}/sweb.eval.x86_64.{self.instance_id.lower().replace('__', separator)}:latest"


def instance(record: Mapping[str, Any]) -> Instance:
    """Return the instance of a record. Raises InstanceError for fields that are missing or of the wrong kind."""
    given = record.get("instance_id", "without instance_id")
    name = given if isinstance(given, str) and given.isprintable() else repr(given)[:60]
    for field in REQUIRED:
        if not isinstance(record.get(field), str):
            raise InstanceError(f"instance {name}: the field {field} is missing or no text")
    if not given or name != given:
        raise InstanceError(f"instance {name}: the field instance_id is no id")
    fail_to_pass = _tests(name, record, "FAIL_TO_PASS")
    if not fail_to_pass:
        raise InstanceError(f"instance {name}: FAIL_TO_PASS is missing or empty, so any patch would resolve it")
    texts = {field: _text(name, record, field) for field in (*REQUIRED, *OPTIONAL)}
    return Instance(
        instance_id=name,
        repo=texts["repo"],
        base_commit=texts["base_commit"],
        version=texts["version"],
        patch=texts["patch"],
        test_patch=texts["test_patch"],
        problem_statement=texts["problem_statement"],
        fail_to_pass=fail_to_pass,
        pass_to_pass=_tests(name, record, "PASS_TO_PASS"),
        image=texts["image"] or texts["image_name"],
        eval_script=texts["eval_script"],
        log_parser=texts["log_parser"],
        fail_only="fail" in texts["eval_type"].lower() and "pass" not in texts["eval_type"].lower(),
        synthetic="image_name" in record and not record.get("test_patch") and not texts["eval_script"],
    )


def _text(name: str, record: Mapping[str, Any], field: str) -> str:
    """Return a field as text, "" if it is missing; versions may be numbers."""
    value = record.get(field)
    if not isinstance(value, str | int | float | None):
        raise InstanceError(f"instance {name}: the field {field} is no text: {value!r:.60}")
    text = "" if value is None else str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InstanceError(f"instance {name}: the field {field} has a lone surrogate") from error
    return text


def _tests(name: str, record: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return a list of tests, given as a list or as JSON text."""
    value = record.get(field, [])
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InstanceError(f"instance {name}: {field} is no JSON list: {value[:60]!r}") from error
    if not isinstance(value, Iterable) or isinstance(value, Mapping | str):
        raise InstanceError(f"instance {name}: {field} is no list of tests: {value!r:.60}")
    tests = tuple(value)
    for test in tests:
        if not isinstance(test, str):
            raise InstanceError(f"instance {name}: {field} holds {test!r:.60}, which is no test")
    return tests


def load(data: str | os.PathLike[str] | None, split: str) -> list[Instance]:
    """Return the instances of a split from `data` or `$SWEBENCH_DATA`. Raises InstanceError if there are none."""
    source = os.fspath(data or os.environ.get("SWEBENCH_DATA") or "")
    if not source:
        raise InstanceError(f"lmgym/SWEBenchOfficial-v0 needs instances: {WHERE}")
    return _loaded(source, split)


@lru_cache(maxsize=4)
def _loaded(source: str, split: str) -> list[Instance]:
    path = Path(source)
    if path.is_file() and path.suffix in (".jsonl", ".json"):
        records: Iterable[Mapping[str, Any]] = _json_records(path)
    elif path.is_dir() and (path / f"{split}.jsonl").is_file():
        records = _json_records(path / f"{split}.jsonl")
    else:
        records = _dataset(source, split)
    instances = [instance(record) for record in records]
    if not instances:
        raise InstanceError(f"{source} has no instances: {WHERE}")
    return instances


def _json_records(path: Path) -> list[Mapping[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            records = json.loads(text)
            records = list(records.values()) if isinstance(records, dict) else records
        else:
            records = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        raise InstanceError(f"{path} cannot be read as instances: {error}") from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise InstanceError(f"{path} holds no list of instances")
    return records


def _dataset(source: str, split: str) -> Iterable[Mapping[str, Any]]:
    """Return the records of a parquet file, a saved data set or one of the hub."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra(f"{source} is read by `datasets`: pip install 'lmgym[train]'") from error
    path = Path(source)
    try:
        if path.suffix == ".parquet":
            rows = datasets.load_dataset("parquet", data_files={split: source}, split=split)
        elif path.is_dir() and any((path / name).is_file() for name in ("dataset_dict.json", "state.json")):
            saved = datasets.load_from_disk(source)
            rows = saved[split] if isinstance(saved, dict) else saved
        else:
            rows = datasets.load_dataset(source, split=split)
    except (OSError, ValueError, KeyError, ConnectionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InstanceError(f"split {split} of {source} cannot be loaded ({reason}): {WHERE}") from error
    records: list[Mapping[str, Any]] = list(rows)
    return records
