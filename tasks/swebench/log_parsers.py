"""Statuses of tests out of the logs of their runners, by the names that version-5 instances use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from lmgym.errors import InstanceError

Statuses = dict[str, str]  # PASSED, FAILED, ERROR, SKIPPED or XFAIL by test; a later line wins
NAMES = "PASSED|FAILED|ERROR|SKIPPED|XFAIL"
STATUS_FIRST = re.compile(rf"({NAMES})\s+(\S+)")
TEST_FIRST = re.compile(rf"(\S+)\s+({NAMES})(?:\s|$)")
SKIP_COUNT = re.compile(r"\[\d+\]")
COLOUR = re.compile(r"\x1b?\[\d+(?:;\d+)*m")
CONTROL = re.compile(r"[\x01-\x1f]")
OPTION = re.compile(r"(.*?)\[(.*)\]")
DJANGO = (  # endings of a line "test (module.Class) ... outcome"
    (re.compile(r"(.*?) \.\.\. {1,2}(?:ok|OK)"), "PASSED"),
    (re.compile(r"(.*?) \.\.\. skipped.*"), "SKIPPED"),
    (re.compile(r"(.*?) \.\.\. FAIL"), "FAILED"),
    (re.compile(r"(.*?) \.\.\. ERROR"), "ERROR"),
    (re.compile(r"(.*?) \.\.\. expected failure"), "XFAIL"),
)
DJANGO_SUMMARY = re.compile(r"(FAIL|ERROR): (\S+)")
SYMPY_FAILURE = re.compile(r"_+ (\S+\.py:\S+) _+")
SYMPY = {"ok": "PASSED", "F": "FAILED", "E": "ERROR", "f": "XFAIL", "s": "SKIPPED", "w": "SKIPPED"}
GO = re.compile(r"\s*--- (PASS|FAIL|SKIP): (\S+)")
CARGO = re.compile(r"test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)")
WORDS = {
    "PASS": "PASSED",
    "FAIL": "FAILED",
    "SKIP": "SKIPPED",
    "ok": "PASSED",
    "FAILED": "FAILED",
    "ignored": "SKIPPED",
}


def pytest(log: str) -> Statuses:
    """Read pytest's lines `PASSED path::test` of -rA and `path::test PASSED` of -v."""
    return dict(_pytest_lines(log))


def pytest_options(log: str) -> Statuses:
    """Read pytest's lines; of a parameter that is a path, only the last part counts."""
    return {_short_option(test): status for test, status in _pytest_lines(log)}


def pytest_v2(log: str) -> Statuses:
    """Read pytest's lines without colours and control characters."""
    return dict(_pytest_lines("\n".join(CONTROL.sub("", COLOUR.sub("", line)) for line in log.split("\n"))))


def matplotlib(log: str) -> Statuses:
    """Read pytest's lines; mouse buttons are written as numbers."""
    return pytest(log.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3"))


def _pytest_lines(log: str) -> Iterator[tuple[str, str]]:
    for line in log.split("\n"):
        if match := STATUS_FIRST.match(line):
            if not (match[1] == "SKIPPED" and SKIP_COUNT.match(match[2])):  # a count, not a test
                yield match[2], match[1]
        elif match := TEST_FIRST.match(line):
            yield match[1], match[2]


def _short_option(test: str) -> str:
    match = OPTION.match(test)
    if match is None:
        return test
    option = match[2]
    if option.startswith("/") and not option.startswith("//") and "*" not in option:
        option = f"/{option.rpartition('/')[2]}"
    return f"{match[1]}[{option}]"


def django(log: str) -> Statuses:
    """Read the lines of Django's runner; an outcome may stand lines below its test."""
    statuses: Statuses = {}
    waiting = ""  # test whose outcome has not come
    for line in map(str.strip, log.split("\n")):
        for pattern, status in DJANGO:
            if match := pattern.fullmatch(line):
                statuses[match[1]] = status
                waiting = ""
                break
        else:
            if " ... " in line:
                waiting = line.partition(" ... ")[0]
            elif line.startswith("ok") and waiting:
                statuses[waiting] = "PASSED"
            elif match := DJANGO_SUMMARY.match(line):
                statuses[match[2]] = "FAILED" if match[1] == "FAIL" else "ERROR"
    if "--version is equivalent to version" in log:  # a docstring that breaks the line of its test
        statuses.setdefault("--version is equivalent to version", "PASSED")
    return statuses


def sympy(log: str) -> Statuses:
    """Read the lines of SymPy's runner: `test_name ok`, and headings of failures."""
    statuses = dict.fromkeys(SYMPY_FAILURE.findall(log), "FAILED")
    for line in map(str.strip, log.split("\n")):
        words = line.split()
        if len(words) > 1 and words[0].startswith("test_") and words[-1] in SYMPY:
            statuses[words[0]] = SYMPY[words[-1]]
    return statuses


def go(log: str) -> Statuses:
    """Read the lines `--- PASS: TestName (0.00s)` of `go test -v`."""
    return {match[2]: WORDS[match[1]] for match in map(GO.match, log.split("\n")) if match}


def cargo(log: str) -> Statuses:
    """Read the lines `test name ... ok` of `cargo test`."""
    return {match[1]: WORDS[match[2]] for match in map(CARGO.match, log.split("\n")) if match}


PARSERS: dict[str, Callable[[str], Statuses]] = {
    **{
        function.__name__: function
        for function in (pytest, pytest_options, pytest_v2, matplotlib, django, sympy, go, cargo)
    },
    "seaborn": pytest,
    **dict.fromkeys(("astroid", "flask", "marshmallow", "pvlib", "pyvista", "sqlfluff", "xarray"), pytest),
    **dict.fromkeys(("pydicom", "requests", "pylint"), pytest_options),
    **dict.fromkeys(("astropy", "scikit", "sphinx"), pytest_v2),
    "gotest": go,
}


def parser(name: str) -> Callable[[str], Statuses]:
    """Return a parser by its name, with `parse_log_` before it or not. Raises InstanceError if there is none."""
    short = name.rpartition(".")[2].removeprefix("parse_log_")
    if short not in PARSERS:
        raise InstanceError(f"no log parser {name!r}; there are {', '.join(sorted(PARSERS))}")
    return PARSERS[short]
