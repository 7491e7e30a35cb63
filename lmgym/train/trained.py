"""What a step really trained, token by token: a line of JSON for every row of its batch, beside the episodes it kept.

A row is a segment of an episode. Its line has one entry a token: the weight of its loss and its advantage, after
rewards, filters, stores and critics had their say.
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
    """The share of a segment in an update."""

    episode: str  # id of the trajectory
    segment: int  # number among the trajectory's
    weight: tuple[float, ...]  # of each token's loss; 0 is not trained
    advantage: tuple[float, ...]


def write(run: Path, step: int, batch: Batch, episodes: Sequence[Trajectory], *, more: bool = False) -> None:
    """Write the rows of a step's batch into the folder of its run; `episodes` are those that it was collated from.

    `more` says that it is not the step's first batch: its rows follow those that are there.
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
    """Where the rows of a step stand whose episodes were kept in `kept`."""
    return kept.parent.parent / FOLDER / kept.name


def read(path: Path) -> dict[tuple[str, int], TrainedRow]:
    """The rows of a step by (id of the episode, number of the segment)."""
    rows = (json.loads(line) for line in path.read_text().splitlines())
    found = (
        TrainedRow(
            episode=row["episode"],
            segment=row["segment"],
            weight=tuple(row["weight"]),
            advantage=tuple(row["advantage"]),
        )
        for row in rows
    )
    return {(row.episode, row.segment): row for row in found}


def nothing(episode: str, segment: int, tokens: int) -> TrainedRow:
    """The row of a segment that no batch had."""
    return TrainedRow(episode=episode, segment=segment, weight=(0.0,) * tokens, advantage=(0.0,) * tokens)
