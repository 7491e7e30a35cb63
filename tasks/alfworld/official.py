"""Official ALFWorld games in $ALFWORLD_DATA, in their official layout, indexed by sorted path."""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError

DEFAULT = "~/.cache/alfworld"  # where alfworld-download puts them
LAYOUTS = ("json_2.1.1", "json_2.1.3_tw-pddl")  # folder of the splits, by release of the data
SOLVABLE = re.compile(rb'"solvable"\s*:\s*true')  # searched instead of parsed, for speed over thousands of files
TYPE_FOLDERS = ("movable", "Sliced")  # in a path: types that ALFWorld itself leaves out


def data_root() -> Path:
    """Return the folder that holds the splits; raise InstanceError if there is none."""
    home = Path(os.environ.get("ALFWORLD_DATA") or DEFAULT).expanduser()
    for layout in LAYOUTS:
        if (home / layout).is_dir():
            return home / layout
    raise InstanceError(f"no official ALFWorld games: set $ALFWORLD_DATA to the folder of {LAYOUTS[0]}; tried {home}")


def games(split: str) -> tuple[Path, ...]:
    """Return the solvable games of a split, sorted; as ALFWorld's loader filters them."""
    folder = data_root() / split
    if not folder.is_dir():
        raise InstanceError(f"the official ALFWorld data under {folder.parent} has no split {split!r}")
    return _games(folder, folder.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _games(folder: Path, changed: int) -> tuple[Path, ...]:
    del changed  # part of the cache's key only
    paths = sorted(folder.glob("*/*/game.tw-pddl"))
    kept = [path for path in paths if not any(word in str(path.relative_to(folder)) for word in TYPE_FOLDERS)]
    kept = [path for path in kept if path.with_name("traj_data.json").exists()]
    return tuple(path for path in kept if SOLVABLE.search(path.read_bytes()))


def game(split: str, index: int) -> dict[str, Any]:
    """Return the contents of game `index` of a split."""
    return _read(games(split)[index])


def title(split: str, index: int) -> str:
    """Return the folders of game `index` and 12 hex digits of its file: releases of the data word games differently."""
    path = games(split)[index]
    return f"{'/'.join(path.parts[-3:-1])} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def index_of(split: str, wanted: str) -> int | None:
    """Return the index of the game with a title, or None."""
    folders = wanted.partition(" ")[0]
    for index, path in enumerate(games(split)):
        if "/".join(path.parts[-3:-1]) == folders:
            return index if title(split, index) == wanted else None
    return None


def annotation(split: str, index: int, number: int) -> str:
    """Return a human's sentence for the goal; `number` wraps around, since games have three or more."""
    path = games(split)[index].with_name("traj_data.json")
    try:
        written = _read(path)["turk_annotations"]["anns"]
        return str(written[number % len(written)]["task_desc"])
    except (KeyError, TypeError, ZeroDivisionError) as error:
        raise InstanceError(f"{path} has no human goal sentences") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        contents: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise InstanceError(f"{path} cannot be read as JSON: {error}") from error
    return contents
