"""Grades from statuses of tests, by SWE-bench's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SUCCESS = frozenset({"PASSED", "XFAIL"})
KEPT = SUCCESS | {"SKIPPED"}


@dataclass(frozen=True)
class Grade:
    """Shares of tests that did what they must."""

    fixed: float  # of FAIL_TO_PASS: passed or failed as expected
    kept: float  # of PASS_TO_PASS: the same, or skipped
    reason: str = ""  # why nothing was graded

    @property
    def resolved(self) -> bool:
        """True if all tests did."""
        return self.fixed == 1.0 and self.kept == 1.0

    @property
    def status(self) -> str:
        """The harness's word for the grade."""
        if self.resolved:
            return "RESOLVED_FULL"
        return "RESOLVED_PARTIAL" if 0 < self.fixed < 1 and self.kept == 1 else "RESOLVED_NO"


def status_of(test: str, statuses: Mapping[str, str]) -> str:
    """Return a test's status; "" if it is missing from the log.

    Some ids of the data are cut within their parameters. An id with an open bracket stands for the tests that start
    with it, if all of them have one status.
    """
    if test in statuses:
        return statuses[test]
    if test.count("[") > test.count("]"):
        outcomes = {status for name, status in statuses.items() if name.startswith(test)}
        if len(outcomes) == 1:
            return outcomes.pop()
    return ""


def grade(
    statuses: Mapping[str, str], fail_to_pass: Sequence[str], pass_to_pass: Sequence[str], *, fail_only: bool = False
) -> Grade:
    """Return the grade of a run; a test missing from the log fails, unless `fail_only`."""

    def share(tests: Sequence[str], good: frozenset[str]) -> float:
        if not tests:
            return 1.0
        outcomes = [status_of(test, statuses) for test in tests]
        return sum(outcome != "FAILED" if fail_only else outcome in good for outcome in outcomes) / len(tests)

    return Grade(share(fail_to_pass, SUCCESS), share(pass_to_pass, KEPT))
