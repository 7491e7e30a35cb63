"""`lmgym curves`: learning curves of the baselines, from the same start to the same number of tokens."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from lmgym.cli.options import between
from lmgym.cli.train import settings
from lmgym.errors import RecipeError

if TYPE_CHECKING:
    from lmgym.baselines.curves.comparison import Cell, Course, TrainingCurve
    from lmgym.baselines.curves.directions import Direction
    from lmgym.baselines.curves.lmrl import Benchmark
    from lmgym.baselines.curves.night import NightTask

START, END = "<!-- curves: made by `make curves` -->", "<!-- /curves -->"
PAPER = "<!-- lmrl: made by `make curves SIZE=lmrl` -->", "<!-- /lmrl -->"
GAINS = "<!-- night: made by `make curves SIZE=night` -->", "<!-- /night -->"
EPISODES = "<!-- episodes: made by `make curves SIZE=episodes` -->", "<!-- /episodes -->"
CHANGES = "<!-- causes: made by `make curves SIZE=causes` -->", "<!-- /causes -->"
WAYS = "<!-- directions: made by `make curves SIZE=directions` -->", "<!-- /directions -->"
SEEDS = range(3)  # of small and directions
Experiment = TypeVar("Experiment", "Direction", "Benchmark", "NightTask")


def curves(
    size: Annotated[
        str, typer.Option(help="small: all baselines, an hour or two; night; episodes; causes; directions; lmrl.")
    ] = "small",
    out: Annotated[Path, typer.Option(help="Folder of the runs; what is finished stays.")] = Path("runs/curves"),
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    algorithm: Annotated[list[str] | None, typer.Option(help="Only this algorithm; may be repeated.")] = None,
    at_once: Annotated[int, typer.Option(min=1, help="Runs at a time, a thread each.")] = 2,
    tune: Annotated[bool, typer.Option("--tune", help="Try learning rates first, on another seed.")] = False,
    write: Annotated[Path | None, typer.Option(help="README between whose markers the table goes.")] = None,
    part: Annotated[str | None, typer.Option(help="Name in the markers and picture of a table of its own.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds, for lmrl, night, episodes and causes.")] = 3,
) -> None:
    """Make the runs, a table with intervals over seeds, and a picture."""
    from lmgym.baselines.curves import comparison

    console = Console(soft_wrap=True)
    if size in ("directions", "lmrl", "night", "episodes", "causes"):
        if tune or part or (algorithm and size not in ("night", "episodes")):
            raise RecipeError(f"{size} has arms, rates and a table of its own: no --tune, --algorithm or --part")
        if size in ("night", "episodes"):
            _night(size, console, out, task, algorithm, at_once=at_once, write=write, seeds=range(seeds))
        elif size == "causes":
            _causes(console, out, task, at_once=at_once, write=write, seeds=range(seeds))
        elif size == "lmrl":
            _lmrl(console, out, task, at_once=at_once, write=write, seeds=range(seeds))
        else:
            _directions(console, out, task, at_once=at_once, write=write)
        return
    if size != "small":
        raise RecipeError(f"--size is small, night, episodes, causes, directions or lmrl; got {size!r}")
    courses = [course for course in _courses() if not task or course.task in task]
    chosen = [(course, name) for course in courses for name in course.algorithms if not algorithm or name in algorithm]
    if not chosen:
        raise RecipeError(f"nothing to run: {size} has no such task with such an algorithm")
    make = partial(
        comparison.make_all,
        folder=out,
        rates=comparison.own_rates(),
        at_once=at_once,
        tell=teller(console),
        settings=settings,
    )
    if tune:
        _try(chosen, out, make)
    best = comparison.load_rates(out / "rates.json")
    cells = [
        comparison.Cell(course=course, algorithm=name, seed=seed, rate=best.get(_trial(course, name), 1.0))
        for course, name in chosen
        for seed in SEEDS
    ]
    make(cells)
    results = [comparison.read(cell, out) for cell in cells]
    picture = f"curves-{part}.png" if part else "curves.png"
    tuned = {course.task: course.rates_of or course.task for course, name in chosen if _trial(course, name) in best}
    commits = comparison.commits(out / name for cell in cells for name in (cell.start, cell.name))
    command = _command(size, task=task, algorithm=algorithm, part=[part] if part else [], tune=[""] if tune else [])
    how = f"Command: `{command}`, {commits}."
    comparison.draw(results, out / picture)
    if write is not None:
        comparison.draw(results, write.with_name(picture))
    first, last = (mark.replace("curves", f"curves of {part}", 1) if part else mark for mark in (START, END))
    _publish(console, [report(results, how, tuned=tuned, picture=picture)], write, (first, last))


def _trial(course: Course, algorithm: str) -> str:
    """Return the name in rates.json of the trials that choose an arm's rate."""
    return f"{course.rates_of or course.task}-{algorithm}"


