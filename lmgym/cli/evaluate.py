"""`lmgym eval`: a policy over a split of one task or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmgym.env.registry import find
from lmgym.errors import InstanceError

if TYPE_CHECKING:
    from lmgym.cli.evaluation import EvalConfig
    from lmgym.evaluation.budget import Budget
    from lmgym.evaluation.record import Record
    from lmgym.evaluation.runner import Outcome, Report
    from lmgym.evaluation.settings import Settings
    from lmgym.policy.base import Policy
    from lmgym.types import Job

Words = list[str] | None
Opt = typer.Option
MODELS = (
    "tiny, hf:PATH, run:FOLDER, http://HOST/v1#MODEL, anthropic:MODEL, litellm:PROVIDER/MODEL, cmd:PROGRAM, oracle, "
    "demonstrator, random, null, human, python:MODULE:FUNCTION."
)


def evaluate(  # one line an option
    tasks: Annotated[list[str], typer.Argument(help="Ids or folders.")],
    model: Annotated[str, Opt(help=MODELS)],
    split: Annotated[str, Opt(help="Split to play.")] = "test",
    standard: Annotated[bool, Opt("--standard", help="The board's episodes, whatever else is said.")] = False,
    episodes: Annotated[int, Opt(help="Instances; all of the split if it has fewer.")] = 100,
    tries: Annotated[int, Opt(help="Of each instance.")] = 1,
    k: Annotated[int | None, Opt("--k", help="Show pass@k and pass^k; no more than there are tries.")] = None,
    temperature: Annotated[float, Opt(help="Of sampling.")] = 1.0,
    max_tokens: Annotated[int | None, Opt(min=1, help="Of an answer; 32 for local models, 2048 for others.")] = None,
    context: Annotated[str, Opt(help="Shown: full, window:TURNS, stub:KEEP, markov, summarise:TOKENS.")] = "full",
    tools: Annotated[str, Opt(help="How tools are offered: auto, native, template, text, none.")] = "auto",
    system: Annotated[str | None, Opt(help="System prompt, or @FILE.")] = None,
    seat: Annotated[Words, Opt(help="Who plays another seat: user=MODEL; may be repeated.")] = None,
    request: Annotated[Words, Opt(help="Further member of a request, name=value as in JSON; may be repeated.")] = None,
    seed: Annotated[int, Opt(min=0, help="Chance of the environments and of local sampling.")] = 0,
    option: Annotated[Words, Opt(help="Option of the task, name=value; may be repeated.")] = None,
    out: Annotated[Path | None, Opt(help="Folder of the run; runs/eval/TASK-MODEL where none is said.")] = None,
    resume: Annotated[bool, Opt("--resume", help="Go on with the run; nothing is paid for twice.")] = False,
    dry_run: Annotated[bool, Opt("--dry-run", help="Show what the run would take, and buy nothing.")] = False,
    pilot: Annotated[bool, Opt("--pilot", help="Estimate from 3 episodes of the model, which the run keeps.")] = False,
    budget_episodes: Annotated[int | None, Opt(help="Episodes at most, all sessions of the run together.")] = None,
    budget_tokens: Annotated[int | None, Opt(help="Tokens at most, prompts and answers.")] = None,
    budget_cost: Annotated[float | None, Opt(help="US dollars at most.")] = None,
    budget_seconds: Annotated[float | None, Opt(help="Seconds of this session at most.")] = None,
    prices: Annotated[Path | None, Opt(help="Table of prices that goes before lmgym's own.")] = None,
    key_env: Annotated[str | None, Opt(help="Variable that holds the key; LMGYM_API_KEY for unknown hosts.")] = None,
    concurrency: Annotated[int | None, Opt(min=1, help="Episodes, and calls, at once.")] = None,
    timeout: Annotated[float, Opt(min=0.001, help="Seconds of one call.")] = 300.0,
    retries: Annotated[int, Opt(min=1, help="Tries of a call that fails otherwise than by 429.")] = 8,
    retry_wait: Annotated[float, Opt(min=0.0, help="Seconds before a second try; doubled for each next.")] = 0.5,
    quiet: Annotated[bool, Opt("--quiet", help="No table while it runs.")] = False,
) -> None:
    """Evaluate a policy: score, success, turns, tokens, cost and their 95 % intervals."""
    given = dict(locals())
    from lmgym.cli.evaluation import EvalConfig, budget_of

    config = EvalConfig(**given)
    budget = budget_of(config)
    local: dict[str, Policy] = {}
    for task in config.tasks:
        _task(config, task, budget, local)


def _task(config: EvalConfig, task: str, budget: Budget, local: dict[str, Policy]) -> None:
    """Evaluate on one task, or say what that would take."""
    from lmgym.cli import evaluation
    from lmgym.evaluation.estimate import PILOT
    from lmgym.evaluation.record import Record
    from lmgym.policy.endpoints.secrets import Secrets

    jobs = evaluation.jobs_of(config, task)
    chosen = evaluation.settings_of(config, jobs)
    if config.dry_run and not config.pilot:
        Console().print(_dry(config, chosen, jobs))
        return
    facts = evaluation.facts_of(config, chosen)
    folder = evaluation.folder_of(config, task, facts)
    secrets = Secrets.of_environment(key=config.key_env)
    record = Record(folder, facts, resume=evaluation.resumes(config, folder), secrets=secrets)
    try:
        _play(config, chosen, jobs[:PILOT] if config.pilot else jobs, record, budget, local, planned=len(jobs))
    finally:
        record.close()


def _play(
    config: EvalConfig,
    chosen: Settings,
    jobs: list[Job],
    record: Record,
    budget: Budget,
    local: dict[str, Policy],
    *,
    planned: int,
) -> None:
    from lmgym.cli.evaluation import build_policies, engine_of
    from lmgym.cli.watch import Watcher, final, watching
    from lmgym.evaluation import report as reports
    from lmgym.evaluation.play import INTERRUPTED, Evaluation

    calls, seats = build_policies(config, chosen, record, budget, local)
    try:
        priced = config.price(config.model) is not None
        watcher = Watcher(f"{chosen.task} {chosen.split}, {config.model}", budget, seats.watched, priced=priced)
        with watching(watcher, quiet=config.quiet or config.model == "human") as watch:
            evaluation = Evaluation(
                record=record,
                policy=seats.agent,
                jobs=jobs,
                engine=engine_of(config, seats, record),
                budget=budget,
                identity=chosen.identity(),
                settings=chosen.recorded(),
                calls=calls,
                seed=config.seed,
                watch=watch,
                end=seats.close,
            )
            report = evaluation.play()
    finally:
        seats.close()
        if calls is not None:
            calls.close()
    console = Console()
    if report.outcomes:
        console.print(final(report, reports.statistics(report)))
        if config.k is not None:
            console.print(_of_k(report, config.k))
    if config.pilot:
        console.print(_estimate(config, chosen, report.outcomes, planned, "from its first episodes"))
    _closing_words(console, record, report.stopped, config)
    if evaluation.error is not None:
        raise evaluation.error
    if report.stopped == INTERRUPTED:
        raise typer.Exit(130)


def _of_k(report: Report, k: int) -> str:
    """pass@k and pass^k, or why they cannot be known of what was played."""
    from lmgym.evaluation.report import pass_k

    try:
        found = zip((f"pass@{k}", f"pass^{k}"), pass_k(report, k), strict=True)
    except InstanceError as error:  # a run that was stopped, or lost tries to a broken backend
        return str(error)
    return "\n".join(f"{name} {each.mean:.4f}, 95 % interval {each.low:.4f} to {each.high:.4f}" for name, each in found)


def _closing_words(console: Console, record: Record, stopped: str, config: EvalConfig) -> None:
    from lmgym.evaluation.pages import visible

    if stopped:
        words = f"stopped early: {visible(stopped)}. Go on with the same command and --resume --out {record.folder}"
        console.print(Text(words))
    elif config.pilot:
        console.print(Text(f"play the rest by the same command without --pilot, with --resume --out {record.folder}"))
    console.print(Text(f"wrote {record.folder}; see lmgym replay {record.folder}/episodes.jsonl"), soft_wrap=True)


def _dry(config: EvalConfig, chosen: Settings, jobs: list[Job]) -> Table:
    """What the run would take if the model played as the task's demonstrator does, or as chance."""
    from lmgym.cli.evaluation import price_of
    from lmgym.errors import InstanceError
    from lmgym.evaluation.estimate import PILOT, Weighed
    from lmgym.evaluation.runner import evaluate as played
    from lmgym.evaluation.settings import context_rule
    from lmgym.policy.load import load_policy
    from lmgym.rollout.engine import Engine

    for player in ("demonstrator", "random"):
        weighed = Weighed(load_policy(player), price_of(config))
        try:
            report = played(weighed, jobs[:PILOT], engine=Engine(context=context_rule(config.context)))
        except InstanceError:
            continue
        return _estimate(
            config, chosen, report.outcomes, len(jobs), f"as the {player} plays, in tokens of 4 characters"
        )
    raise InstanceError(f"{chosen.task} cannot be played by any player of its own: use --pilot")


def _estimate(config: EvalConfig, chosen: Settings, pilot: Sequence[Outcome], planned: int, basis: str) -> Table:
    from lmgym.evaluation.estimate import ceiling, estimate

    table = Table(
        "", "expected", "at most", title=Text(f"{chosen.task} {chosen.split}, {config.model}"), title_justify="left"
    )
    turns = chosen.options.get("max_turns") or find(chosen.task).max_turns
    most = ceiling(planned, turns, config.answer)
    found = estimate([outcome for outcome in pilot if not outcome.voided], planned)
    cost = "unknown" if found.cost is None else f"${found.cost:.4f}"
    read, said = ("unknown" if n is None else f"{n:,.0f}" for n in (found.tokens_in, found.tokens_out))
    table.add_row("episodes", f"{planned:,}", f"{planned:,}")
    table.add_row("calls", f"{found.turns:,.0f}", f"{most['calls']:,}")
    table.add_row("tokens of prompts", read, "")
    table.add_row("tokens of answers", said, f"{most['tokens_out']:,}")
    table.add_row("cost", cost, "")
    table.caption = f"expected {basis}"
    return table
