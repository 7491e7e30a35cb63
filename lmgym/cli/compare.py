"""`lmgym compare` and `lmgym power`: comparisons of runs, and plans for new ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmgym.errors import InstanceError
from lmgym.visible import visible


def compare(
    before: Annotated[Path, typer.Argument(help="Run A: its folder, or a folder of runs on several tasks.")],
    after: Annotated[Path, typer.Argument(help="Run B: another policy on the same tasks.")],
    across: Annotated[list[str] | None, typer.Option(help="Task option that may differ; repeatable.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for comparison.json, .md and .html.")] = None,
) -> None:
    """Compare two runs over their common instances: paired differences, exact tests, detectable differences."""
    import json

    from lmgym.evaluation import pages, report
    from lmgym.evaluation.compare import compare_all, page
    from lmgym.rollout.picture_folder import write_whole

    result = compare_all(report.read_all(before), report.read_all(after), across=across or ())
    document = page(result)
    console = Console()
    console.print(Text(visible(document.title), style="bold"))
    for part in document.parts:
        if isinstance(part, pages.TextTable):
            table = Table(title=Text(visible(part.title)), title_justify="left")
            for name in part.header:
                table.add_column(Text(visible(name)))
            for row in part.rows:
                table.add_row(*(Text(visible(cell)) for cell in row))
            console.print(table)
    if out is not None:
        write_whole(out / "comparison.json", json.dumps(result.state_dict(), indent=1, allow_nan=False).encode())
        write_whole(out / "comparison.md", pages.as_markdown(document).encode())
        write_whole(out / "comparison.html", pages.as_html(document).encode())


def power(
    runs: Annotated[list[Path] | None, typer.Argument(help="A pilot run, or two on the same instances.")] = None,
    difference: Annotated[float, typer.Option(help="Difference in success to detect; may be negative.")] = 0.05,
    success: Annotated[float, typer.Option(min=0, max=1, help="Success of the weaker policy, without a pilot.")] = 0.5,
    icc: Annotated[float, typer.Option(min=0, max=1, help="Share of variance between instances.")] = 0.5,
    correlation: Annotated[
        float, typer.Option(min=-1, max=1, help="Correlation of two policies' success per instance.")
    ] = 0.5,
    power: Annotated[float, typer.Option(help="Probability of detecting the difference.")] = 0.8,
    tries: Annotated[str, typer.Option(help="Numbers of tries, separated by commas.")] = "1,2,4,8",
) -> None:
    """Plan how many instances and tries detect a difference, from pilot runs if there are any."""
    from lmgym.evaluation import power as plan
    from lmgym.evaluation import report

    spread = plan.Spread(success=success, icc=icc, correlation=correlation, source="from the options")
    if runs:
        pilots = [report.read(run) for run in runs]
        spread = plan.spread_of(pilots, icc=icc, correlation=correlation)
    figures = f"success {spread.success:.3f}, icc {spread.icc:.2f}, correlation {spread.correlation:.2f}"
    title = Text(f"{figures} ({spread.source})")
    table = Table("tries", "instances", "episodes per policy", "power", title_justify="left", title=title)
    for count in _counts(tries):
        instances = plan.instances_for(spread, difference, count, power=power)
        reached = plan.power_of(spread.variance(difference, count), difference, instances)
        table.add_row(str(count), f"{instances:,}", f"{instances * count:,}", f"{reached:.3f}")
    console = Console()
    console.print(table)
    console.print(f"paired t test at 5 %, to detect a difference of {difference:g} with power {power:g}")


def _counts(text: str) -> list[int]:
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise InstanceError(f"--tries takes numbers such as 1,2,4; got {text!r}")
    return counts
