"""Records of the tokens that a step trained: a line of JSON for every row of its batch, beside the kept episodes.

A row is a segment of an episode. Its line has the loss weight and the advantage of each token, after rewards, filters,
stores and critics.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmgym.train.batch import Batch
from lmgym.train.log import replace_file
from lmgym.types import Trajectory

FOLDER = "trained"


@dataclass(frozen=True, kw_only=True)
class TrainedRow:
    """Loss weights and advantages of a segment."""

    episode: str  # id of the trajectory
    segment: int  # number of the segment in the trajectory
    weight: tuple[float, ...]  # loss weight of each token; 0: not trained
    advantage: tuple[float, ...]


def write(run: Path, step: int, batch: Batch, episodes: Sequence[Trajectory], *, more: bool = False) -> None:
    """Write the rows of a step's batch into the folder of its run; `episodes` are those it was collated from.

    With `more` the rows are appended, for later batches of the same step.
    """
    path = run / FOLDER / f"{step:06d}.jsonl"
    lines = []
    for row, length in enumerate(batch.lengths.tolist()):
        content = {
            "episode": episodes[int(batch.episode[row])].id,
            "segment": int(batch.segment[row]),
            "weight": batch.weight[row, :length].tolist(),
            "advantage": batch.advantage[row, :length].tolist(),
        }
        lines.append(json.dumps(content) + "\n")
    replace_file(path, (path.read_text() if more and path.exists() else "") + "".join(lines))


def path_beside(kept: Path) -> Path:
    """Return the path of the rows of a step whose episodes are in the file `kept`."""
    return kept.parent.parent / FOLDER / kept.name


def read(path: Path) -> dict[tuple[str, int], TrainedRow]:
    """Return the rows of a step by (episode id, segment number)."""
    rows = (json.loads(line) for line in path.read_text().splitlines())
    trained_rows = (
        TrainedRow(
            episode=row["episode"],
            segment=row["segment"],
            weight=tuple(row["weight"]),
            advantage=tuple(row["advantage"]),
        )
        for row in rows
    )
    return {(row.episode, row.segment): row for row in trained_rows}


def nothing(episode: str, segment: int, tokens: int) -> TrainedRow:
    """Return the row of a segment that was in no batch."""
    return TrainedRow(episode=episode, segment=segment, weight=(0.0,) * tokens, advantage=(0.0,) * tokens)
