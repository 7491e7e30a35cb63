"""Instances: a repository with a validated bug, an issue, and the tests that decide.

The instance of (split, index) is made when it is first opened, and kept in the user's cache. The splits test and pypi
and the first instances of training are shipped, so that they open at once.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lmgym.backends.coding.files import put
from lmgym.backends.sandbox import open_sandbox
from lmgym.cache import cache_folders
from lmgym.errors import InstanceError
from lmgym.tasks.swe_repair import diffs, repositories, workspace
from lmgym.tasks.swe_repair.issues import written
from lmgym.tasks.swe_repair.repositories import Repository
from lmgym.tasks.swe_repair.testing import LIMIT, PLUGIN, TestRun, run_tests

VERSION = 2  # of the rules below: raise it when they change
TEXTS = 2  # of the issue texts: raise it when they change
LEVELS = ("all", "easy", "medium", "hard")
PATIENCE = 6  # attempts with the family of an index, before any family will do
ATTEMPTS = 80
HASH_SEEDS = (0, 1, 2)  # of the three runs that must agree
SHIPPED = Path(__file__).with_name("instances.jsonl")
PASSING = Path(__file__).with_name("passing.json")


@dataclass(frozen=True)
class Repair:
    """A bug to repair, in the fields of SWE-smith: `patch` introduces the bug."""

    instance_id: str
    repository: str
    family: str
    level: str
    patch: str
    problem_statement: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]

    @property
    def path(self) -> str:
        """Path of the broken file."""
        return diffs.patched_path(self.patch)

    @property
    def files(self) -> dict[str, str]:
        """Repository with the bug."""
        return diffs.applied(self.patch, repositories.named(self.repository).files)

    @property
    def solution(self) -> str:
        """Patch that takes the bug back."""
        return diffs.reverse(self.patch)


def size(split: str, level: str, training: int) -> int:
    """Return the number of instances of a split."""
    return training if split == "train" else len(_fixed(split, level))


def find(split: str, level: str, index: int) -> Repair:
    """Return an instance, made and validated if this is the first time."""
    if split != "train":
        return _fixed(split, level)[index]
    shipped = _shipped().get((split, level, index))
    return shipped or _cached(split, level, index) or _stored(split, level, index, made(split, level, index))


@cache
def _fixed(split: str, level: str) -> list[Repair]:
    """Return the instances of a split that has no others than those shipped."""
    every = [repair for (of_split, _, _), repair in sorted(_shipped().items()) if of_split == split]
    return [repair for repair in every if level in ("all", repair.level)]


@cache
def _shipped() -> dict[tuple[str, str, int], Repair]:
    """Return the shipped instances by split, level and index."""
    repairs = {}
    for line in SHIPPED.read_text(encoding="utf-8").splitlines() if SHIPPED.is_file() else ():
        record = json.loads(line)
        place = record.pop("split"), record.pop("of_level"), record.pop("index")
        failing = tuple(record.pop("fail_to_pass"))
        others = tuple(test for test in passing(record["repository"]) if test not in failing)
        repairs[place] = Repair(**record, fail_to_pass=failing, pass_to_pass=others)
    return repairs


@cache
def passing(name: str) -> tuple[str, ...]:
    """Return the tests that pass in a repository without a bug, sorted."""
    recorded: dict[str, list[str]] = json.loads(PASSING.read_text(encoding="utf-8")) if PASSING.is_file() else {}
    if name in recorded:
        return tuple(recorded[name])
    repository = repositories.named(name)
    with open_sandbox(workspace.box(PLUGIN)) as sandbox:
        put(sandbox, repository.files)
        runs = [run_tests(sandbox, hash_seed=seed, limit=repository.limit) for seed in HASH_SEEDS]
    if not runs[0].trusted and not runs[0].statuses:
        raise InstanceError(f"the tests of {name} do not run")
    return tuple(sorted(test for test in runs[0].statuses if all(run.statuses.get(test) == "PASSED" for run in runs)))


def made(
    split: str, level: str, index: int, *, taken: frozenset[str] = frozenset(), patience: int = PATIENCE
) -> Repair:
    """Return the first attempt at an instance that is valid; patches in `taken` are not."""
    for repository, family, path, changed in _attempts(split, level, index, patience):
        patch = diffs.unified(path, repository.files[path], changed)
        if patch in taken:
            continue
        files = {**repository.files, path: changed}
        runs = validated(files, passing(repository.name), limit=repository.limit)
        if runs is None:
            continue
        before = passing(repository.name)
        failing = tuple(test for test in before if not runs.kept(test))
        digest = hashlib.sha256(patch.encode()).hexdigest()[:8]
        name = f"lmgym__{repository.name}.func_pm_{family.name}__{digest}"
        text = written(name, patch, repository, failing, runs, place=family.level == "easy")
        if text is None:
            continue
        others = tuple(test for test in before if test not in failing)
        return Repair(name, repository.name, family.name, family.level, patch, text, failing, others)
    raise InstanceError(f"no valid bug for {split}/{index} of level {level} in {ATTEMPTS} attempts")


def _attempts(split: str, level: str, index: int, patience: int) -> Iterator[tuple[Repository, Any, str, str]]:
    """Yield repository, family, path and changed text of each attempt that changes code."""
    from lmgym.tasks.swe_repair import bugs  # libcst takes a second to import

    families = [family for family in bugs.FAMILIES if level in ("all", family.level)]
    for attempt in range(ATTEMPTS):
        chance = random.Random(f"{VERSION} {split} {level} {index} {attempt}")
        family = families[index % len(families)] if attempt < patience else chance.choice(families)
        names = repositories.names(split)
        name = names[index % len(names)] if split == "pypi" else chance.choice(names)
        repository = repositories.named(name)
        places = [
            (path, name) for path in repository.modules() for name in bugs.candidates(repository.files[path], family)
        ]
        if places:
            path, name = chance.choice(places)
            changed = bugs.broken(repository.files[path], name, family, str(chance.random()))
            if changed is not None:
                yield repository, family, path, changed


def validated(files: Mapping[str, str], before: tuple[str, ...], *, limit: float = LIMIT) -> TestRun | None:
    """Return a run of the broken repository's tests if the bug is valid, else None.

    At least one test must break and one still pass, no run may time out, and three runs, each with its own order of
    hashes, must agree.
    """
    with open_sandbox(workspace.box(PLUGIN)) as sandbox:
        put(sandbox, files)
        first: TestRun | None = None
        for seed in HASH_SEEDS:
            run = run_tests(sandbox, hash_seed=seed, limit=limit)
            if not run.trusted or (first is not None and run.statuses != first.statuses):
                return None
            kept = sum(map(run.kept, before))
            if not 0 < kept < len(before):
                return None
            first = first or run
    return first


def _file(split: str, level: str, index: int) -> str:
    return f"{VERSION}.{TEXTS}-{_fingerprint(split)}-{split}-{level}-{index}.json"


@cache
def _fingerprint(split: str) -> str:
    """Return a digest of the repositories of a split."""
    files = [repositories.named(name).files for name in repositories.names(split)]
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:8]


def _cached(split: str, level: str, index: int) -> Repair | None:
    for folder in cache_folders("swe"):
        with suppress(OSError, ValueError, TypeError):
            record = json.loads((folder / _file(split, level, index)).read_text(encoding="utf-8"))
            record |= {name: tuple(record[name]) for name in ("fail_to_pass", "pass_to_pass")}
            return Repair(**record)
    return None


def _stored(split: str, level: str, index: int, repair: Repair) -> Repair:
    """Keep an instance in the cache; where that cannot be written it is made again."""
    with suppress(OSError):
        path = cache_folders("swe")[-1] / _file(split, level, index)
        fresh = path.with_suffix(f".{random.SystemRandom().getrandbits(32):08x}")
        fresh.write_text(json.dumps(asdict(repair)), encoding="utf-8")
        fresh.replace(path)
    return repair