def _command(size: str, **named: list[str] | None) -> str:
    """Return the command that makes the same table, by the values of its options; an empty one is of a switch."""
    words = [word for name, values in named.items() for value in values or [] for word in (f"--{name}", value) if word]
    return f"make curves SIZE={size}" + (f" ARGS={shlex.quote(shlex.join(words))}" if words else "")


def teller(console: Console) -> Callable[[str], None]:
    """Return what prints a name with the seconds since."""
    begun = time.perf_counter()
    return lambda name: console.print(f"{time.perf_counter() - begun:6.0f} s  {name}")


def _try(chosen: list[tuple[Course, str]], out: Path, make: Callable[[list[Cell]], None]) -> None:
    """Make the trials of learning rates, and keep which were best."""
    from lmgym.baselines.curves import comparison

    trials = [
        comparison.Cell(course=course, algorithm=name, seed=comparison.TRIAL_SEED, rate=rate)
        for course, name in chosen
        if course.rates_of is None
        for rate in comparison.RATES
    ]
    make(trials)
    best = comparison.best_rates(comparison.read(cell, out) for cell in trials)
    (out / "rates.json").write_text(json.dumps({**comparison.load_rates(out / "rates.json"), **best}, indent=1))


def _courses() -> list[Course]:
    from lmgym.baselines.curves.comparison import ALL, FEW, Course

    small = [
        Course(task="guess_number", algorithms=ALL, model="tiny:1m", warmup=12, tokens=30_000, episodes=256),
        Course(task="wordle", algorithms=ALL, model="tiny:1m", warmup=60, tokens=30_000, episodes=128),
        Course(task="textworld", algorithms=FEW, model="tiny:1m", warmup=60, tokens=40_000, train_instances=256),
        Course(task="alfworld", algorithms=FEW, model="tiny:1m", warmup=150, tokens=60_000, episodes=128),
    ]
    return [small[0], *(replace(course, rates_of=small[0].task) for course in small[1:])]


def report(results: list[TrainingCurve], how: str, *, tuned: Mapping[str, str], picture: str = "curves.png") -> str:
    """Return the table after `how` it was made; `tuned` are tasks that take rates of trials, and the tasks of these."""
    from lmgym.baselines.curves import comparison

    tasks = dict.fromkeys(one.cell.course.task for one in results)
    own_trials = f"{len(comparison.RATES)} learning rates with as many tokens"
    trials = {task: "none" if task not in tuned else own_trials if tuned[task] == task else "" for task in tasks}
    sources = "; ".join(f"{task}: {text or f'as chosen for {tuned[task]}'}" for task, text in trials.items())
    caption = (
        f"{how} Intervals: bootstrap over seeds; with three, the lowest and the highest. "
        f"Tuning trials of each arm, on another seed: {sources}; `rate` is the chosen factor of its own learning rate."
    )
    return f"{caption}\n\n{comparison.table(results)}\n\n![success over tokens, steps and seconds]({picture})"


def _directions(console: Console, out: Path, names: list[str] | None, *, at_once: int, write: Path | None) -> None:
    """Make the runs of directions, of which `names` are some or the tasks of some, and their tables."""
    from lmgym.baselines.curves import comparison, directions

    seeds = SEEDS
    chosen = experiments(directions.DIRECTIONS, names, "direction")
    errors = directions.make_all(chosen, seeds, out, at_once=at_once, tell=teller(console), settings=settings)
    if errors:
        raise RecipeError("; ".join(f"{name}: {error}" for name, error in errors.items()))
    tables = [
        directions.table(each, [directions.read(each, arm, seed, out) for arm in each.arms for seed in seeds])
        for each in chosen
    ]
    commits = comparison.commits(run for each in chosen for seed in seeds for run in directions.runs(each, seed, out))
    caption = (
        f"Command: `{_command('directions', task=names)}`, {commits}. Intervals: bootstrap over seeds; with three, the "
        "lowest and the highest. Arms have no tuning trials of their own. "
        "The level is the mean end of the arm that ended lower."
    )
    _publish(console, [caption, *tables], write, WAYS)


