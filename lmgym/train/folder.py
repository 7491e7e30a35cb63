"""The folder of a run: claimed once, described in run.json, resumed with the same arguments only."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import lmgym
from lmgym.errors import RecipeError
from lmgym.train import checkpoint
from lmgym.train.log import METRICS, replace_file
from lmgym.train.ranks import ranks

FACTS = "run.json"
CHECKPOINTS = "checkpoints"
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "gymnasium")


def claim(folder: Path, arguments: Mapping[str, Any], *, resume: bool) -> dict[str, Any] | None:
    """Start a run in `folder`, or resume the run there and return its last checkpoint, if any.

    Raise RecipeError if the folder has another run, if there is none to resume, or if an argument or the number of
    processes differs.
    """
    path = folder / FACTS
    given = json.loads(json.dumps(dict(arguments), default=str))
    if not resume:
        if path.exists() or (folder / METRICS).exists():
            raise RecipeError(
                f"{folder} has a run already: continue with --resume, or choose another folder with --out"
            )
        replace_file(path, json.dumps({"arguments": given, **surroundings()}, indent=2))
        return None
    if not path.exists():
        raise RecipeError(f"nothing to resume: {folder} has no {FACTS}; leave --resume out to begin there")
    facts, processes = read(folder), ranks().size
    old = facts["arguments"]
    for name in dict.fromkeys([*old, *given]):
        if old.get(name) != given.get(name):
            raise RecipeError(
                f"{folder} was begun with {name}={old.get(name)!r}, not {given.get(name)!r}: "
                "resume with the same arguments, or begin anew with --out"
            )
    if (before := facts.get("processes", processes)) != processes:
        raise RecipeError(
            f"{folder} was begun with {before} processes, not {processes}: resume with as many, or begin anew by --out"
        )
    return checkpoint.load(folder / CHECKPOINTS)


def read(folder: Path) -> dict[str, Any]:
    """Return run.json."""
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text())
    except ValueError as error:
        raise RecipeError(f"{folder / FACTS} is damaged: {error}; restore it or begin anew with --out") from error
    return facts


def surroundings() -> dict[str, Any]:
    """Return the versions of software and machine that a run depends on."""
    return {
        "lmgym": lmgym.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),  # a resumed run is bit-identical with the same number
        "processes": ranks().size,
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the commit of the source tree; None outside a repository.

    A plus marks modified files. READMEs do not count: `make systems` and `make curves` write their tables there.
    """
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        status = [*git, "status", "--porcelain", "-uno", "--", ":/", ":(top,exclude,glob)**/README.md"]
        changed = subprocess.run(status, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed.stdout else "")
