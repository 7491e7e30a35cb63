"""Learning curves of several algorithms from one start: which runs to make, making them, and what they came to.

A cell is (task, algorithm, seed). All algorithms of a (task, seed) begin with the same imitated policy and end when the
same number of action tokens was sampled. Runs are processes of one thread, several at a time; those that are finished
are not made again, those that were interrupted go on, and those of other arguments are refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.errors import RecipeError
from lmgym.train.folder import FACTS
from lmgym.train.folder import read as facts
from lmgym.train.log import read_metrics

ALL = ("bc", "filtered_bc", "mc", "ilql", "archer", "refuel", "ppo", "grpo", "rloo")
FEW = ("bc", "filtered_bc", "ppo", "grpo", "rloo")
AXES = {"tokens": "action tokens sampled or shown", "steps": "environment steps", "seconds": "seconds of one core"}
RATES = (0.3, 1.0, 3.0)  # factors of an algorithm's own learning rate that are tried
TRIAL_SEED = 1000  # no seed that is reported; trials are judged on instances of the training split
REPORTS = "reports.json"  # of a run that is finished
MACHINE = ("dtype", "threads")
RL = ("--warmup", "0", "--steps", "1000000")  # the tokens end a run
GAIN = 150  # times `lr`: the rate of the last norm's gain, which AdamW's even steps at `lr` would hardly move
GAINED = ("filtered_bc", "archer", "refuel", "ppo", "grpo", "rloo")  # which train the policy on what it plays
OWN = {
    # the same optimiser and loss as filtered BC, whose question is what to imitate
    "bc": ("--steps", "1000000", "--optimiser", "adamw", "--observation-weight", "0", "--final-lr", "1"),
    "ppo": (*RL, "--critic-steps", "1"),  # of which five are as many as all others, where answers are long
    "mc": ("--warmup", "0", "--demonstrated", "64", "--sampled", "1000000", "--steps", "80"),
    "ilql": ("--warmup", "0", "--demonstrated", "64", "--sampled", "1000000", "--steps", "80"),
}


@dataclass(frozen=True, kw_only=True)
class Course:
    """How a task is learned: the same for all algorithms."""

    task: str
    algorithms: Sequence[str]
    model: str = "tiny"
    warmup: int  # steps of imitation before the curves begin
    tokens: int  # of actions, at which every run ends
    evaluations: int = 6  # on the way
    episodes: int = 100  # of an evaluation
    train_instances: int | None = None  # of the split, that all of them play; None: every one
    rates_of: str | None = None  # the task whose trials choose the learning rates; None: this one's


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run."""

    course: Course
    algorithm: str
    seed: int
    rate: float = 1.0  # factor of the algorithm's own learning rate

    @property
    def name(self) -> str:
        """Folder of the run."""
        return f"{self.course.task}-{self.algorithm}-{self.rate:g}-{self.seed}"

    @property
    def start(self) -> str:
        """Folder of the run that it begins with."""
        return f"{self.course.task}-start-{self.seed}"


@dataclass(frozen=True)
class RunSettings:
    """What run.json says of a run; of what it does not name, the machine decides."""

    arguments: Mapping[str, Any]
    defaults: Mapping[str, Any]  # of arguments, one of which an older run.json may not have


Settings = Callable[[Sequence[str]], RunSettings]  # from the words of `lmgym train`


