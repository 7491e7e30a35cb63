"""The official files of tau2-bench: databases, policies, tasks and splits below `$TAU2_DATA`."""

from __future__ import annotations

import json
import os
import pickle
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError
from lmgym.tasks.tau2.toolkit import Data
from lmgym.tasks.tau2.world import Tau2World

BASIS = ("DB", "COMMUNICATE")  # of a task whose criteria name none: the default of tau2-bench's schema
PARTS = frozenset({"DB", "ACTION", "ENV_ASSERTION", "COMMUNICATE", "NL_ASSERTION"})
TASK_FILES = ("tasks.json", "tasks_full.json", "tasks_small.json")
WHERE = (
    "git clone https://github.com/sierra-research/tau2-bench, and set TAU2_DATA to the folder data/tau2 of the clone"
)


def criteria_of(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a task's evaluation criteria."""
    return task.get("evaluation_criteria") or {}


def basis_of(task: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the checks whose product is the score; none for a task without criteria."""
    if not task.get("evaluation_criteria"):
        return frozenset()
    basis = criteria_of(task).get("reward_basis")
    return frozenset(BASIS if basis is None else basis)


def needs_judge(task: Mapping[str, Any]) -> bool:
    """Return True if the score depends on assertions in natural language."""
    return "NL_ASSERTION" in basis_of(task) and bool(criteria_of(task).get("nl_assertions"))


def domain_folder(data: str | os.PathLike[str] | None, domain: str, task_id: str) -> Path:
    """Return the folder of a domain below `data` or `$TAU2_DATA`. Raises InstanceError if it is not there."""
    root = data or os.environ.get("TAU2_DATA")
    if root:
        for base in (Path(root), Path(root) / "tau2", Path(root) / "data" / "tau2"):
            if (base / "domains" / domain).is_dir():
                return base / "domains" / domain
    raise InstanceError(f"{task_id} needs the files of tau2-bench: {WHERE}")


class OfficialDomain:
    """One domain's files, parsed once; every world is a fresh copy."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.domain = folder, folder.name
        self.tasks: dict[str, Data] = {}
        for name in TASK_FILES:
            for task in _tasks(folder / name):
                self.tasks.setdefault(task["id"], task)
        if not self.tasks:
            raise InstanceError(f"{folder} has none of {', '.join(TASK_FILES)}: {WHERE}")
        path = folder / "split_tasks.json"
        self.splits: dict[str, list[str]] = _parsed(path) if path.is_file() else {"base": list(self.tasks)}
        self._frozen = pickle.dumps(_table(folder, "db"))
        self._frozen_user = pickle.dumps(_table(folder, "user_db"))

    def ids(self, split: str) -> list[str]:
        """Return the ids of a split whose tasks are here, in the order of the task files."""
        named = set(self.splits.get(split, ()))
        return [task_id for task_id in self.tasks if task_id in named]

    def policy(self, *, solo: bool = False, workflow: bool = False) -> str:
        """Return the agent's policy; telecom's has two parts, the second as manual or workflow."""
        if self.domain != "telecom":
            return self._text("policy_solo.md" if solo else "policy.md", "policy.md")
        support = "workflow" if workflow else "manual"
        main = self._text("main_policy_solo.md" if solo else "main_policy.md", "main_policy.md")
        tech = self._text(f"tech_support_{support}{'_solo' * solo}.md", f"tech_support_{support}.md")
        return f"<main_policy>\n{main}\n</main_policy>\n<tech_support_policy>\n{tech}\n</tech_support_policy>"

    def guidelines(self) -> str:
        """Return tau2-bench's guidelines for a model in the user's seat; "" if they are not here."""
        name = "simulation_guidelines_tools.md" if self.domain in ("telecom", "mock") else "simulation_guidelines.md"
        path = self.folder.parents[1] / "user_simulator" / name
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def world(self, task: Mapping[str, Any], *, solo: bool = False) -> Tau2World:
        """Return a fresh world in a task's initial state, before its message history."""
        data = pickle.loads(self._frozen)
        if data is None:
            raise InstanceError(f"{self.folder} has no db.json or db.toml: {WHERE}")
        world = Tau2World(self.domain, data, pickle.loads(self._frozen_user), solo=solo)
        world.initialise(task.get("initial_state") or {})
        return world

    def _text(self, name: str, fallback: str) -> str:
        path = self.folder / name
        path = path if path.is_file() else self.folder / fallback
        if not path.is_file():
            raise InstanceError(f"{self.folder} has no {fallback}: {WHERE}")
        return path.read_text(encoding="utf-8")


@lru_cache(maxsize=8)
def official_domain(folder: Path) -> OfficialDomain:
    """Return the files of a domain, kept for the next environment."""
    return OfficialDomain(folder)


def _tasks(path: Path) -> list[Data]:
    """Return the tasks of a file, none if it is absent; those with an unknown part of the score are refused."""
    if not path.is_file():
        return []
    content = _parsed(path)
    tasks: list[Data] = content["tasks"] if isinstance(content, dict) else content
    for task in tasks:
        if unknown := basis_of(task) - PARTS:
            raise InstanceError(f"{path}: task {task['id']} has the unknown reward basis {min(unknown)!r}")
    return tasks


def _table(folder: Path, name: str) -> Data | None:
    for suffix in (".json", ".toml"):
        path = folder / f"{name}{suffix}"
        if path.is_file():
            table: Data = _parsed(path)
            return table
    return None


def _parsed(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InstanceError(f"{path} cannot be read: {error}") from error
