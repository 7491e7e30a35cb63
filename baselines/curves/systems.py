"""Experiments of published systems: each recipe against its own ablation, one row of a table a system.

An experiment is the `EXPERIMENT` of an algorithm's file, a Direction whose first arm is the system and whose second is
the ablation. Both begin with the same imitated policy, unless an arm has a start of its own, end at the same number of
sampled action tokens and have no tuning trial. Rows of systems that are not run keep what the table said before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lmgym.baselines.curves import directions
from lmgym.baselines.curves.comparison import REPORTS, commits
from lmgym.baselines.curves.directions import Direction
from lmgym.errors import RecipeError
from lmgym.evaluation.stats import Interval, student, t_quantile
from lmgym.train import algorithms
from lmgym.train.log import read_metrics

COLUMNS = (
    *("system", "the paper's claim", "compared", "task", "seeds", "start", "system", "ablation", "difference"),
    *("verdict", "tokens", "seconds", "command", "commit"),
)
NOT_RUN, UNDECIDED = "not run", "not told apart"
MOST_SEEDS = 20
DIFFERENCE = re.compile(r"(\S+) \[(\S+), (\S+)\]")


def experiments(names: Sequence[str] = ()) -> dict[str, Direction]:
    """Return the experiments of these algorithms, or of all that have one; a name may be the path of a .py file."""
    everything = {name: getattr(algorithms.load(name), "EXPERIMENT", None) for name in names or algorithms.algorithms()}
    for name, direction in everything.items():
        if names and direction is None:
            raise RecipeError(f"{name} has no EXPERIMENT; baselines/recipes/arpo.py has one")
    return {each.name: each for each in everything.values() if each is not None}


def trial(direction: Direction) -> Direction:
    """Return the experiment with budgets that only show that its runs start."""
    return replace(direction, warmup=1, tokens=100, episodes=4)


def difference(
    direction: Direction, seeds: Sequence[int], folder: Path
) -> tuple[list[list[float]], list[list[float]], Interval]:
    """Return success of the first two arms by seed, at the start and at the end, and the paired difference, in points.

    The interval is Student's over seeds.
    """
    first, second = ([directions.read(direction, arm, seed, folder) for seed in seeds] for arm in direction.arms[:2])
    starts, ends = ([[100 * line.success[at] for line in lines] for lines in (first, second)] for at in (0, -1))
    return starts, ends, student([a - b for a, b in zip(*ends, strict=True)])


def verdict(gap: Interval) -> str:
    """Return what the interval of system less ablation says about the claim."""
    if gap.low > 0:
        return "as the paper says"
    return "against" if gap.high < 0 else UNDECIDED


def row(direction: Direction, seeds: Sequence[int], folder: Path) -> str | None:
    """Return the system's row of the table; None unless all its runs are finished."""
    runs = [run for seed in seeds for run in directions.runs(direction, seed, folder)]
    if not all((run / REPORTS).exists() for run in runs):
        return None
    starts, ends, gap = difference(direction, seeds, folder)
    own = starts if len({tuple(arm.start) for arm in direction.arms[:2]}) > 1 else starts[:1]
    interval = "" if math.isnan(gap.low) else f" [{gap.low:+.1f}, {gap.high:+.1f}]"
    lines = [line for run in runs for line in read_metrics(run)]
    seconds = sum(value for line in lines for name, value in line.items() if name.startswith("seconds_"))
    cells = (
        *described(direction),
        str(len(seeds)),
        " and ".join(f"{np.mean(values):.1f} %" for values in own),
        *(f"{np.mean(values):.1f} %" for values in ends),
        f"{gap.mean:+.1f}{interval}",
        verdict(gap),
        f"{direction.tokens:,}" if direction.tokens else "by steps",
        f"{seconds:,.0f}",
        f"`make systems ARGS={direction.name}`",
        commits(runs).removeprefix("commits ").removeprefix("commit "),
    )
    return f"| {' | '.join(cells)} |"


def described(direction: Direction) -> tuple[str, ...]:
    """Return the cells of a row that no run changes: name, claim, arms and task."""
    compared = " against ".join(arm.name for arm in direction.arms[:2])
    options = f" ({', '.join(direction.options)})" if direction.options else ""
    return direction.name, direction.claim, compared, direction.task + options


def table(everything: Mapping[str, Direction], rows: Mapping[str, str], previous: str = "") -> str:
    """Return the table: the new `rows`, those of the `previous` table, and for the rest that they are not run."""
    ran = [line for line in previous.splitlines() if line.count("|") > len(COLUMNS) and f"| {NOT_RUN} |" not in line]
    before = {line.split("|")[1].strip(): line for line in ran}
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for name, direction in sorted(everything.items()):
        empty = [*described(direction), *("",) * 5, NOT_RUN, *("",) * 2, f"`make systems ARGS={name}`", ""]
        lines.append(rows.get(name) or before.get(name) or f"| {' | '.join(empty)} |")
    return "\n".join(lines)


def seeds_needed(rows: Sequence[str]) -> str:
    """Return how many seeds would tell the arms of undecided rows apart if mean and spread stayed as they are."""
    by_number: dict[str, list[str]] = {}
    for name, *cells in ([cell.strip() for cell in row.split("|")[1:]] for row in rows):
        match = DIFFERENCE.fullmatch(cells[7])
        if match is None or cells[8] != UNDECIDED:
            continue
        seeds, (mean, low, high) = int(cells[3]), map(float, match.groups())
        spread = (high - low) / 2 * math.sqrt(seeds) / t_quantile(seeds - 1)
        enough = (n for n in range(seeds + 1, MOST_SEEDS + 1) if t_quantile(n - 1) * spread / math.sqrt(n) < abs(mean))
        by_number.setdefault(str(next(enough, f"more than {MOST_SEEDS}")), []).append(name)
    needed = sorted(by_number.items(), key=lambda item: (len(item[0]), item[0]))
    text = "; ".join(f"{number} for {', '.join(names)}" for number, names in needed)
    return f"Seeds that would tell the arms apart, if mean and spread stayed as they are: {text or 'none undecided'}."