@dataclass(frozen=True)
class TrainingCurve:
    """What one run came to; the points of an evaluation each."""

    cell: Cell
    success: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def words(cell: Cell, folder: Path, default_rate: float) -> list[str]:
    """The arguments of `lmgym train` for a cell."""
    course, trial = cell.course, cell.seed == TRIAL_SEED
    every = max(1, course.tokens // (3 if trial else course.evaluations))
    rate = cell.rate * default_rate
    return [
        *("train", cell.algorithm, course.task, "--model", f"hf:{folder / cell.start / 'policy'}"),
        *("--seed", str(cell.seed), "--threads", "1", "--out", str(folder / cell.name)),
        *("--tokens", str(course.tokens), "--evaluate-every", str(every), "--evaluate", str(course.episodes)),
        *("--lr", repr(rate), *OWN.get(cell.algorithm, RL)),
        *(["--final-norm-lr", repr(GAIN * rate)] if cell.algorithm in GAINED else []),
        *(["--evaluate-split", "train"] if trial else []),
        *_of_the_split(course),
    ]


def start_words(cell: Cell, folder: Path) -> list[str]:
    """The arguments of `lmgym train` for the run that a cell begins with."""
    course = cell.course
    return [
        *("train", "bc", course.task, "--model", course.model, "--seed", str(cell.seed), "--threads", "1"),
        *("--out", str(folder / cell.start), "--steps", str(course.warmup), "--evaluate", str(course.episodes)),
        *_of_the_split(course),
    ]


def _of_the_split(course: Course) -> list[str]:
    return [] if course.train_instances is None else ["--train-instances", str(course.train_instances)]


def check(out: Path, arguments: Sequence[str], settings: Settings) -> None:
    """Raises RecipeError where a run in `out` is not that of these words; it may have been made from another place."""
    if not any((out / name).exists() for name in (FACTS, REPORTS)):
        return
    asked, made = settings(arguments), facts(out)["arguments"]
    for name in dict.fromkeys([*asked.arguments, *made]):
        wanted, was = asked.arguments.get(name), made.get(name, asked.defaults.get(name))
        within = wanted.partition(f"{out.parent}/")[2] if isinstance(wanted, str) else ""
        same = was == wanted or bool(within and str(was).endswith(f"/{within}"))
        if not same and (name in asked.arguments or name not in MACHINE):
            raise RecipeError(f"{out} has a run with {name}={was!r}, not {wanted!r}: take another folder by --out")


def commits(runs: Iterable[Path]) -> str:
    """The commits that runs were made by, as their run.json has them, in the order in which they come."""
    found = [facts(run).get("commit") or "unknown" for run in runs]
    short = dict.fromkeys(each[:7] + "+" * each.endswith("+") for each in found)
    return f"commit{'s' * (len(short) > 1)} {', '.join(short)}"


def make(folder: Path, arguments: Sequence[str], out: Path) -> None:
    """Make a run, or go on with it; nothing where it is finished. Raises RecipeError with its last line if it fails."""
    if (out / REPORTS).exists():
        return
    resume = ["--resume"] if (out / FACTS).exists() else []
    call(folder, [*arguments, *resume], out.name)


def call(folder: Path, arguments: Sequence[str], name: str) -> None:
    """Run `lmgym` in a process of its own, with its words in `folder`. Raises RecipeError if it fails."""
    folder.mkdir(parents=True, exist_ok=True)
    program, one = [sys.executable, "-c", "from lmgym.cli import main; main()"], {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / f"{name}.log").open("ab") as log:
        done = subprocess.run([*program, *arguments], stdout=log, stderr=subprocess.STDOUT, check=False, env=one)
    if done.returncode:
        lines = (folder / f"{name}.log").read_text().strip().splitlines()
        raise RecipeError(f"{name} ended with {done.returncode}: {lines[-1] if lines else 'no word'}")


def make_all(
    cells: Sequence[Cell],
    folder: Path,
    *,
    rates: Mapping[str, float],
    at_once: int,
    tell: Callable[[str], None],
    settings: Settings,
) -> None:
    """Make the starts of all cells, then the cells; `rates` are the algorithms' own learning rates.

    Raises RecipeError before any is made where one of them has run otherwise.
    """
    starts = {cell.start: start_words(cell, folder) for cell in cells}
    own = {cell.name: words(cell, folder, rates[cell.algorithm]) for cell in cells}
    for name, said in {**starts, **own}.items():
        check(folder / name, said, settings)
    with ThreadPoolExecutor(at_once) as pool:

        def one(arguments: Sequence[str], name: str) -> None:
            make(folder, arguments, folder / name)
            tell(name)

        for each in (starts, own):
            for made in [pool.submit(one, said, name) for name, said in each.items()]:
                made.result()


def read(cell: Cell, folder: Path) -> TrainingCurve:
    """The curve of a finished run; its first point is the start's evaluation."""
    start = read_metrics(folder / cell.start)
    curve = TrainingCurve(
        cell, [[row for row in start if "evaluated_success" in row][-1]["evaluated_success"]], [0], [0], [0]
    )
    seconds = 0.0
    for row in read_metrics(folder / cell.name):
        if "evaluated_success" in row:
            if row["action_tokens"]:  # before that it is the start's
                curve.success.append(row["evaluated_success"])
                curve.tokens.append(row["action_tokens"])
                curve.steps.append(row["environment_steps"])
                curve.seconds.append(seconds)
            continue
        seconds += sum(value for name, value in row.items() if name.startswith("seconds_"))
    return curve


def interval(values: Sequence[float], *, seed: int = 0, draws: int = 4000) -> tuple[float, float, float]:
    """Mean over seeds with the 95 % percentile bootstrap over them; with so few it is a rough one."""
    sample = np.asarray(values, np.float64)
    means = sample[np.random.default_rng(seed).integers(len(sample), size=(draws, len(sample)))].mean(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(sample.mean()), float(low), float(high)


def table(curves: Iterable[TrainingCurve]) -> str:
    """Markdown: for each task and algorithm the success at the start and at the end, over seeds."""
    rows = ["| task | algorithm | seeds | rate | start | end | tokens | environment steps | seconds |"]
    rows.append("|---|---|---|---|---|---|---|---|---|")
    groups: dict[tuple[str, str], list[TrainingCurve]] = {}
    for curve in curves:
        groups.setdefault((curve.cell.course.task, curve.cell.algorithm), []).append(curve)
    for (task, algorithm), found in groups.items():
        start, end = (interval([100 * curve.success[at] for curve in found]) for at in (0, -1))
        spent = [np.mean([getattr(curve, axis)[-1] for curve in found]) for axis in AXES]
        rows.append(
            f"| {task} | {algorithm} | {len(found)} | {found[0].cell.rate:g} | {_of(start)} | {_of(end)} | "
            + " | ".join(f"{value:,.0f}" for value in spent)
            + " |"
        )
    return "\n".join(rows)


def _of(found: tuple[float, float, float]) -> str:
    return f"{found[0]:.1f} % [{found[1]:.1f}, {found[2]:.1f}]"


def draw(curves: Sequence[TrainingCurve], path: Path) -> None:
    """A picture: a row a task, a column an axis; the mean over seeds, and each seed as a pale line."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(curve.cell.course.task for curve in curves))
    colours = {name: colormaps["tab10"](number) for number, name in enumerate(ALL)}
    figure = Figure(figsize=(14, 3.6 * len(tasks)), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels: Any = figure.subplots(len(tasks), len(AXES), squeeze=False)
    for task, row in zip(tasks, panels, strict=True):
        for (axis, label), axes in zip(AXES.items(), row, strict=True):
            for name in dict.fromkeys(curve.cell.algorithm for curve in curves):
                found = [c for c in curves if c.cell.course.task == task and c.cell.algorithm == name]
                _line(axes, [(getattr(curve, axis), curve.success) for curve in found], name, colours[name])
            axes.set(title=task, xlabel=label, ylabel="success on the test split", ylim=(-0.02, 1.02))
    panels[0][-1].legend(fontsize=8)
    partial = path.with_name(f".{path.name}")
    canvas.print_png(partial)  # type: ignore[no-untyped-call]
    partial.replace(path)


def _line(axes: Any, runs: Sequence[tuple[list[float], list[float]]], name: str, colour: Any) -> None:
    """The mean of `runs` at common places as far as all of them go, over each of them."""
    if not runs:
        return
    for places, values in runs:
        axes.plot(places, values, color=colour, alpha=0.25, linewidth=0.8)
    grid = np.linspace(0, min(places[-1] for places, _ in runs), 50)
    mean = np.mean([np.interp(grid, places, values) for places, values in runs], axis=0)
    axes.plot(grid, mean, color=colour, linewidth=1.8, label=name)


def best_rates(trials: Iterable[TrainingCurve]) -> dict[str, float]:
    """For each `task-algorithm` the factor of the trial that ended best; of equals the one nearest to 1."""
    found: dict[str, list[TrainingCurve]] = {}
    for curve in trials:
        found.setdefault(f"{curve.cell.course.task}-{curve.cell.algorithm}", []).append(curve)
    return {
        name: min(curves, key=lambda curve: (-curve.success[-1], abs(np.log(curve.cell.rate)))).cell.rate
        for name, curves in found.items()
    }


def load_rates(path: Path) -> dict[str, float]:
    """What trials chose, as `best_rates` gave it; empty where there were none."""
    return json.loads(path.read_text()) if path.exists() else {}