def _lmrl(
    console: Console, out: Path, names: list[str] | None, *, at_once: int, write: Path | None, seeds: range
) -> None:
    """Make the runs of LMRL-Gym's tables, of which `names` are some, and the tables."""
    from lmgym.baselines.curves import comparison, lmrl

    chosen = experiments(lmrl.BENCHMARKS, names, "table")
    lmrl.make_all(chosen, seeds, out, at_once=at_once, tell=teller(console), settings=settings)
    commits = comparison.commits(run for each in chosen for seed in seeds for run in lmrl.runs(each, seed, out))
    command = _command("lmrl", task=names, seeds=[str(len(seeds))])
    caption = f"Command: `{command}`, {commits}. Intervals: bootstrap over starts, 95 %."
    _publish(console, [caption, *(lmrl.table(each, seeds, out) for each in chosen)], write, PAPER)


def _night(
    size: str,
    console: Console,
    out: Path,
    names: list[str] | None,
    algorithms: list[str] | None,
    *,
    at_once: int,
    write: Path | None,
    seeds: range,
) -> None:
    """Make the runs of the night, of which `names` are tasks and `algorithms` learners, and the table of this size."""
    from lmgym.baselines.curves import comparison, night

    tasks = experiments(night.TASKS, names, "task")
    _refuse_unknown(algorithms, night.LEARNERS, "algorithm")
    learners = [name for name in night.LEARNERS if not algorithms or name in algorithms]
    make = partial(night.make_all, at_once=at_once, tell=teller(console), settings=settings)
    make(tasks, learners, seeds, out)
    commits = comparison.commits(night.runs(tasks, learners, seeds, out))
    how = f"Command: `{_command(size, task=names, algorithm=algorithms, seeds=[str(len(seeds))])}`, {commits}."
    if size == "night":
        caption = f"{how} Gains in points; intervals: 95 %, paired by game."
        _publish(console, [caption, night.table(tasks, learners, seeds, out)], write, GAINS)
    else:
        caption = f"{how} Each seed; -: not reached."
        _publish(console, [caption, night.table_of_episodes(tasks, learners, seeds, out)], write, EPISODES)


def _causes(
    console: Console, out: Path, names: list[str] | None, *, at_once: int, write: Path | None, seeds: range
) -> None:
    """Make the runs with one thing changed, of which `names` are tasks, and their table."""
    from lmgym.baselines.curves import comparison, night

    tasks, made = experiments([task for task in night.TASKS if task.changes], names, "task"), []
    for task in tasks:
        learners = list(dict.fromkeys([*map(night.unchanged, task.changes), *task.changes]))
        night.make_all([task], learners, seeds, out, at_once=at_once, tell=teller(console), settings=settings)
        made += night.runs([task], learners, seeds, out)
    command = _command("causes", task=names, seeds=[str(len(seeds))])
    how = f"Command: `{command}`, {comparison.commits(made)}."
    caption = f"{how} Differences in points; intervals: 95 %, paired by game."
    _publish(console, [caption, night.table_of_changes(tasks, seeds, out)], write, CHANGES)


def experiments(everything: Sequence[Experiment], names: list[str] | None, kind: str) -> list[Experiment]:
    """Return the experiments that `names` are or, where none has that name, whose tasks they are; all without names."""
    _refuse_unknown(names, dict.fromkeys(word for each in everything for word in (each.name, each.task)), kind)
    tasks = set(names or []) - {each.name for each in everything}
    return [each for each in everything if not names or each.name in names or each.task in tasks]


def _refuse_unknown(names: list[str] | None, available: Collection[str], kind: str) -> None:
    strangers = [name for name in names or [] if name not in available]
    if strangers:
        raise RecipeError(f"no {kind} is {' or '.join(strangers)}; known: {', '.join(available)}")


def _publish(console: Console, parts: Sequence[str], write: Path | None, markers: tuple[str, str]) -> None:
    """Print the parts of a report, and write them between the markers of a README, beside the reports of others."""
    content = "\n\n".join(parts)
    console.print(content, markup=False)
    if write is not None:
        text = write.read_text()
        before = text.partition(markers[0])[2].partition(markers[1])[0]
        write.write_text(between(text, beside(before, content), *markers))


def beside(reports: str, new: str) -> str:
    """Return reports with `new` in place of the one of the same command, or as the last.

    Each begins with a line `Command: ...`. A command for all tasks replaces all reports.
    """
    opening = "Command: `"
    command = new.removeprefix(opening).partition("`")[0]
    if "--task" not in command and "--algorithm" not in command:
        return new
    kept = [opening + each.strip() for each in f"\n{reports}".split(f"\n{opening}")[1:]]
    place = next((n for n, each in enumerate(kept) if each.startswith(f"{opening}{command}`")), len(kept))
    kept[place : place + 1] = [new]
    return "\n\n".join(kept)
