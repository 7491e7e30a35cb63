"""Process-wide set-up of the suite."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

from tests.components import ALL, stays_skipped

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # inherited by commands that a shell starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("suite", derandomize=True)  # the same examples in every run
settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Under `LMGYM_ALL`, fail a test that was skipped for a missing component."""
    return _complete((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Under `LMGYM_ALL`, fail a module that was skipped for a missing component."""
    return _complete((yield))


def _complete(report: Any) -> Any:
    if os.environ.get(ALL) and report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not stays_skipped(reason):
            report.outcome, report.longrepr = "failed", f"${ALL} is set, but this test was skipped: {reason}"
    return report
