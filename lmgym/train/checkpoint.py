"""Checkpoints: the complete state of a run, written atomically.

A checkpoint is a folder that is written under a temporary name, flushed and renamed; then its predecessor is removed. A
digest detects damage, which is reported; older checkpoints are never used instead.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import torch

from lmgym.errors import RecipeError

FORMAT = 3
STATE, DIGEST = "state.pt", "state.sha256"


def save(folder: Path, state: dict[str, Any], *, number: int) -> Path:
    """Write checkpoint `number` into `folder` and remove older ones; `state` holds tensors and plain values."""
    target = folder / f"{number:08d}"
    partial = folder / f"{target.name}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with (partial / STATE).open("wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            _flush(file)
        with (partial / DIGEST).open("w") as file:
            file.write(digest(partial / STATE))
            _flush(file)
        shutil.rmtree(target, ignore_errors=True)  # of a run that was resumed from an earlier one
        partial.rename(target)
    except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
        good = _complete(folder)
        last = f"the last good one is {good[-1]}" if good else "there is none before it"
        raise RecipeError(f"cannot write checkpoint {target}: {reason(error)}; {last}") from error
    for old in _complete(folder)[:-1]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def load(folder: Path) -> dict[str, Any] | None:
    """Load the newest checkpoint in `folder` onto the CPU; return None if there is none.

    Raise RecipeError if it is damaged; it is left in place and no older one is used.
    """
    checkpoints = _complete(folder)
    if not checkpoints:
        return None
    newest = checkpoints[-1]
    try:
        if digest(newest / STATE) != (newest / DIGEST).read_text():
            raise RecipeError(f"checkpoint {newest} is damaged (its digest differs); {ADVICE}")
        state: dict[str, Any] = torch.load(newest / STATE, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise RecipeError(f"checkpoint {newest} cannot be read: {reason(error)}; {ADVICE}") from error
    if state.pop("format") != FORMAT:
        raise RecipeError(f"checkpoint {newest} is of another version of lmgym; {ADVICE}")
    return state


ADVICE = "nothing was deleted: restore the folder from a copy, or train anew elsewhere with another --out"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reason(error: Exception) -> str:
    """Return the message of an error as one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:200]


def _complete(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.is_dir() and path.name.isdigit())


def _flush(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
