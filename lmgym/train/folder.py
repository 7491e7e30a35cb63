"""A run's folder: claimed once, described in run.json, gone on with only by the arguments that began it."""

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

FACTS = "run.json"
CHECKPOINTS = "checkpoints"
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "gymnasium")


def claim(folder: Path, arguments: Mapping[str, Any], *, resume: bool) -> dict[str, Any] | None:
    """Begin a run in `folder`, or go on with the one that is there: then its last checkpoint, if it made any.

    Raises RecipeError where another run has the folder, where there is none to go on with, and for an argument that
    differs.
    """
    path = folder / FACTS
    given = json.loads(json.dumps(dict(arguments), default=str))
    if not resume:
        if path.exists() or (folder / METRICS).exists():
            raise RecipeError(f"{folder} has a run already: go on with --resume, or choose another folder with --out")
        replace_file(path, json.dumps({"arguments": given, **surroundings()}, indent=2))
        return None
    if not path.exists():
        raise RecipeError(f"nothing to resume: {folder} has no {FACTS}; leave --resume out to begin there")
    _same(read(folder)["arguments"], given, folder)
    return checkpoint.load(folder / CHECKPOINTS)


def read(folder: Path) -> dict[str, Any]:
    """Return run.json."""
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text())
    except ValueError as error:
        raise RecipeError(f"{folder / FACTS} is damaged: {error}; restore it or begin anew with --out") from error
    return facts


def _same(old: Mapping[str, Any], new: Mapping[str, Any], folder: Path) -> None:
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            raise RecipeError(
                f"{folder} was begun with {name}={old.get(name)!r}, not {new.get(name)!r}: "
                "resume with the same arguments, or begin anew with --out"
            )


def surroundings() -> dict[str, Any]:
    """Versions of what a run stands on."""
    return {
        "lmgym": lmgym.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),  # a resumed run makes the same bits on as many
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the source tree, with a plus where files were changed; None outside of one."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + ("+" if changed.stdout else "")
