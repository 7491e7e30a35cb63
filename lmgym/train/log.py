"""The log of a run: a line of figures per step, TensorBoard, and a progress bar."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from lmgym.errors import RecipeError

Figures = Mapping[str, float | int | str]
METRICS = "metrics.jsonl"
PLAIN_SECONDS = 30.0  # between lines of progress where the output is no terminal


class Stopwatch:
    """Adds up the seconds of named parts."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Add the time inside the block to `part`."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - begun


class Log:
    """Writer of metrics and progress; `offset` is the length in bytes of the metrics covered by the checkpoint."""

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
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
            disable=quiet,
        )
        self._stages = {"": self._bar.add_task("", total=1.0, visible=False, figures="")}
        self._plain = not (quiet or self._bar.console.is_terminal)
        self._state = ("", 0.0, "", time.monotonic(), 0.0)  # stage, share, figures; time and share where it began
        self._closed = threading.Event()
        if self._plain:
            self._bar.disable = True
            threading.Thread(target=self._report, daemon=True).start()
        self._quiet = quiet
        self._bar.start()

    @property
    def offset(self) -> int:
        """Number of bytes written so far."""
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
        """Print one line."""
        if not self._quiet:
            self._bar.console.print(words, markup=False, soft_wrap=True)

    def show(self, stage: str, share: float, words: str) -> None:
        """Move the progress bar of a stage to `share` and show `words` beside it."""
        stage_before, *_, begun, first = self._state
        if stage != stage_before:
            begun, first = time.monotonic(), share  # a resumed stage begins where it was left
        self._state = (stage, share, words, begun, first)
        if self._plain and stage != stage_before:
            self.say(self._line())
        if stage not in self._stages:
            self._stages[stage] = self._bar.add_task(stage, total=1.0, figures="")
        self._bar.update(self._stages[stage], completed=share, figures=words)

    def _report(self) -> None:
        """Print a line of progress every 30 seconds until the log is closed."""
        while not self._closed.wait(PLAIN_SECONDS):
            if self._state[0]:
                self.say(self._line())

    def _line(self) -> str:
        """Return the progress of the stage as plain text."""
        stage, share, words, begun, first = self._state
        seconds = time.monotonic() - begun
        left = f", {seconds * (1 - share) / (share - first):.0f} s left" if first < share < 1 else ""
        return f"{stage}: {share:.0%}, {seconds:.0f} s{left}  {words}".rstrip()

    def close(self) -> None:
        """Flush and release everything."""
        self._closed.set()
        self._bar.stop()
        self._file.close()
        if self._board is not None:
            self._board.close()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise RecipeError with a one-line message for errors of writing, such as a full disk."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise RecipeError(f"cannot write {path}: {why}; make room and continue with --resume, or use --out") from error


def replace_file(path: Path, content: str) -> None:
    """Replace a file atomically."""
    partial = path.with_name(f"{path.name}.partial")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's metrics."""
    return [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]


def _board(folder: Path, step: int) -> Any:
    """Return a TensorBoard writer that drops events of later steps; None if TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    with writing(folder / "tensorboard"):
        return SummaryWriter(str(folder / "tensorboard"), purge_step=step)
