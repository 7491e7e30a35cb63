"""Compile games before they are played: `python -m lmgym.tasks.textworld.prebuild --count 1000`."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Annotated

import typer
from rich.progress import track

from lmgym.env.registry import build, find

Jobs = Annotated[int, typer.Option(help="processes; 0 for one a core")]


def prebuild(task: str, split: str, index: int) -> None:
    """Compile instance `index`, unless it is in the cache."""
    build(task, split=split).unwrapped.story(index)


def main(task: str = "textworld", split: str = "train", count: int = 1000, jobs: Jobs = 0) -> None:
    """Compile the first COUNT games of a split under the options of an id, on all cores."""
    indices = range(min(count, find(task).splits[split]))
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=fresh) as workers:
        made = workers.map(partial(prebuild, task, split), indices, chunksize=4)
        for _ in track(made, description=f"{task} {split}", total=len(indices)):
            pass


if __name__ == "__main__":
    typer.run(main)
