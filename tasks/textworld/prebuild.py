"""Compile games before they are played: `python -m lmgym.tasks.textworld.prebuild --count 1000`."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Annotated

import typer
from rich.progress import track

from lmgym.errors import InstanceError
from lmgym.tasks.textworld import SPEC, VARIANTS, env

IDS = {spec.id: spec for spec in (SPEC, *VARIANTS)}
Task = Annotated[str, typer.Option(help=f"one of {', '.join(IDS)}")]
Jobs = Annotated[int, typer.Option(help="processes; 0 for one a core")]


def prebuild(task: str, split: str, index: int) -> None:
    """Compile instance `index`, unless it is in the cache."""
    spec = IDS[task]
    game: type[env.TextWorld] = getattr(env, spec.entry_point.partition(":")[2])
    game(spec=spec, split=split, **spec.options).story(index)


def main(task: Task = SPEC.id, split: str = "train", count: int = 1000, jobs: Jobs = 0) -> None:
    """Compile the first COUNT games of a split, on all cores."""
    if task not in IDS or split not in IDS[task].splits:
        raise InstanceError(f"there is no {task} {split}; ids are {', '.join(IDS)}")
    indices = range(min(count, IDS[task].splits[split]))
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=fresh) as workers:
        made = workers.map(partial(prebuild, task, split), indices, chunksize=4)
        for _ in track(made, description=f"{task} {split}", total=len(indices)):
            pass


if __name__ == "__main__":
    typer.run(main)
