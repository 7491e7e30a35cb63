"""What an evaluation shows: a table while it runs, another when it is over."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lmgym.evaluation import report as reports
from lmgym.evaluation.runner import report_of

if TYPE_CHECKING:
    from lmgym.evaluation.budget import Budget
    from lmgym.evaluation.play import EvalProgress, Watch
    from lmgym.evaluation.runner import Report
    from lmgym.policy.endpoints.remote import RemotePolicy

AGAIN = 0.5  # seconds between two looks at the running success


class Watcher:
    """The table of a running evaluation."""

    def __init__(self, title: str, budget: Budget, remote: RemotePolicy | None, *, priced: bool) -> None:
        self._title = title
        self._budget = budget
        self._remote = remote
        self._priced = priced
        self._progress: EvalProgress | None = None
        self._begun = time.monotonic()
        self._spent = budget.spent_tokens, budget.spent_cost
        self._success = ("-", 0.0)  # as shown, and when it was computed

    def __call__(self, progress: EvalProgress) -> None:
        """Take note of how far the run is."""
        self._progress = progress

    def __rich__(self) -> Table:
        """As the terminal shows it."""
        table = Table(title=Text(self._title), title_justify="left", show_header=False)
        for name, value in self.rows():
            table.add_row(name, value)
        return table

    def rows(self) -> Iterator[tuple[str, str]]:
        """Names and values."""
        progress = self._progress
        if progress is None:
            yield "episodes", "starting"
            return
        done, planned = len(progress.outcomes), len(progress.jobs)
        passed = max(time.monotonic() - self._begun, 1e-9)
        rate = (done - progress.before) / passed
        yield "episodes", f"{done} of {planned}" + (f", {progress.voided} voided" if progress.voided else "")
        unknown = self._budget.unknown
        pace = "unknown" if "tokens" in unknown else f"{(self._budget.spent_tokens - self._spent[0]) / passed:.0f}"
        yield "rate", f"{60 * rate:.1f} a minute, {pace} tokens/s"
        yield "time left", clock((planned - done) / rate) if rate else "-"
        yield "success", self._running_success(progress)
        if self._remote is not None:
            calls = self._remote.pace
            yield "calls", f"{calls.running} in flight, {int(calls.limit)} allowed, slowed {calls.slowed} times"
            yield "tokens", "unknown" if "tokens" in unknown else f"{self._budget.spent_tokens:,}"
            priced = self._priced and "cost" not in unknown
            yield "cost", f"${self._budget.spent_cost:.4f}" if priced else "unknown"

    def _running_success(self, progress: EvalProgress) -> str:
        shown, at = self._success
        now = time.monotonic()
        if progress.outcomes and now - at > AGAIN:
            jobs = [job for job in progress.jobs if job.id in progress.outcomes]
            found = report_of(jobs, progress.outcomes, over=False, policy="").success
            shown = f"{found.mean:.3f}, 95 % interval {found.low:.3f} to {found.high:.3f}"
            self._success = shown, now
        return shown


@contextmanager
def watching(watcher: Watcher, *, quiet: bool) -> Iterator[Watch]:
    """Show the table while the run goes on, where there is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield watcher
        return
    with Live(get_renderable=watcher.__rich__, console=console, refresh_per_second=2, transient=True):
        yield watcher


def final(report: Report, statistics: Mapping[str, Any]) -> Table:
    """The result of a run."""
    count = statistics["episodes"]
    title = f"{report.task} {report.split}, {report.policy}, {count['played']} of {count['planned']} episodes"
    table = Table("", "mean", "95 % interval", "", title=Text(title), title_justify="left")
    for row in reports.rows(statistics):
        table.add_row(*row)
    if count["voided"]:
        table.add_row("voided episodes", str(count["voided"]), "", "in no mean")
    return table


def clock(seconds: float) -> str:
    """Seconds as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
