"""Tables of an evaluation: one while it runs, one when it has ended."""

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
    from lmgym.evaluation.play import EvalProgress
    from lmgym.evaluation.runner import Report
    from lmgym.policy.endpoints.remote import RemotePolicy

INTERVAL = 0.5  # seconds between updates of the running success


class Watcher:
    """The table of a running evaluation."""

    def __init__(self, title: str, budget: Budget, remote: RemotePolicy | None, *, priced: bool) -> None:
        self._title = title
        self._budget = budget
        self._remote = remote  # the policy whose calls are shown
        self._priced = priced
        self._progress: EvalProgress | None = None
        self._started = time.monotonic()
        self._tokens = budget.spent_tokens  # of earlier sessions
        self._success = ("-", 0.0)  # as displayed, and when it was computed

    def __call__(self, progress: EvalProgress) -> None:
        """Take note of the run's progress."""
        self._progress = progress

    def __rich__(self) -> Table:
        """Return the table to display."""
        table = Table(title=Text(self._title), title_justify="left", show_header=False)
        for name, value in self.rows():
            table.add_row(name, value)
        return table

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield names and values."""
        progress = self._progress
        if progress is None:
            yield "episodes", "starting"
            return
        done, planned = len(progress.outcomes), len(progress.jobs)
        elapsed = max(time.monotonic() - self._started, 1e-9)
        rate = (done - progress.resumed) / elapsed
        yield "episodes", f"{done} of {planned}" + (f", {progress.voided} voided" if progress.voided else "")
        unknown = self._budget.unknown
        pace = "unknown" if "tokens" in unknown else f"{(self._budget.spent_tokens - self._tokens) / elapsed:.0f}"
        yield "rate", f"{60 * rate:.1f} a minute, {pace} tokens/s"
        yield "time left", clock((planned - done) / rate) if rate else "-"
        yield "success", self._running_success(progress)
        if self._remote is not None:
            calls = self._remote.throttle
            yield "calls", f"{calls.running} in flight, {int(calls.limit)} allowed, slowed {calls.halvings} times"
            yield "tokens", "unknown" if "tokens" in unknown else f"{self._budget.spent_tokens:,}"
            priced = self._priced and "cost" not in unknown
            yield "cost", f"${self._budget.spent_cost:.4f}" if priced else "unknown"

    def _running_success(self, progress: EvalProgress) -> str:
        text, computed = self._success
        now = time.monotonic()
        if progress.outcomes and now - computed > INTERVAL:
            jobs = [job for job in progress.jobs if job.id in progress.outcomes]
            success = report_of(jobs, progress.outcomes, finished=False, policy="").success
            text = f"{success.mean:.3f}, 95 % interval {success.low:.3f} to {success.high:.3f}"
            self._success = text, now
        return text


@contextmanager
def watching(watcher: Watcher, *, quiet: bool) -> Iterator[None]:
    """Display the table during the run if there is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with Live(get_renderable=watcher.__rich__, console=console, refresh_per_second=2, transient=True):
        yield


def result_table(report: Report, statistics: Mapping[str, Any]) -> Table:
    """Return the results of a run as a table."""
    count = statistics["episodes"]
    title = f"{report.task} {report.split}, {report.policy}, {count['played']} of {count['planned']} episodes"
    table = Table("", "mean", "95 % interval", "", title=Text(title), title_justify="left")
    for row in reports.rows(statistics):
        table.add_row(*row)
    if count["voided"]:
        table.add_row("voided episodes", str(count["voided"]), "", "in no mean")
    return table


def clock(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
