"""`lmgym train`: a reference baseline on a task, and the closing table."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lmgym.cli.options import read_args, task_options
from lmgym.cli.tuned import PLAIN, Tuned, tuned
from lmgym.env.registry import find, load, options_of
from lmgym.env.spec import TaskSpec
from lmgym.errors import MissingExtra, RecipeError
from lmgym.train.load import baselines, is_guided

if TYPE_CHECKING:
    from lmgym.evaluation.stats import Interval
    from lmgym.policy.local.policy import LocalPolicy
    from lmgym.train.comparison import RunSettings
    from lmgym.train.recipe import Recipe
    from lmgym.train.state import RunResult


def train(
    context: typer.Context,
    algorithm: Annotated[str, typer.Argument(help="File of baselines/, such as bc, grpo, ppo.")],
    task: Annotated[str, typer.Argument(help="Id or folder.")],
    model: Annotated[str | None, typer.Option(help="tiny, tiny:10m, tiny-vl, hf:PATH; else as tuned.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of weights, games and sampling.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/ALGORITHM-TASK-MODEL-SEED.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in that folder.")] = False,
    option: Annotated[list[str] | None, typer.Option(help="Option of the task, name=value; may be repeated.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Of sampling; bfloat16 where in hardware.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; a resumed run must have the same.")] = None,
    lora: Annotated[int | None, typer.Option(min=1, help="Rank of adapters, which alone learn; hf: models.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Of actions, after which nothing more is played.")] = None,
    train_instances: Annotated[int | None, typer.Option(min=1, help="Train on that many of the split.")] = None,
    evaluate_every: Annotated[int, typer.Option(min=0, help="Tokens of actions between evaluations; 0: none.")] = 0,
    evaluate_split: Annotated[str | None, typer.Option(help="Split of all evaluations in place of test.")] = None,
    keep_episodes: Annotated[list[int] | None, typer.Option(help="Step whose episodes are kept; repeatable.")] = None,
    untuned: Annotated[bool, typer.Option("--untuned", help="Leave baselines/tuned.toml out.")] = False,
) -> None:
    """Train a baseline; options beyond these are fields of its Args, such as --steps 50 --no-std."""
    console = Console()
    spec = find(task)
    options = task_options(option or [])
    module = _baseline(algorithm)
    own = Tuned(model or PLAIN) if untuned else tuned(algorithm, spec, model)
    args, model = read_args(module.Args, context.args, own.args), own.model
    _checked(spec, options)
    _say(console, own)
    from lmgym.train.loop import run
    from lmgym.train.ranks import ranks

    dtype = dtype or _half()
    policy = _policy(model, seed, dtype, lora)
    folder = out or Path("runs") / f"{algorithm}-{spec.name}-{_plain(model)}-{seed}"
    known = {"algorithm": algorithm, "dtype": dtype, "threads": _threads(threads), "lora": lora}
    known |= {"tokens": tokens, "evaluate_split": evaluate_split, "train_instances": train_instances}
    result = run(
        _evaluated_on(module.recipe(args), evaluate_split),
        policy,
        task=spec.id,
        options=options,
        folder=folder,
        seed=seed,
        resume=resume,
        arguments={**known, **dataclasses.asdict(args)},
        keep_episodes=keep_episodes or (),
        tokens=tokens,
        train_instances=train_instances,
        evaluate_every=evaluate_every,
        lockstep=spec.player != "inline",
    )
    if ranks().main:
        level = "".join(f" --option {pair}" for pair in option or [])
        table = closing_table(result, spec, options, algorithm)
        _close(console, result, table, f"lmgym eval {task}{level}", guided=is_guided(algorithm))


def _close(console: Console, result: RunResult, table: Table, again: str, *, guided: bool) -> None:
    """Say what the run came to, where its files are and what to try next."""
    console.print(table)
    console.print(f"files: {result.folder}/ (metrics.jsonl, curve.png, tensorboard/, checkpoints/, policy/)")
    if guided:
        console.print("policy/ is imitation alone; the values that guide it are in checkpoints/", soft_wrap=True)
    model = f"run:{result.folder}" if guided else f"hf:{result.policy}"
    console.print(f"next:  {again} --model {model}", soft_wrap=True)


def settings(words: Sequence[str]) -> RunSettings:
    """What run.json will say of a run that `lmgym` makes by these words, `train` the first of them."""
    from lmgym.cli import app
    from lmgym.train.comparison import RunSettings

    group: Any = typer.main.get_command(app)
    context = group.commands[words[0]].make_context(words[0], list(words[1:]))
    given, spec = context.params, find(context.params["task"])
    kind = _baseline(given["algorithm"]).Args
    own = Tuned(given["model"] or PLAIN) if given["untuned"] else tuned(given["algorithm"], spec, given["model"])
    known = {name: given[name] for name in ("algorithm", "seed", "lora", "tokens", "evaluate_split", "train_instances")}
    known |= {name: given[name] for name in ("dtype", "threads") if given[name] is not None}
    known |= {"task": spec.id, "options": task_options(given["option"] or []), "policy": own.model}
    known |= dataclasses.asdict(read_args(kind, context.args, own.args))
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    return RunSettings(json.loads(json.dumps(known, default=str)), defaults)


def _evaluated_on(recipe: Recipe, split: str | None) -> Recipe:
    """Return the recipe with its evaluations on a split, if one is given."""
    from lmgym.train.stages import Evaluate

    if split is None:
        return recipe
    stages = [dataclasses.replace(each, split=split) if isinstance(each, Evaluate) else each for each in recipe.stages]
    return dataclasses.replace(recipe, stages=stages)


def _baseline(name: str) -> Any:
    if name not in (known := baselines()):
        raise RecipeError(f"unknown baseline {name!r}; known: {', '.join(known)}")
    try:
        return importlib.import_module(f"lmgym.baselines.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "lmgym":
            raise
        raise MissingExtra(f"training needs {error.name}: pip install 'lmgym[train]'") from error


def _checked(spec: TaskSpec, options: dict[str, Any]) -> None:
    """Refuse an unknown option before anything is made."""
    known = [*options_of(load(spec)), "max_turns"]
    if unknown := [name for name in options if name not in known]:
        raise RecipeError(f"{spec.id} has no option {unknown[0]!r}; it has {', '.join(sorted(known))}")


def _device() -> str | None:
    """Return the accelerator of this process where a launcher started several; None leaves the choice."""
    import torch

    place = os.environ.get("LOCAL_RANK")
    return f"cuda:{place}" if place is not None and torch.cuda.is_available() else None


def _threads(count: int | None) -> int:
    """Set the number of CPU threads, and return it: with another one a run has other bits."""
    import torch

    if count is not None:
        torch.set_num_threads(count)
    return torch.get_num_threads()


def _half() -> str | None:
    """Return bfloat16 where the machine multiplies it in hardware; None, the model's own precision, elsewhere."""
    import torch

    from lmgym.train.update import halves

    return "bfloat16" if halves(torch.device("cuda" if torch.cuda.is_available() else "cpu")) else None


