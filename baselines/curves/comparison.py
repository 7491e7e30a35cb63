"""Learning curves of several algorithms from one start: plan the runs, make them, and collect their results.

A cell is (task, algorithm, seed). All algorithms of a (task, seed) begin with the same imitated policy and end at the
same number of sampled action tokens. Runs are single-threaded processes, several at a time. Finished runs are reused,
interrupted runs are resumed, and runs with other arguments in the same folder raise an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.errors import RecipeError
from lmgym.train import presets
from lmgym.train.folder import FACTS
from lmgym.train.folder import read as facts
from lmgym.train.log import read_metrics

ALL = ("bc", "filtered_bc", "mc", "ilql", "archer", "refuel", "ppo", "grpo", "rloo")
FEW = ("bc", "filtered_bc", "ppo", "grpo", "rloo")
AXES = {"tokens": "action tokens sampled or shown", "steps": "environment steps", "seconds": "seconds of one core"}
RATES = (0.3, 1.0, 3.0)  # factors of an algorithm's own learning rate to try
TRIAL_SEED = 1000  # never reported; trials are evaluated on instances of the training split
REPORTS = "reports.json"  # written when a run is finished
REPORT = "report.json"  # of `lmgym eval`
MACHINE = ("dtype", "threads")
RL = ("--warmup", "0", "--steps", "1000000")  # `--tokens` ends a run
GAIN = 150  # learning rate of the final norm's gain, as a multiple of `lr`: AdamW at `lr` hardly moves it
# algorithms that train the policy on its own episodes
GAINED = ("filtered_bc", "archer", "refuel", "ppo", "grpo", "rloo")
VALUES = ("--warmup", "0", "--demonstrated", "64", "--sampled", "1000000", "--steps", "80", "--beta", "4")
OWN = {
    # same optimiser and loss as filtered BC, so that only the data differs
    "bc": ("--steps", "1000000", "--optimiser", "adamw", "--observation-weight", "0", "--final-lr", "1"),
    # the default of 5 would use as many tokens as PPO itself where answers are long
    "ppo": (*RL, "--critic-steps", "1"),
    "mc": VALUES,
    "ilql": (*VALUES, "--tau-target", "0.02"),
}


@dataclass(frozen=True, kw_only=True)
class Course:
    """Settings of the runs on a task, the same for all algorithms."""

    task: str
    algorithms: Sequence[str]
    model: str = "tiny"
    warmup: int  # steps of imitation before the curves start
    tokens: int  # action tokens at which every run ends
    evaluations: int = 6  # during a run
    episodes: int = 100  # per evaluation
    train_instances: int | None = None  # use only the first instances of the split; None: all
    rates_of: str | None = None  # task whose trials choose the learning rates; None: this one


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run."""

    course: Course
    algorithm: str
    seed: int
    rate: float = 1.0  # factor of the algorithm's own learning rate

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return f"{self.course.task}-{self.algorithm}-{self.rate:g}-{self.seed}"

    @property
    def start(self) -> str:
        """Name of the folder of the start run."""
        return f"{self.course.task}-start-{self.seed}"


@dataclass(frozen=True)
class RunSettings:
    """Arguments of a run as run.json records them; missing ones depend on the machine."""

    arguments: Mapping[str, Any]
    defaults: Mapping[str, Any]  # of arguments that an older run.json may lack


Settings = Callable[[Sequence[str]], RunSettings]  # from a command line of `lmgym train`


