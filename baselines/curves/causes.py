"""Causes of flat curves: learners of the night's guess_number with one thing changed, beside the unchanged learner.

A change and the unchanged learner begin with the same start, end after as many action tokens, and play the same test
games at temperatures 1 and 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from lmgym.baselines.curves import night
from lmgym.baselines.curves.comparison import Settings, in_parallel

TASK = next(task for task in night.TASKS if task.name == "guess_number")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of a learner."""

    name: str
    learner: str
    words: Sequence[str]  # arguments of the learner, which replace earlier ones


CHANGES = (
    Change(name="eps", learner="grpo", words=("--adam-eps", "1e-8")),
    Change(name="positive", learner="grpo", words=("--negative-advantage-weight", "0")),
    Change(name="rate", learner="grpo", words=("--lr", "1e-4")),
    Change(name="batch", learner="grpo", words=("--instances", "16")),
    Change(name="unlimited", learner="ppo", words=("--no-limit-ends",)),
    Change(name="discounted", learner="ppo", words=("--no-limit-ends", "--gamma", "0.99")),
)


def make_all(
    changes: Sequence[Change],
    seeds: Sequence[int],
    folder: Path,
    *,
    at_once: int,
    tell: Callable[[str], None],
    settings: Settings,
) -> None:
    """Make the missing starts, unchanged runs, changed runs and evaluations, several in parallel.

    Raise RecipeError before the first run if a folder has a run with other arguments.
    """
    learners = list(dict.fromkeys(change.learner for change in changes))
    night.make_all([TASK], learners, seeds, folder, at_once=at_once, tell=tell, settings=settings)
    pairs = [(change, seed) for seed, change in product(seeds, changes)]
    lines = [(run_of(*pair, folder), words(*pair, folder)) for pair in pairs]
    work = [
        partial(night.train, TASK, seed, out, line, tell) for (_, seed), (out, line) in zip(pairs, lines, strict=True)
    ]
    in_parallel([work], lines, at_once=at_once, settings=settings)


def run_of(change: Change, seed: int, folder: Path) -> Path:
    """Return the folder of a changed run."""
    return folder / f"{TASK.name}-{change.learner}-{change.name}-{seed}"


def words(change: Change, seed: int, folder: Path) -> list[str]:
    """Return the arguments of `lmgym train` for a changed run."""
    unchanged = night.words(TASK, seed, change.learner, folder)
    return [*unchanged, *change.words, "--out", str(run_of(change, seed, folder))]


def runs(changes: Sequence[Change], seeds: Sequence[int], folder: Path) -> list[Path]:
    """Return the folders of all runs that the table compares."""
    learners = list(dict.fromkeys(change.learner for change in changes))
    changed = [run_of(change, seed, folder) for change, seed in product(changes, seeds)]
    return [*night.runs([TASK], learners, seeds, folder), *changed]


def table(changes: Sequence[Change], seeds: Sequence[int], folder: Path) -> str:
    """Return a Markdown table of success without and with each change, and the paired difference in points."""
    rows = [
        "| change | of | temperature | success | difference | each seed |",
        "|---|---|---|---|---|---|",
    ]
    for change, temperature in product(changes, night.TEMPERATURES):
        without = [night.run_of(TASK, seed, change.learner, folder) for seed in seeds]
        cells = night.gain_cells(without, [run_of(change, seed, folder) for seed in seeds], temperature)
        rows.append(f"| `{' '.join(change.words)}` | {change.learner} | {temperature} | {cells} |")
    return "\n".join(rows)
