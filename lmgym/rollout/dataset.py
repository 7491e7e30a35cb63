"""Data sets of episodes: JSON lines or parquet, our own or in LMRL-Gym's layouts; a file, or a folder of files.

In parquet what others may want to read is a column (texts, actions, rewards, ids, log-probs, return, score), and the
rest of a record stands as JSON in `more`, so that reading gives back exactly what was written.
"""

from __future__ import annotations

import gzip
import hashlib
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
WHOLE = ".json"  # one value: others' alone, and not looked for in folders, where reports and settings may stand
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
SAID = {"text": "string", "finish": "string", "thinking": "string"}
IDS = {"prompt_ids": "int64", "ids": "int64", "logprobs": "float64", "entropy": "float64"}


def read(path: Path) -> Iterator[Trajectory]:
    """Yield the episodes of a file, or of all JSON lines and parquet files in a folder by name.

    No two have one id: in a folder it begins with the file's name, as recordings by several players or seeds have the
    same ids. A group there is the tries of one instance, whatever file they are in. Raises InstanceError for what is
    no data set, OSError where nothing can be read.
    """
    if path.is_dir():
        for file in sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES)):
            for episode in read(file):
                yield _filed(episode, file.name)
        return
    seen: set[str] = set()
    for episode in _read(path):
        if episode.id in seen:
            raise InstanceError(f"{path} has two episodes {episode.id!r}: keep recordings apart, as files of a folder")
        seen.add(episode.id)
        yield episode


def _read(path: Path) -> Iterator[Trajectory]:
    """The episodes of a file."""
    if path.name.endswith(".parquet"):
        path.open("rb").close()  # an OSError of its own where there is none
        rows = _datasets().load_dataset("parquet", data_files=str(path), split="train", streaming=True)
        yield from map(_from_row, rows)
    elif path.name.endswith(LINES):
        yield from _lines(path)
    elif path.name.endswith(WHOLE):
        yield from _whole(path)
    else:
        raise InstanceError(f"{path} is no data set: it ends in none of {', '.join((*SUFFIXES, WHOLE))}")


def _filed(episode: Trajectory, name: str) -> Trajectory:
    """The episode with ids that no other file has, in a group that no other instance has."""
    of = (episode.task, episode.options, episode.split, episode.index, episode.instance)
    instance = hashlib.blake2b(json.dumps(of, sort_keys=True).encode(), digest_size=8).hexdigest()
    return replace(
        episode,
        id=f"{name}/{episode.id}",
        root=f"{name}/{episode.root}",
        parent=None if episode.parent is None else f"{name}/{episode.parent}",
        group=f"{episode.group}/{instance}",
    )


def write(path: Path, trajectories: Iterable[Trajectory]) -> None:
    """Write a data set in the format that the name ends in; whoever reads `path` finds it whole or not at all."""
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
    """Raises InstanceError for a name in whose format no data set is written, MissingExtra where that needs one."""
    if path.name.endswith(".parquet"):
        _datasets()
    elif not path.name.endswith(".jsonl"):
        raise InstanceError(f"{path}: a data set is written as .jsonl or .parquet")


def labelled(trajectory: Trajectory, policy: Policy) -> Trajectory:
    """The episode with who played it, and whose ids it holds, among its tags."""
    digest = getattr(policy, "tokens", None)
    return replace(trajectory, tags={**trajectory.tags, "policy": policy.name, "tokens": digest})


def _lines(path: Path) -> Iterator[Trajectory]:
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            if line.startswith('{"id"'):  # as `episodes.dump` begins
                if line.endswith("\n"):  # a last line that was cut off while it was written is none
                    yield episodes.parse(line)
            elif line.strip():
                yield lmrl.episode(_json(line, f"{path.name}, line {number + 1}"), path.name, number)


def _whole(path: Path) -> Iterator[Trajectory]:
    return lmrl.items(_json(path.read_text(encoding="utf-8"), path.name), path.name)


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InstanceError(f"{place} is no episode of ours or LMRL-Gym's: {error!r}") from error


# Parquet --------------------------------------------------------------------------------------------------------


def _datasets() -> Any:
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise MissingExtra("parquet data sets need: pip install 'lmgym[train]'") from error
    return datasets


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    kinds = _datasets()
    shown = not kinds.are_progress_bars_disabled()
    kinds.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            kinds.enable_progress_bars()


def _features() -> datasets.Features:
    kinds = _datasets()
    value = kinds.Value
    turn = {
        "shown": value("string"),
        "images": kinds.List(value("string")),
        **{name: value(kind) for name, kind in {**TURN, **SAID}.items()},
        **{name: kinds.List(value(kind)) for name, kind in IDS.items()},
        "more": value("string"),
    }
    known = {"return": value("float64"), "score": value("float64"), "success": value("bool")}
    row = {name: value(kind) for name, kind in EPISODE.items()}
    return kinds.Features({**row, **known, "turns": kinds.List(turn), "more": value("string")})


def _to_row(trajectory: Trajectory) -> dict[str, Any]:
    content = json.loads(episodes.dump(trajectory))
    row = {name: content.pop(name) for name in EPISODE}
    row |= {"return": trajectory.reward}
    row |= {name: trajectory.info.get(name) for name in ("score", "success")}
    row["turns"] = [_turn_row(turn) for turn in content.pop("turns")]
    return {**row, "more": json.dumps(content)}


def _turn_row(turn: dict[str, Any]) -> dict[str, Any]:
    shown, said = turn.pop("observation"), turn.pop("completion")
    row = {"shown": shown.pop("text"), "images": shown.pop("images")}
    row |= {name: turn.pop(name) for name in TURN}
    row |= {name: said.pop(name) for name in (*SAID, *IDS)}
    return {**row, "more": json.dumps({**turn, "observation": shown, "completion": said})}


def _from_row(row: Mapping[str, Any]) -> Trajectory:
    content = {**json.loads(row["more"]), **{name: row[name] for name in EPISODE}}
    content["turns"] = [_turn_of(turn) for turn in row["turns"]]
    return episodes.parse(json.dumps(content))


def _turn_of(row: Mapping[str, Any]) -> dict[str, Any]:
    turn: dict[str, Any] = json.loads(row["more"])
    turn |= {name: row[name] for name in TURN}
    turn["observation"] |= {"text": row["shown"], "images": row["images"]}
    turn["completion"] |= {name: row[name] for name in (*SAID, *IDS)}
    return turn