@dataclass(frozen=True)
class TrainingCurve:
    """Results of one run, with one entry for each evaluation."""

    cell: Cell
    success: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def words(cell: Cell, folder: Path, default_rate: float) -> list[str]:
    """Return the arguments of `lmgym train` for a cell."""
    course, trial = cell.course, cell.seed == TRIAL_SEED
    interval_tokens = max(1, course.tokens // (3 if trial else course.evaluations))
    rate = cell.rate * default_rate
    return [
        *("train", cell.algorithm, course.task, "--model", f"hf:{folder / cell.start / 'policy'}"),
        *("--seed", str(cell.seed), "--threads", "1", "--out", str(folder / cell.name)),
        *("--tokens", str(course.tokens), "--evaluate-every", str(interval_tokens), "--evaluate", str(course.episodes)),
        *("--lr", repr(rate), *OWN.get(cell.algorithm, RL)),
        *(["--final-norm-lr", repr(GAIN * rate)] if cell.algorithm in GAINED else []),
        *(["--evaluate-split", "train"] if trial else []),
        *_of_the_split(course),
    ]


def start_words(cell: Cell, folder: Path) -> list[str]:
    """Return the arguments of `lmgym train` for the start run of a cell."""
    course = cell.course
    return [
        *("train", "bc", course.task, "--model", course.model, "--seed", str(cell.seed), "--threads", "1"),
        *("--out", str(folder / cell.start), "--steps", str(course.warmup), "--evaluate", str(course.episodes)),
        *_of_the_split(course),
    ]


def _of_the_split(course: Course) -> list[str]:
    return [] if course.train_instances is None else ["--train-instances", str(course.train_instances)]


def check(out: Path, arguments: Sequence[str], settings: Settings) -> None:
    """Raise RecipeError if `out` has a run with other arguments; paths may differ in their parent folders."""
    if not any((out / name).exists() for name in (FACTS, REPORTS)):
        return
    request, previous = settings(arguments), facts(out)["arguments"]
    for name in dict.fromkeys([*request.arguments, *previous]):
        wanted, was = request.arguments.get(name), previous.get(name, request.defaults.get(name))
        within = wanted.partition(f"{out.parent}/")[2] if isinstance(wanted, str) else ""
        same = was == wanted or bool(within and str(was).endswith(f"/{within}"))
        if not same and (name in request.arguments or name not in MACHINE):
            raise RecipeError(f"{out} has a run with {name}={was!r}, not {wanted!r}: choose another folder by --out")


def commits(runs: Iterable[Path]) -> str:
    """Return the commits that the runs were made with, from their run.json, in order."""
    hashes = [facts(run).get("commit") or "unknown" for run in runs]
    short = dict.fromkeys(each[:7] + "+" * each.endswith("+") for each in hashes)
    return f"commit{'s' * (len(short) > 1)} {', '.join(short)}"


def make(folder: Path, arguments: Sequence[str], out: Path) -> None:
    """Make or resume a run unless it is finished; raise RecipeError with its last line if it fails."""
    if (out / REPORTS).exists():
        return
    resume = ["--resume"] if (out / FACTS).exists() else []
    call(folder, [*arguments, *resume], out.name)


def evaluate(folder: Path, arguments: Sequence[str], report: Path) -> None:
    """Make or resume the evaluation that writes `report` unless it is finished; raise RecipeError if it fails."""
    if report.exists():
        return
    resume = ["--resume"] if report.parent.exists() else []
    call(folder, [*arguments, *resume], report.parent.name)


def by_instance(report: Path, name: str) -> dict[int, float]:
    """Return the mean of an outcome's value, such as reward or success, at each instance, by its index."""
    values: dict[int, list[float]] = {}
    for outcome in json.loads(report.read_text())["outcomes"]:
        values.setdefault(outcome["index"], []).append(outcome[name])
    return {index: float(np.mean(values[index])) for index in sorted(values)}


def call(folder: Path, arguments: Sequence[str], name: str) -> None:
    """Run `lmgym` in a subprocess that logs to `folder`; raise RecipeError if it fails."""
    folder.mkdir(parents=True, exist_ok=True)
    program, one = [sys.executable, "-c", "from lmgym.cli import main; main()"], {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / f"{name}.log").open("ab") as log:
        done = subprocess.run([*program, *arguments], stdout=log, stderr=subprocess.STDOUT, check=False, env=one)
    if done.returncode:
        lines = (folder / f"{name}.log").read_text().strip().splitlines()
        raise RecipeError(f"{name} ended with {done.returncode}: {lines[-1] if lines else 'no output'}")


def make_all(
    cells: Sequence[Cell],
    folder: Path,
    *,
    rates: Mapping[str, float],
    at_once: int,
    tell: Callable[[str], None],
    settings: Settings,
) -> None:
    """Make the start runs of all cells, then the cells; `rates` are the algorithms' own learning rates.

    Raise RecipeError before the first run if a folder has a run with other arguments.
    """
    starts = {cell.start: start_words(cell, folder) for cell in cells}
    own = {cell.name: words(cell, folder, rates[cell.algorithm]) for cell in cells}

    def one(name: str, arguments: Sequence[str]) -> None:
        make(folder, arguments, folder / name)
        tell(name)

    lines = [(folder / name, line) for name, line in {**starts, **own}.items()]
    waves = [[partial(one, *item) for item in wave.items()] for wave in (starts, own)]
    in_parallel(waves, lines, at_once=at_once, settings=settings)


def in_parallel(
    waves: Iterable[Iterable[Callable[[], object]]],
    lines: Iterable[tuple[Path, Sequence[str]]],
    *,
    at_once: int,
    settings: Settings,
) -> None:
    """Do the work of each wave in turn, `at_once` at a time.

    Raise RecipeError before anything is done if a folder of `lines` has a run with other arguments.
    """
    for out, arguments in lines:
        check(out, arguments, settings)
    with ThreadPoolExecutor(at_once) as pool:
        for wave in waves:
            for future in [pool.submit(work) for work in wave]:
                future.result()


def read(cell: Cell, folder: Path) -> TrainingCurve:
    """Return the curve of a finished run; its first point is the evaluation of the start run."""
    start = read_metrics(folder / cell.start)
    curve = TrainingCurve(
        cell, [[row for row in start if "evaluated_success" in row][-1]["evaluated_success"]], [0], [0], [0]
    )
    seconds = 0.0
    for row in read_metrics(folder / cell.name):
        if "evaluated_success" in row:
            if row["action_tokens"]:  # the evaluation before training repeats that of the start run
                curve.success.append(row["evaluated_success"])
                curve.tokens.append(row["action_tokens"])
                curve.steps.append(row["environment_steps"])
                curve.seconds.append(seconds)
            continue
        seconds += sum(value for name, value in row.items() if name.startswith("seconds_"))
    return curve


def interval(values: Sequence[float], *, seed: int = 0, draws: int = 4000) -> tuple[float, float, float]:
    """Return the mean over seeds and its 95 % percentile bootstrap interval, which is rough for few seeds."""
    sample = np.asarray(values, np.float64)
    means = sample[np.random.default_rng(seed).integers(len(sample), size=(draws, len(sample)))].mean(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(sample.mean()), float(low), float(high)


def table(curves: Iterable[TrainingCurve]) -> str:
    """Return a Markdown table: success at start and end over seeds, for each task and algorithm."""
    rows = ["| task | algorithm | seeds | rate | start | end | tokens | environment steps | seconds |"]
    rows.append("|---|---|---|---|---|---|---|---|---|")
    groups: dict[tuple[str, str], list[TrainingCurve]] = {}
    for curve in curves:
        groups.setdefault((curve.cell.course.task, curve.cell.algorithm), []).append(curve)
    for (task, algorithm), runs in groups.items():
        start, end = (interval([100 * curve.success[at] for curve in runs]) for at in (0, -1))
        spent = [np.mean([getattr(curve, axis)[-1] for curve in runs]) for axis in AXES]
        rows.append(
            f"| {task} | {algorithm} | {len(runs)} | {runs[0].cell.rate:g} | {percent(start)} | {percent(end)} | "
            + " | ".join(f"{value:,.0f}" for value in spent)
            + " |"
        )
    return "\n".join(rows)


def percent(estimate: tuple[float, float, float]) -> str:
    """Return an estimate of `interval` as text."""
    return f"{estimate[0]:.1f} % [{estimate[1]:.1f}, {estimate[2]:.1f}]"


def draw(curves: Sequence[TrainingCurve], path: Path) -> None:
    """Draw a row per task and a column per axis: the mean over seeds, and each seed as a pale line."""
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
                group = [c for c in curves if c.cell.course.task == task and c.cell.algorithm == name]
                if not group:
                    continue
                for curve in group:
                    axes.plot(getattr(curve, axis), curve.success, color=colours[name], alpha=0.25, linewidth=0.8)
                grid = np.linspace(0, min(getattr(curve, axis)[-1] for curve in group), 50)  # as far as all go
                mean = np.mean([np.interp(grid, getattr(curve, axis), curve.success) for curve in group], axis=0)
                axes.plot(grid, mean, color=colours[name], linewidth=1.8, label=name)
            axes.set(title=task, xlabel=label, ylabel="success on the test split", ylim=(-0.02, 1.02))
    panels[0][-1].legend(fontsize=8)
    partial = path.with_name(f".{path.name}")
    canvas.print_png(partial)  # type: ignore[no-untyped-call]
    partial.replace(path)


def own_rates() -> dict[str, float]:
    """Return the learning rate that a factor of 1 stands for, by algorithm."""
    rates = {name: presets.table()[presets.SMALL][name].args["lr"] for name in ALL}
    return {**rates, "grpo": 1e-3, "bc": rates["filtered_bc"]}  # bc: the same optimiser


def best_rates(trials: Iterable[TrainingCurve]) -> dict[str, float]:
    """Return the factor of the best trial for each `task-algorithm`; ties go to the factor nearest to 1."""
    groups: dict[str, list[TrainingCurve]] = {}
    for curve in trials:
        groups.setdefault(f"{curve.cell.course.task}-{curve.cell.algorithm}", []).append(curve)
    return {
        name: min(curves, key=lambda curve: (-curve.success[-1], abs(np.log(curve.cell.rate)))).cell.rate
        for name, curves in groups.items()
    }


def load_rates(path: Path) -> dict[str, float]:
    """Return the factors that `best_rates` saved; empty if there is no file."""
    return json.loads(path.read_text()) if path.exists() else {}
