"""Commands about tasks: list, check, golden, new."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from lmgym.cli.options import between
from lmgym.env.registry import find, specs
from lmgym.env.spec import TaskSpec

START, END = "<!-- tasks: made by `lmgym list --write` -->", "<!-- /tasks -->"
SCORES, SCORES_END = "<!-- scores: made by `lmgym list --write` -->", "<!-- /scores -->"


def markdown_table(tasks: Iterable[TaskSpec]) -> str:
    """Return the Markdown table of tasks."""
    rows = ["| id | what | turns | splits | player |", "|---|---|---|---|---|"]
    for spec in tasks:
        splits = ", ".join(
            f"{name} {size:,}" if size else f"{name} (official data)" for name, size in spec.splits.items()
        )
        turns = str(spec.max_turns)
        if spec.remote:
            turns, splits = "the task's", "the task's"
        rows.append(f"| `{spec.id}` | {spec.summary} | {turns} | {splits} | {spec.player} |")
    return "\n".join(rows)


def built_in() -> list[TaskSpec]:
    """Return the specs of this package's own tasks, without the parts of others."""
    return [spec for spec in specs().values() if spec.package.startswith("lmgym.tasks.") and not spec.part_of]


def list_tasks(
    write: Annotated[bool, typer.Option("--write", help="Write docs/reference/tasks.md and the cards.")] = False,
    parts: Annotated[bool, typer.Option("--parts", help="List the parts of tasks too, such as single pages.")] = False,
) -> None:
    """List the tasks."""
    if write:
        from lmgym.board import references
        from lmgym.board.store import BoardStore
        from lmgym.env import card

        page = Path("docs/reference/tasks.md")
        text = between(page.read_text(), markdown_table(built_in()), START, END)
        scores = references.markdown_table(BoardStore(Path("leaderboards")), [spec.id for spec in built_in()])
        page.write_text(between(text, scores, SCORES, SCORES_END))
        for spec in built_in():
            card.write(spec)
        return
    table = Table("task", Column("id", no_wrap=True), "what", "turns", "splits")
    for spec in specs().values():
        if spec.part_of and not parts:
            continue
        table.add_row(spec.name, spec.id, spec.summary, str(spec.max_turns), ", ".join(spec.splits))
    Console().print(table)


def check(
    tasks: Annotated[list[str] | None, typer.Argument(help="Task ids or folders; all tasks by default.")] = None,
    parts: Annotated[bool, typer.Option("--parts", help="Check the parts of tasks too, such as single pages.")] = False,
) -> None:
    """Check the contract of tasks; exit code 1 if a check fails."""
    from lmgym.env.testing import findings

    console = Console()
    failed = 0
    every = [spec for spec in specs().values() if parts or not spec.part_of]
    for spec in [find(name) for name in tasks] if tasks else every:
        table = Table("check", "", "finding", title=spec.id, title_justify="left")
        for finding in findings(spec):
            mark = "[green]ok[/]" if finding.ok else "[red]FAILED[/]"
            table.add_row(finding.check, mark, escape(finding.message))
            failed += not finding.ok
        console.print(table)
    if failed:
        console.print(f"[red]{failed} checks failed[/]")
        raise typer.Exit(1)


def golden(
    task: Annotated[str, typer.Argument(help="Task id or folder.")],
    write: Annotated[
        bool, typer.Option("--write", help="Record the episodes and write the card instead of replaying.")
    ] = False,
) -> None:
    """Replay a task's golden episodes; with --write, record them and write the task's card."""
    from lmgym.env import card
    from lmgym.env import golden as goldens

    main = find(task)
    folder = [spec for spec in specs().values() if spec.package == main.package]
    wanted = folder if task == main.name else [main]
    console = Console(soft_wrap=True)
    differences = 0
    for spec in wanted:
        if write:
            console.print(f"{spec.id}: wrote {goldens.write(spec)} and the card in {card.write(spec)}")
        elif goldens.owed(spec):
            messages, absent = goldens.replay(spec), goldens.absent(spec)
            differences += len(messages)
            skipped = f", {absent} need official data that is missing" if absent else ""
            line = f"{spec.id}: {len(messages)} of {len(goldens.read(spec))} differ{skipped}"
            console.print(*messages, line, sep="\n", markup=False)
    if differences:
        raise typer.Exit(1)


def new(
    name: Annotated[str, typer.Argument(help="Folder and module name, such as tower_of_hanoi.")],
    folder: Annotated[Path, typer.Option(help="Parent folder of the new task.")] = Path("tasks"),
) -> None:
    """Create a task folder that runs and passes its checks."""
    from lmgym.env.new import scaffold

    made = scaffold(name, folder)
    Console().print(f"made {made}; next: lmgym check {name}")
