"""`lmgym compare` and `lmgym power`: what two runs show, and what a run to come could show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmgym.errors import InstanceError

if TYPE_CHECKING:
    from lmgym.evaluation import pages
    from lmgym.evaluation.power import Spread


def compare(
    before: Annotated[Path, typer.Argument(help="A: folder of a run, or of runs on several tasks.")],
    after: Annotated[Path, typer.Argument(help="B: the same tasks, another policy.")],
    out: Annotated[Path | None, typer.Option(help="Folder for comparison.json, .md and .html.")] = None,
) -> None:
    """Compare two runs over their common instances: paired differences, exact tests, what could have been shown."""
    import json

    from lmgym.evaluation import compare as found_by
    from lmgym.evaluation import pages, report

    found = found_by.compare_all(report.read_all(before), report.read_all(after))
    shown = found_by.page(found)
    console = Console()
    console.print(Text(pages.visible(shown.title), style="bold"))
    for part in shown.parts:
        if isinstance(part, pages.TextTable):
            console.print(as_rich(part))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        pages.replace_file(out / "comparison.json", json.dumps(found.state_dict(), indent=1, allow_nan=False))
        pages.replace_file(out / "comparison.md", pages.as_markdown(shown))
        pages.replace_file(out / "comparison.html", pages.as_html(shown))


def power(
    runs: Annotated[list[Path] | None, typer.Argument(help="A pilot run, or two on the same instances.")] = None,
    difference: Annotated[float, typer.Option(help="In success, that is to be shown.")] = 0.05,
    success: Annotated[float, typer.Option(min=0, max=1, help="Of the weaker policy, without a pilot.")] = 0.5,
    icc: Annotated[float, typer.Option(min=0, max=1, help="Share of variance that lies between instances.")] = 0.5,
    correlation: Annotated[float, typer.Option(min=-1, max=1, help="Of two policies' chances on an instance.")] = 0.5,
    power: Annotated[float, typer.Option(help="Chance of showing it.")] = 0.8,
    tries: Annotated[str, typer.Option(help="Numbers of tries to plan for.")] = "1,2,4,8",
) -> None:
    """Say how many instances and tries show a difference, from a pilot run where there is one."""
    from lmgym.evaluation import power as plan
    from lmgym.evaluation import report

    spread = plan.Spread(success=success, icc=icc, correlation=correlation, source="as given")
    if runs:
        pilots = [report.read(run) for run in runs]
        spread = plan.spread_of(pilots, icc=icc, correlation=correlation)
    table = Table("tries", "instances", "episodes of each policy", "power", title_justify="left", title=_plan(spread))
    for count in _counts(tries):
        instances = plan.instances_for(spread, difference, count, power=power)
        reached = plan.power_of(spread.variance(difference, count), difference, instances)
        table.add_row(str(count), f"{instances:,}", f"{instances * count:,}", f"{reached:.3f}")
    console = Console()
    console.print(table)
    console.print(f"paired t test at 5 %, to show a difference of {difference:g} with power {power:g}")


def _plan(spread: Spread) -> Text:
    figures = f"success {spread.success:.3f}, icc {spread.icc:.2f}, correlation {spread.correlation:.2f}"
    return Text(f"{figures} ({spread.source})")


def _counts(text: str) -> list[int]:
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise InstanceError(f"--tries takes numbers such as 1,2,4; got {text!r}")
    return counts


def as_rich(table: pages.TextTable) -> Table:
    """A table for the terminal; what it says is text, never markup or an escape."""
    from lmgym.evaluation.pages import visible

    shown = Table(title=Text(visible(table.title)), title_justify="left")
    for name in table.header:
        shown.add_column(Text(visible(name)))
    for row in table.rows:
        shown.add_row(*(Text(visible(cell)) for cell in row))
    return shown
