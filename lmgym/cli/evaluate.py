"""`lmgym eval`: evaluates a policy on one task or several."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmgym.cli.options import json_or_literal, pairs, task_options, with_options
from lmgym.errors import InstanceError
from lmgym.evaluation.config import EvalConfig
from lmgym.visible import visible

if TYPE_CHECKING:
    from lmgym.evaluation.budget import Budget
    from lmgym.evaluation.estimate import Estimate
    from lmgym.evaluation.plan import EvalPlan
    from lmgym.evaluation.runner import Report
    from lmgym.policy.base import Policy


def system_prompt(text: str | None) -> str | None:
    """Return a system prompt; `@FILE` is read from the file."""
    return Path(text[1:]).read_text(encoding="utf-8-sig") if text is not None and text.startswith("@") else text


def request_fields(words: list[str] | None) -> dict[str, object]:
    """Return extra request fields from words `name=value`."""
    return {name: json_or_literal(value) for name, value in pairs(words, "--request").items()}


@with_options(
    EvalConfig,
    options=task_options,
    request=request_fields,
    seats=partial(pairs, option="--seat"),
    system=system_prompt,
)
def evaluate(config: EvalConfig) -> None:
    """Evaluate a policy: score, success, turns, tokens and cost, with 95 % confidence intervals."""
    from lmgym.evaluation.plan import EvalPlan

    budget = config.budget()
    local: dict[str, Policy] = {}
    for plan in [EvalPlan.of(config, task) for task in config.tasks]:
        if config.dry_run:
            estimate, player = plan.dry_run()
            Console().print(_estimate_table(plan, estimate, f"as the {player} plays, in tokens of 4 characters"))
        else:
            _play(plan, budget, local)


def _play(plan: EvalPlan, budget: Budget, local: dict[str, Policy]) -> None:
    from lmgym.cli.watch import Watcher, result_table, watching
    from lmgym.evaluation import report as reports
    from lmgym.evaluation.play import INTERRUPTED
    from lmgym.train.load import load_policy

    config, console = plan.config, Console()
    with plan.open(budget, load_policy, local) as evaluation:
        watcher = Watcher(
            f"{plan.settings.task} {plan.settings.split}, {config.model}",
            budget,
            next(iter(evaluation.policies.remote), None),
            priced=config.price(config.model) is not None,
        )
        with watching(watcher, quiet=config.quiet or config.model == "human"):
            report = evaluation.play(watcher)
    folder = evaluation.record.folder
    if report.outcomes:
        console.print(result_table(report, reports.statistics(report)))
        if config.k is not None:
            console.print(_pass_k(report, config.k))
    if config.pilot and report.played:
        console.print(_estimate_table(plan, plan.estimate(report.outcomes), "from its first episodes"))
    out = folder if len(config.tasks) == 1 else config.out  # that of the command
    resume = "--resume" if out is None else f"--resume --out {shlex.quote(str(out))}"
    if report.stopped:
        console.print(
            Text(f"stopped early: {visible(report.stopped)}. Continue with the same command and {resume}"),
            soft_wrap=True,
        )
    elif config.pilot:
        console.print(Text(f"play the rest with the same command without --pilot, with {resume}"), soft_wrap=True)
    episodes = shlex.quote(str(folder / "episodes.jsonl"))
    console.print(Text(f"wrote {folder}; see lmgym replay {episodes}"), soft_wrap=True)
    if evaluation.error is not None:
        raise evaluation.error
    if report.stopped == INTERRUPTED:
        raise typer.Exit(130)


def _pass_k(report: Report, k: int) -> str:
    """Return pass@k and pass^k in words, or why the episodes played do not give them."""
    from lmgym.evaluation.report import pass_k

    try:
        figures = zip((f"pass@{k}", f"pass^{k}"), pass_k(report, k), strict=True)
    except InstanceError as error:  # the run stopped early, or lost tries to a broken backend
        return str(error)
    return "\n".join(f"{name} {x.mean:.4f}, 95 % interval {x.low:.4f} to {x.high:.4f}" for name, x in figures)


def _estimate_table(plan: EvalPlan, estimate: Estimate, basis: str) -> Table:
    title = Text(f"{plan.settings.task} {plan.settings.split}, {plan.config.model}")
    caption = f"expected {basis}"
    if plan.settings.context.startswith("summarise"):
        caption += "; calls for summaries come on top"
    if plan.settings.seats:
        caption += "; other seats come on top"
    table = Table("", "expected", "at most", title=title, title_justify="left", caption=caption)
    tokens_in, tokens_out = (
        "unknown" if tokens is None else f"{tokens:,.0f}" for tokens in (estimate.tokens_in, estimate.tokens_out)
    )
    table.add_row("episodes", f"{estimate.episodes:,}", f"{estimate.episodes:,}")
    table.add_row("calls", f"{estimate.calls:,.0f}", f"{estimate.max_calls:,}")
    table.add_row("prompt tokens", tokens_in, "")
    table.add_row("answer tokens", tokens_out, f"{estimate.max_tokens_out:,}")
    table.add_row("cost", "unknown" if estimate.cost is None else f"${estimate.cost:.4f}", "")
    return table
