"""`lmgym eval`: a local policy over a split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lmgym.cli.options import task_options
from lmgym.env.registry import build, find
from lmgym.errors import PolicyError, RecipeError

if TYPE_CHECKING:
    from lmgym.evaluation.runner import Report
    from lmgym.policy.base import Policy
    from lmgym.types import Trajectory


def evaluate(
    task: Annotated[str, typer.Argument(help="Id or folder.")],
    model: Annotated[str, typer.Option(help="tiny, hf:PATH, oracle, demonstrator, random, null, human, python:m:f.")],
    split: Annotated[str, typer.Option(help="Split to play.")] = "test",
    episodes: Annotated[int, typer.Option(help="Instances; all of the split if it has fewer.")] = 100,
    tries: Annotated[int, typer.Option(help="Of each instance.")] = 1,
    temperature: Annotated[float, typer.Option(help="Of sampling.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Chance of the environments and of sampling.")] = 0,
    option: Annotated[list[str] | None, typer.Option(help="Option of the task, name=value; may be repeated.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for episodes.jsonl and report.json.")] = None,
) -> None:
    """Evaluate a policy; score, success, turns and their 95 % intervals."""
    if episodes < 1 or tries < 1:
        raise RecipeError(f"--episodes and --tries must be at least 1; got {episodes} and {tries}")
    spec = find(task)
    options = task_options(option or [])
    if out is not None:  # before anything is played: a folder that cannot be written must not cost an evaluation
        out.mkdir(parents=True, exist_ok=True)
        (out / "report.json").touch()
    env = build(spec.id, split=split, **options)
    size = env.unwrapped.size()
    env.close()
    from lmgym.evaluation import runner
    from lmgym.rollout.engine import Engine

    policy = _policy(model, temperature, seed)
    jobs = runner.episodes(spec.id, split=split, size=size, count=episodes, tries=tries, seed=seed, options=options)
    kept: list[Trajectory] = []
    report = runner.evaluate(policy, jobs, engine=Engine(), seed=seed, keep=kept.append)
    Console().print(_table(report))
    if out is not None:
        _write(out, report, kept)
        Console().print(f"wrote {out}/report.json and {out}/episodes.jsonl; see lmgym replay {out}/episodes.jsonl")


def _policy(model: str, temperature: float, seed: int) -> Policy:
    from lmgym.policy.load import load_policy

    kind = model.partition(":")[0].partition("?")[0]
    if kind not in ("tiny", "hf"):
        return load_policy(model, seed=seed)
    try:
        from lmgym.policy.sampling import Sampling
    except ModuleNotFoundError as error:
        raise PolicyError(f"{model} needs {error.name}: pip install 'lmgym[train]'") from error
    return load_policy(model, seed=seed, sampling=Sampling(temperature=temperature, seed=seed))


def _table(report: Report) -> Table:
    name = f"{report.task} {report.split}, {report.policy}, {len(report.outcomes)} episodes"
    table = Table("", "mean", "95 % interval", title=name, title_justify="left")
    for label, interval in (("success", report.success), ("score", report.score), ("turns", report.turns)):
        table.add_row(label, f"{interval.mean:.3f}", f"{interval.low:.3f} to {interval.high:.3f}")
    turns = sum(outcome.turns for outcome in report.outcomes)
    invalid = sum(outcome.invalid for outcome in report.outcomes)
    table.add_row("invalid actions", f"{invalid / max(turns, 1):.3f}", "")
    return table


def _write(folder: Path, report: Report, episodes: list[Trajectory]) -> None:
    from lmgym.rollout import episodes as records

    records.write(folder / "episodes.jsonl", episodes)
    state: dict[str, Any] = report.state_dict()
    made = folder / "report.json.partial"
    made.write_text(json.dumps(state, indent=1))
    made.replace(folder / "report.json")
