"""Official ALFWorld games under $ALFWORLD_DATA, in their official layout; sorted paths are the index."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError

LAYOUTS = ("json_2.1.1", "json_2.1.3_tw-pddl")  # folder of the splits, by release of the data
TYPE_FOLDERS = ("movable", "Sliced")  # in a path: types that ALFWorld itself leaves out


def data_root() -> Path:
    """Return the folder that holds the splits; InstanceError where there is none."""
    named = os.environ.get("ALFWORLD_DATA")
    if not named:
        raise InstanceError("official ALFWorld games need $ALFWORLD_DATA: the folder that holds json_2.1.1")
    for layout in LAYOUTS:
        if (Path(named) / layout).is_dir():
            return Path(named) / layout
    raise InstanceError(f"$ALFWORLD_DATA={named} has none of the folders {', '.join(LAYOUTS)}")


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
    return tuple(path for path in kept if path.with_name("traj_data.json").exists() and _read(path).get("solvable"))


def game(split: str, index: int) -> dict[str, Any]:
    """Return the contents of game `index` of a split."""
    return _read(games(split)[index])


def annotation(split: str, index: int, number: int) -> str:
    """Return a human's sentence for the goal; `number` counts round, games have three or more."""
    path = games(split)[index].with_name("traj_data.json")
    written = _read(path)["turk_annotations"]["anns"]
    return str(written[number % len(written)]["task_desc"])


def _read(path: Path) -> dict[str, Any]:
    try:
        contents: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise InstanceError(f"{path} cannot be read as JSON: {error}") from error
    return contents
