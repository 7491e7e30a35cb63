"""Data sets of episodes: files or folders of JSON lines or parquet, our own or in LMRL-Gym's layouts.

In parquet, texts, actions, rewards, ids, log-probs, return and score are columns, and the rest of a record is JSON in
the column `more`, so that reading gives back exactly what was written.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgym.errors import InstanceError, MissingExtra
from lmgym.policy.base import Policy
from lmgym.rollout import episodes, lmrl
from lmgym.types import Trajectory

if TYPE_CHECKING:
    import datasets

LINES = (".jsonl", ".jsonl.gz")
SUFFIXES = (*LINES, ".parquet")
JSON = ".json"  # one value in another layout; ignored in folders, where reports and settings may be
EPISODE = {
    "id": "string",
    "task": "string",
    "split": "string",
    "index": "int64",
    "seed": "int64",
    "attempt": "int64",
    "group": "string",
    "seat": "string",
    "prompt": "string",
    "terminated": "bool",
    "truncated": "bool",
    "stop": "string",
}
TURN = {"action": "string", "reward": "float64", "kind": "string", "fresh": "bool"}
COMPLETION = {"text": "string", "finish": "string", "thinking": "string"}
IDS = {"prompt_ids": "int64", "ids": "int64", "logprobs": "float64", "entropy": "float64"}


def read(path: Path) -> Iterator[Trajectory]:
    """Yield the episodes of a file, or of all JSON-lines and parquet files of a folder, sorted by name.

    Ids are unique: in a folder they begin with the file's name, as recordings by several players or seeds share ids.
    A group in a folder holds the tries of one instance in all files. Raises InstanceError for other formats and
    OSError for unreadable files.
    """
    if path.is_dir():
        for file in sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES)):
            for episode in read(file):
                of = (episode.task, episode.options, episode.split, episode.index, episode.instance)
                instance = hashlib.blake2b(json.dumps(of, sort_keys=True).encode(), digest_size=8).hexdigest()
                yield replace(
                    episode,
                    id=f"{file.name}/{episode.id}",
                    root=f"{file.name}/{episode.root}",
                    parent=None if episode.parent is None else f"{file.name}/{episode.parent}",
                    group=f"{episode.group}/{instance}",
                )
        return
    ids: set[str] = set()
    for episode in _read(path):
        if episode.id in ids:
            raise InstanceError(
                f"{path} has two episodes {episode.id!r}: put recordings into separate files of a folder"
            )
        ids.add(episode.id)
        yield episode


def _read(path: Path) -> Iterator[Trajectory]:
    """Yield the episodes of a file."""
    if path.name.endswith(".parquet"):
        path.open("rb").close()  # raises OSError if the file is missing
        rows = _datasets().load_dataset("parquet", data_files=str(path), split="train", streaming=True)
        yield from map(_from_row, rows)
    elif path.name.endswith(LINES):
        yield from _lines(path)
    elif path.name.endswith(JSON):
        yield from lmrl.items(_json(path.read_text(encoding="utf-8"), path.name), path.name)
    else:
        raise InstanceError(f"{path} is not a data set; choose a file that ends in {', '.join((*SUFFIXES, JSON))}")


def write(path: Path, trajectories: Iterable[Trajectory]) -> None:
    """Write a data set atomically, in the format of the file's suffix."""
    check_name(path)
    if path.name.endswith(".jsonl"):
        episodes.write(path, trajectories)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        rows = [_to_row(trajectory) for trajectory in trajectories]
        with _no_progress_bars():
            _datasets().Dataset.from_list(rows, features=_features()).to_parquet(str(partial))
        partial.replace(path)


def check_name(path: Path) -> None:
    """Raise InstanceError for a suffix that cannot be written, and MissingExtra if its packages are missing."""
    if path.name.endswith(".parquet"):
        _datasets()
    elif not path.name.endswith(".jsonl"):
        raise InstanceError(f"cannot write a data set to {path}; choose a name that ends in .jsonl or .parquet")


def labelled(trajectory: Trajectory, policy: Policy) -> Trajectory:
    """Return the episode with its policy's name and the digest of the policy's tokenizer as tags."""
    digest = getattr(policy, "tokens", None)
    return replace(trajectory, tags={**trajectory.tags, "policy": policy.name, "tokens": digest})


def _lines(path: Path) -> Iterator[Trajectory]:
    """Yield the episodes of a file of JSON lines; an incomplete last line is skipped."""
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        # our episodes begin as `episodes.dump` begins
        for ours, group in itertools.groupby(enumerate(file), key=lambda pair: pair[1].startswith('{"id"')):
            if ours:
                yield from (episodes.parse(line) for _, line in group if line.endswith("\n"))
            else:
                contents = (
                    (number, _json(line, f"{path.name}, line {number + 1}") if line.strip() else None)
                    for number, line in group
                )
                yield from lmrl.lines(contents, path.name)


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InstanceError(f"{place} is not an episode of lmgym or LMRL-Gym: {error!r}") from error


def _datasets() -> Any:
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise MissingExtra("parquet data sets need: pip install 'lmgym[train]'") from error
    return datasets


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    library = _datasets()
    enabled = not library.are_progress_bars_disabled()
    library.disable_progress_bars()
    try:
        yield
    finally:
        if enabled:
            library.enable_progress_bars()


def _features() -> datasets.Features:
    library = _datasets()
    value = library.Value
    turn = {
        "shown": value("string"),
        "images": library.List(value("string")),
        **{name: value(kind) for name, kind in {**TURN, **COMPLETION}.items()},
        **{name: library.List(value(kind)) for name, kind in IDS.items()},
        "more": value("string"),
    }
    outcome = {"return": value("float64"), "score": value("float64"), "success": value("bool")}
    row = {name: value(kind) for name, kind in EPISODE.items()}
    return library.Features({**row, **outcome, "turns": library.List(turn), "more": value("string")})


def _to_row(trajectory: Trajectory) -> dict[str, Any]:
    content = json.loads(episodes.dump(trajectory))
    row = {name: content.pop(name) for name in EPISODE}
    row |= {"return": trajectory.reward}
    row |= {name: trajectory.info.get(name) for name in ("score", "success")}
    row["turns"] = []
    for turn in content.pop("turns"):
        observation, completion = turn.pop("observation"), turn.pop("completion")
        columns = {"shown": observation.pop("text"), "images": observation.pop("images")}
        columns |= {name: turn.pop(name) for name in TURN}
        columns |= {name: completion.pop(name) for name in (*COMPLETION, *IDS)}
        more = json.dumps({**turn, "observation": observation, "completion": completion})
        row["turns"].append({**columns, "more": more})
    return {**row, "more": json.dumps(content)}


def _from_row(row: Mapping[str, Any]) -> Trajectory:
    content = {**json.loads(row["more"]), **{name: row[name] for name in EPISODE}, "turns": []}
    for columns in row["turns"]:
        turn = {**json.loads(columns["more"]), **{name: columns[name] for name in TURN}}
        turn["observation"] |= {"text": columns["shown"], "images": columns["images"]}
        turn["completion"] |= {name: columns[name] for name in (*COMPLETION, *IDS)}
        content["turns"].append(turn)
    return episodes.parse(json.dumps(content))
