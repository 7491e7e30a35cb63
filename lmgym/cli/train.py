"""`lmgym train`: train a policy by an algorithm on a task, and print the closing table."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lmgym.cli.options import read_args, task_options
from lmgym.env.registry import find, load, options_of
from lmgym.env.spec import TaskSpec
from lmgym.evaluation import runner
from lmgym.evaluation.settings import RULES, rule_of
from lmgym.train import algorithms
from lmgym.train.presets import PLAIN, Tuned, run_folder, time_limits, tuned

if TYPE_CHECKING:
    from lmgym.baselines.curves.comparison import RunSettings
    from lmgym.evaluation.stats import Interval
    from lmgym.train.state import RunResult


class TrainCommand(typer.core.TyperCommand):
    """The command with the options of the named algorithm in its help."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Print the algorithm's options after `lmgym train ALGORITHM --help`."""
        names = algorithms.algorithms()
        name = next((word for word in args if word in names or Path(word).suffix == ".py"), None)
        if "--help" in args and name is not None:
            table = Table("option", "default", "", title=f"Options of {name}", title_justify="left", box=None)
            for field in dataclasses.fields(algorithms.load(name).Args):
                option = f"--{field.name.replace('_', '-')}"
                table.add_row(option, str(field.default), field.metadata.get("help", ""))
            Console().print(super().get_help(context), table)
            context.exit()
        return super().parse_args(context, args)


def list_algorithms(value: bool) -> None:
    """Print the algorithms with the first lines of their docstrings, and exit."""
    if value:
        table = Table("algorithm", "", box=None)
        for name in algorithms.algorithms():
            table.add_row(name, algorithms.summary(name))
        Console().print(table)
        raise typer.Exit