def _policy(model: str, seed: int, dtype: str | None, rank: int | None) -> LocalPolicy:
    """Load a model, with adapters where they have a rank."""
    from lmgym.policy.load import load_local
    from lmgym.policy.local.lora import adapt

    policy = load_local(model, seed=seed, dtype=dtype, device=_device())
    if rank is not None:
        adapt(policy.model, rank=rank, seed=seed)
    return policy


def _say(console: Console, own: Tuned) -> None:
    if own.args:
        said = {"model": own.model, **own.args}
        words = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in said.items()]
        console.print(f"tuned for this task: {' '.join(words)} (baselines/tuned.toml; --untuned leaves it out)")


def _plain(model: str) -> str:
    """Return a model's name as part of a folder's."""
    return re.sub("[:?=&]", "-", model.rstrip("/").rpartition("/")[2])


def closing_table(result: RunResult, spec: TaskSpec, options: dict[str, Any], algorithm: str) -> Table:
    """Return what the run came to: success, scores where they say more, the gains, seconds by stage."""
    level = ", ".join(f"{name}={value}" for name, value in {**level_of(spec), **options}.items())
    table = Table("", "", title=f"{algorithm} on {spec.id}" + (f" ({level})" if level else ""), title_justify="left")
    for name, report in result.reports.items():
        table.add_row(f"success {name}", f"{_percent(report.success)} of {len(report.outcomes)} test episodes")
    if result.paired_gain is not None:
        table.add_row("paired gain", _percent(result.paired_gain, sign=True))
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


def level_of(spec: TaskSpec) -> dict[str, Any]:
    """Return the options that make the difficulty of a task, with their defaults."""
    common = {"split", "others", "render_mode"}
    defaults = {name: value for name, value in options_of(load(spec)).items() if name not in common}
    return {name: spec.options.get(name, value) for name, value in defaults.items() if isinstance(value, int | str)}


def _percent(interval: Interval, *, sign: bool = False) -> str:
    plus = "+" if sign else ""
    return f"{100 * interval.mean:{plus}.1f} % [{100 * interval.low:{plus}.1f}, {100 * interval.high:{plus}.1f}]"


def _figure(interval: Interval, *, sign: bool = False) -> str:
    plus = "+" if sign else ""
    return f"{interval.mean:{plus}.3f} [{interval.low:{plus}.3f}, {interval.high:{plus}.3f}]"
