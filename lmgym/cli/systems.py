"""`lmgym systems`: published systems against their own ablations, a row each, from the experiments in their files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lmgym.cli.curves import teller
from lmgym.cli.options import between
from lmgym.cli.train import settings
from lmgym.errors import RecipeError

MARKERS = "<!-- systems: made by `make systems` -->", "<!-- /systems -->"


def systems(
    names: Annotated[list[str] | None, typer.Argument(help="Systems or paths of .py files. [default: all]")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the runs; finished ones are kept.")] = Path("runs/systems"),
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each arm.")] = 3,
    at_once: Annotated[int, typer.Option(min=1, help="Runs at a time, one thread each.")] = 2,
    trial: Annotated[bool, typer.Option("--trial", help="Tiny budgets: only show that the runs start.")] = False,
    write: Annotated[Path | None, typer.Option(help="README that receives the table between its markers.")] = None,
) -> None:
    """Run each system and its ablation from the same start for the same tokens, and print a table."""
    from lmgym.baselines.curves import directions
    from lmgym.baselines.curves import systems as tables

    if trial and write is not None:
        raise RecipeError("a trial has no results to write: leave out --trial or --write")
    console, chosen = Console(soft_wrap=True), tables.experiments(names or ())
    if trial:
        chosen = {name: tables.trial(each) for name, each in chosen.items()}
    ran = list(chosen.values())
    errors = directions.make_all(ran, range(seeds), out, at_once=at_once, tell=teller(console), settings=settings)
    rows = {each.name: line for each in ran if (line := tables.row(each, range(seeds), out))}
    for each in ran:
        if each.name in rows:
            lines = [directions.read(each, arm, seed, out) for arm in each.arms for seed in range(seeds)]
            console.print(directions.table(each, lines), "", markup=False, sep="\n")
    if write is not None:
        text = write.read_text()
        previous = text.partition(MARKERS[0])[2].partition(MARKERS[1])[0]
        table = tables.table(tables.experiments(), rows, previous)
        write.write_text(between(text, f"{table}\n\n{tables.seeds_needed(table.splitlines())}", *MARKERS))
    console.print(table := tables.table(chosen, rows), tables.seeds_needed(table.splitlines()), markup=False, sep="\n")
    for name, error in errors.items():
        console.print(f"{name}: {error}", markup=False)
    if errors:
        raise typer.Exit(1)
