"""Runs of a repository's tests: the status of each, and whether the log can be trusted."""

from __future__ import annotations

import ast
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmgym.backends.sandbox import Sandbox

PLUGIN = str(Path(__file__).with_name("report_plugin.py"))
LIMIT = 30.0  # seconds of a core for one run: our suites take less than one
PATIENCE = 4.0  # times the limit that a run may take by the clock, so that a busy machine changes no verdict
SUCCESS = {"PASSED", "XFAIL"}  # of a test that has to pass; a test that passed before may be skipped as well
BAD = ("ERROR", "FAILED")


@dataclass(frozen=True)
class TestRun:
    """Outcome of a run of the tests."""

    __test__ = False  # pytest looks for classes of this name
    statuses: Mapping[str, str]  # by test; the worst of several
    trusted: bool  # the run ended by itself, and its exit code agrees with the log
    timed_out: bool = False
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of failing tests, by test

    def succeeded(self, test: str) -> bool:
        """Return True if a test that must pass did; a test missing from the log did not."""
        return self.trusted and self.statuses.get(test) in SUCCESS

    def kept(self, test: str) -> bool:
        """Return True if a test that passed before still does, or is skipped."""
        return self.trusted and self.statuses.get(test) in {*SUCCESS, "SKIPPED"}


def limited(command: Sequence[str], seconds: float) -> list[str]:
    """Return the command under a limit on the processor time of each of its processes."""
    return ["sh", "-c", f'ulimit -t {math.ceil(seconds)}; exec "$@"', "sh", *command]


def run_tests(sandbox: Sandbox, arguments: Sequence[str] = (), *, hash_seed: int = 0, limit: float = LIMIT) -> TestRun:
    """Run pytest in the sandbox's folder and return what it reported."""
    token, path = secrets.token_hex(16), f"/tmp/{secrets.token_hex(8)}"  # not part of any observation
    command = ["python3", "-m", "pytest", "-q", "-p", "report_plugin", "--continue-on-collection-errors", *arguments]
    done = sandbox.run(
        limited(command, limit),
        stdin=f"{token} {path}\n".encode(),
        timeout=PATIENCE * limit,
        environment={"PYTHONHASHSEED": str(hash_seed), "PYTEST_PLUGINS": ""},
    )
    try:
        report = sandbox.read(path).decode("utf-8", "replace")
    except OSError:
        report = ""
    return read_report(report, token, done.code, done.timed_out)


def read_report(report: str, token: str, code: int, timed_out: bool = False) -> TestRun:
    """Return the run that a report describes; `code` is the exit status of the process."""
    statuses: dict[str, str] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    ends: list[int] = []
    for line in report.splitlines():
        stamp, _, text = line.partition(" ")
        if stamp != token:
            continue
        try:
            record = json.loads(text)
            if "exit" in record:
                ends.append(record["exit"])
                continue
            test, status = str(record["test"]), str(record["status"])
        except (ValueError, TypeError, KeyError, RecursionError):  # code that read the token wrote this line
            return TestRun({}, False, timed_out)
        if statuses.get(test) not in BAD:
            statuses[test] = status
        if status in BAD:
            facts.setdefault(test, record)
    failing = any(status in BAD for status in statuses.values())
    trusted = not timed_out and ends == [code] and code in (0, 1) and (code == 1) == failing and bool(statuses)
    return TestRun(statuses, trusted, timed_out, facts)


def function(source: str, test: str) -> ast.FunctionDef | None:
    """Return the function behind a test such as "tests/test_a.py::TestB::test_c[1]"; None if it is inherited."""
    node: ast.Module | ast.ClassDef | ast.FunctionDef = ast.parse(source)
    for name in test.partition("[")[0].split("::")[1:]:
        kinds = (ast.FunctionDef, ast.ClassDef)
        inner = next((each for each in node.body if isinstance(each, kinds) and each.name == name), None)
        if inner is None:
            return None
        node = inner
    return node if isinstance(node, ast.FunctionDef) else None
