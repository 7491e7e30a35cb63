"""`lmgym doctor`: shows what is installed and what is missing for which tasks."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

STYLES = {"ok": "green", "missing": "yellow", "info": ""}


def doctor(
    missing: Annotated[bool, typer.Option("--missing", help="Show only what is missing.")] = False,
) -> None:
    """Check packages, programs, data, GPU, threads and disk; show what is missing and how to get it."""
    from lmgym.doctor import doctor as checks

    table = Table(*(Column(name, overflow="fold") for name in ("", "status", "detail", "needed by", "how to get it")))
    for check in checks():
        if check.status == "missing" or not missing:
            status = Text(check.status, style=STYLES[check.status])
            table.add_row(check.name, status, Text(check.detail), check.needed_by, Text(check.fix))
    Console().print(table)
