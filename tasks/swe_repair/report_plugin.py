"""A pytest plugin that reports the status of each test, and what failing ones observed, into a file.

It runs inside the sandbox beside the code under test, so each line carries a token read from standard input: lines
without it were written by somebody else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

LONGEST = 300  # characters of a value
_ORDER = sys.stdin.readline().split()  # before pytest takes standard input away


def pytest_configure(config: Any) -> None:
    """Start the report, and forget the token."""
    token, path = _ORDER
    _ORDER.clear()
    config.pluginmanager.register(Reporter(token, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)))


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


class Reporter:
    """Writes one JSON line for each phase of a test that decides its status."""

    def __init__(self, token: str, file: int) -> None:
        self._write: Callable[[dict[str, Any]], int] = lambda record: os.write(
            file, f"{token} {json.dumps(record)}\n".encode()
        )
        self.compared: dict[str, str] = {}
        self.facts: dict[str, Any] = {}

    def pytest_runtest_setup(self, item: Any) -> None:
        """Forget what the test before compared."""
        self.compared, self.facts = {}, {}

    def pytest_assertrepr_compare(self, op: str, left: Any, right: Any) -> None:
        """Remember the two sides of a comparison that failed."""
        self.compared = {"op": op, "left": _shortened(left), "right": _shortened(right)}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        """Remember where in the test it failed and why."""
        if call.excinfo is not None:
            own = [entry for entry in call.excinfo.traceback if str(entry.path) == str(item.path)]
            kind = call.excinfo.type
            self.facts = {
                "line": own[-1].lineno + 1 if own else 0,
                "exception": kind.__name__,
                "message": str(call.excinfo.value)[:LONGEST],
                "parameters": {name: _shortened(value) for name, value in self._parameters(item).items()},
                **(self.compared if issubclass(kind, AssertionError) else {}),
            }
        yield

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write the status of a test."""
        status = self._status(report)
        if status is not None:
            facts = self.facts if status in ("FAILED", "ERROR") else {}
            self._write({"test": report.nodeid, "status": status, **facts})

    def _parameters(self, item: Any) -> dict[str, Any]:
        callspec = getattr(item, "callspec", None)
        return dict(callspec.params) if callspec is not None else {}

    def _status(self, report: Any) -> str | None:
        expected = hasattr(report, "wasxfail")
        if report.skipped:
            return "XFAIL" if expected else "SKIPPED"
        if report.failed:
            return "FAILED" if report.when == "call" else "ERROR"
        return ("XPASS" if expected else "PASSED") if report.when == "call" else None

    def pytest_collectreport(self, report: Any) -> None:
        """Write that a file cannot be collected."""
        if report.failed:
            self._write({"test": report.nodeid, "status": "ERROR"})

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Write the exit status that pytest is about to return."""
        self._write({"exit": int(exitstatus)})