def train(
    context: typer.Context,
    algorithm: Annotated[str, typer.Argument(help="Name, as `--list` has it, or path of a .py file with a recipe.")],
    task: Annotated[str, typer.Argument(help="Id or folder of the task.")],
    model: Annotated[
        str | None, typer.Option(help="Policy: tiny[:10m], tiny-vl, smollm2, hf:PATH. [default: the preset's, or tiny]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights, games and sampling.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Run folder. [default: runs/ALGORITHM-TASK-MODEL-SEED]")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in that folder.")] = False,
    option: Annotated[list[str] | None, typer.Option(help="Option of the task, name=value; may be repeated.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Sampling precision. [default: bfloat16 where the hardware has it]")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; a resumed run must have the same.")] = None,
    lora: Annotated[int | None, typer.Option(min=1, help="Train adapters of this rank only; smollm2 or hf:.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Limit of an answer. [default: the task's]")] = None,
    history: Annotated[
        str | None, typer.Option("--context", help=f"History shown to the policy: {RULES}. [default: the recipe's]")
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Limit of action tokens; schedules ignore it.")] = None,
    train_instances: Annotated[int | None, typer.Option(min=1, help="Train on this many instances.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Limit, interim evaluations aside; none with --steps.")] = None,
    evaluate_every: Annotated[int, typer.Option(min=0, help="Action tokens between evaluations; 0: none.")] = 0,
    evaluate_split: Annotated[str | None, typer.Option(help="Split of all evaluations. [default: test]")] = None,
    keep_episodes: Annotated[list[int] | None, typer.Option(help="Step whose episodes are kept; repeatable.")] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Episodes at once. [default: 64, or the task's own limit]")
    ] = None,
    lockstep: Annotated[bool, typer.Option(help="Same bits with threads; waits for the slowest.")] = True,
    untuned: Annotated[bool, typer.Option("--untuned", help="Ignore the preset for this task in tuned.toml.")] = False,
    as_published: Annotated[bool, typer.Option("--as-published", help="Ignore all presets.")] = False,
    names: Annotated[
        bool, typer.Option("--list", callback=list_algorithms, is_eager=True, help="List the algorithms and exit.")
    ] = False,
) -> None:
    """Train a policy by an algorithm; `lmgym train ALGORITHM --help` lists the options that it adds."""
    console, options = Console(), task_options(option or [])
    spec = runner.spec_of(task, options)
    preset = _preset(algorithm, spec.id, model, untuned=untuned, as_published=as_published)
    folder = out or run_folder(algorithm, spec.name, preset.model, seed)
    _print_preset(console, preset, f"training {preset.model} by {algorithm} on {spec.id}, seed {seed}, in {folder}")
    kind = algorithms.load(algorithm).Args
    args = read_args(kind, context.args, preset.args | _limits(console, kind, minutes, context.args))
    from lmgym.train.api import run

    result = run(
        algorithm,
        task=task,
        model=preset.model,
        out=folder,
        seed=seed,
        resume=resume,
        options=options,
        preset=False,
        dtype=dtype,
        threads=threads,
        lora=lora,
        tokens=tokens,
        train_instances=train_instances,
        evaluate_every=evaluate_every,
        evaluate_split=evaluate_split,
        max_tokens=max_tokens,
        context=history,
        keep_episodes=keep_episodes or (),
        concurrency=concurrency,
        lockstep=lockstep,
        **dataclasses.asdict(args),
    )
    _print_result(console, result, algorithm, task, option or [], seen=history or _own_history(algorithm, args))


def _limits(console: Console, kind: type[Any], minutes: float | None, words: Sequence[str]) -> dict[str, float]:
    """Return the time limits of the stages of a run, and print them; none where the words give its steps."""
    if minutes is None or any(word.partition("=")[0] == "--steps" for word in words):
        return {}
    limits = time_limits(kind, minutes)
    if not limits:
        console.print("this algorithm has no time limits, so --minutes changes nothing", soft_wrap=True)
        return limits
    seconds = ", ".join(f"--{name.replace('_', '-')} {value:.0f}" for name, value in limits.items())
    console.print(f"time limit {minutes:g} min: {seconds}; --steps N makes runs reproducible", soft_wrap=True)
    return limits


def _own_history(algorithm: str, args: Any) -> str | None:
    """Return the rule of the history that a recipe shows, as `--context` takes it; None if no rule describes it."""
    return rule_of(algorithms.load(algorithm).recipe(args).context)


def _print_result(
    console: Console, result: RunResult, algorithm: str, task: str, words: Sequence[str], *, seen: str | None
) -> None:
    """Print the closing table of a run, its folder and the command that evaluates its policy."""
    from lmgym.train.load import is_guided
    from lmgym.train.ranks import ranks

    if not ranks().main:
        return
    options = task_options(words)
    console.print(closing_table(result, runner.spec_of(task, options), options, algorithm))
    guided = is_guided(algorithm)
    console.print(f"files: {result.folder}/ (metrics.jsonl, curve.png, tensorboard/, checkpoints/, policy/)")
    if guided:
        console.print("policy/ is imitation alone; the values that guide it are in checkpoints/", soft_wrap=True)
    model = f"run:{result.folder}" if guided else f"hf:{result.policy}"
    console.print(f"next:  {evaluation_command(task, words, model, seen=seen)}", soft_wrap=True, markup=False)


def evaluation_command(task: str, options: Sequence[str], model: str, *, seen: str | None) -> str:
    """Return the shell command that evaluates a model; `seen` is its `--context`, None for the default."""
    words = ["lmgym", "eval", task]
    for pair in options:
        words += ["--option", pair]
    if seen not in (None, "full"):
        words += ["--context", seen]
    return shlex.join([*words, "--model", model])


def _preset(algorithm: str, task: str, model: str | None, *, untuned: bool, as_published: bool) -> Tuned:
    """Return the preset of a run, empty if `as_published`. Raise RecipeError for an unknown algorithm."""
    algorithms.check(algorithm)
    return Tuned(model or PLAIN) if as_published else tuned(algorithm, task, model, own=not untuned)


def _print_preset(console: Console, preset: Tuned, run: str) -> None:
    """Print the line `run`, and the settings of presets if there are any."""
    console.print(run, soft_wrap=True)
    if preset.args:
        values = {"model": preset.model, **preset.args}
        words = (_option(name, value) for name, value in values.items())
        line = f"presets: {' '.join(words)} (baselines/tuned.toml; --as-published leaves them out)"
        console.print(line, soft_wrap=True)


def _option(name: str, value: Any) -> str:
    """Return an option as the command line takes it."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {shlex.quote(str(value))}"


def settings(words: Sequence[str]) -> RunSettings:
    """Return the arguments that run.json records for the words of `lmgym train`, without running it."""
    from lmgym.baselines.curves.comparison import RunSettings
    from lmgym.cli import app
    from lmgym.train.api import answer_limit

    group: Any = typer.main.get_command(app)
    context = group.commands[words[0]].make_context(words[0], list(words[1:]))
    given, spec = context.params, find(context.params["task"])
    kind = algorithms.load(given["algorithm"]).Args
    flags = {name: given[name] for name in ("untuned", "as_published")}
    preset = _preset(given["algorithm"], spec.id, given["model"], **flags)
    names = ("algorithm", "seed", "lora", "tokens", "evaluate_split", "train_instances", "lockstep", "concurrency")
    arguments = {name: given[name] for name in names}
    arguments |= {name: given[name] for name in ("dtype", "threads") if given[name] is not None}
    arguments |= {"context": given["history"]}
    arguments |= {"task": spec.id, "options": task_options(given["option"] or []), "policy": preset.model}
    args = read_args(kind, context.args, preset.args)
    recipe = algorithms.load(given["algorithm"]).recipe(args)
    arguments |= dataclasses.asdict(args) | {
        "max_tokens": answer_limit(recipe, given["max_tokens"], least=spec.answer_tokens)
    }
    defaults = {
        "max_tokens": 32,
        "lockstep": True,
        "concurrency": None,
        "context": None,
        **{field.name: field.default for field in dataclasses.fields(kind)},
        **preset.args,
    }
    return RunSettings(json.loads(json.dumps(arguments, default=str)), defaults)


def closing_table(result: RunResult, spec: TaskSpec, options: dict[str, Any], algorithm: str) -> Table:
    """Return what the run came to: success, scores where they say more, the gains, seconds by stage."""
    common = {"split", "others", "render_mode"}
    defaults = {name: value for name, value in options_of(load(spec)).items() if name not in common}
    difficulty = {
        name: spec.options.get(name, value) for name, value in defaults.items() if isinstance(value, int | str)
    }
    level = ", ".join(f"{name}={value}" for name, value in {**difficulty, **options}.items())
    table = Table("", "", title=f"{algorithm} on {spec.id}" + (f" ({level})" if level else ""), title_justify="left")
    for name, report in result.reports.items():
        episodes = f"{len(report.outcomes)} {report.split} episodes"
        table.add_row(f"success {name}", f"{_percent(report.success)} of {episodes}")
    if result.paired_gain is not None:
        table.add_row("paired gain", _percent(result.paired_gain, sign=True))
    if result.paired_greedy_gain is not None:
        table.add_row("paired gain, greedy", _percent(result.paired_greedy_gain, sign=True))
    if result.partial:
        for name, report in result.reports.items():
            table.add_row(f"mean score {name}", _figure(report.score))
        if result.paired_score_gain is not None:
            table.add_row("paired gain in score", _figure(result.paired_score_gain, sign=True))
    total = 0.0
    for stage, parts in result.seconds.items():
        total += parts.get("total", 0.0)
        shares = ", ".join(f"{part} {seconds:.0f}" for part, seconds in parts.items() if part != "total")
        table.add_row(f"seconds of {stage}", f"{parts.get('total', 0.0):.0f}" + (f" ({shares})" if shares else ""))
    table.add_row("seconds in all", f"{total:.0f}")
    return table


def _percent(interval: Interval, *, sign: bool = False) -> str:
    plus = "+" if sign else ""
    return f"{100 * interval.mean:{plus}.1f} % [{100 * interval.low:{plus}.1f}, {100 * interval.high:{plus}.1f}]"


def _figure(interval: Interval, *, sign: bool = False) -> str:
    plus = "+" if sign else ""
    return f"{interval.mean:{plus}.3f} [{interval.low:{plus}.3f}, {interval.high:{plus}.3f}]"
