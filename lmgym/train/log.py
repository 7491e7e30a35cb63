"""The log of a run: a line of figures a step, TensorBoard, and a progress bar."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lmgym.errors import RecipeError

Figures = Mapping[str, float | int | str]
METRICS = "metrics.jsonl"


class Stopwatch:
    """Adds up the seconds of named parts."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Count the time inside as `part`'s."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - begun


class Log:
    """Writes what happened. `offset` is the length in bytes of the lines that a checkpoint vouches for."""

    def __init__(self, folder: Path, *, offset: int = 0, step: int = 0, quiet: bool = False) -> None:
        self.folder = folder
        with writing(folder / METRICS):
            self._file: IO[bytes] = (folder / METRICS).open("ab")
            if self._file.tell() < offset:
                self._file.close()
                raise RecipeError(f"{folder / METRICS} is shorter than its checkpoint says; restore it from a copy")
            self._file.truncate(offset)
        self._board = _board(folder, step)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
            disable=quiet,
        )
        self._stages = {"": self._bar.add_task("", total=1.0, visible=False, figures="")}
        self._bar.start()

    @property
    def offset(self) -> int:
        """Bytes written so far."""
        return self._file.tell()

    def write(self, figures: Figures, *, step: int) -> None:
        """Write one line; `step` counts the steps of all stages."""
        with writing(self.folder / METRICS):
            self._file.write(json.dumps(dict(figures)).encode() + b"\n")
            self._file.flush()
        if self._board is not None:
            stage = figures.get("stage", "run")
            for name, value in figures.items():
                if isinstance(value, float | int):
                    self._board.add_scalar(f"{stage}/{name}", value, step)

    def say(self, words: str) -> None:
        """One line on the terminal."""
        if not self._bar.disable:
            self._bar.console.print(words, markup=False, soft_wrap=True)

    def show(self, stage: str, share: float, words: str) -> None:
        """Move the bar of a stage to `share` and show some `words` beside it."""
        if stage not in self._stages:
            self._stages[stage] = self._bar.add_task(stage, total=1.0, figures="")
        self._bar.update(self._stages[stage], completed=share, figures=words)

    def close(self) -> None:
        """Flush and release everything."""
        self._bar.stop()
        self._file.close()
        if self._board is not None:
            self._board.close()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a full disk or a folder that cannot be written into one clear line."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise RecipeError(f"cannot write {path}: {why}; make room and go on with --resume, or use --out") from error


def replace_file(path: Path, content: str) -> None:
    """Write a whole file, or leave the one that was there."""
    partial = path.with_name(f"{path.name}.partial")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's log."""
    return [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]


def _board(folder: Path, step: int) -> Any:
    """TensorBoard's writer, which drops what it had of later steps; None where it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    with writing(folder / "tensorboard"):
        return SummaryWriter(str(folder / "tensorboard"), purge_step=step)
