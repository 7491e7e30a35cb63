"""Statuses of tests out of the logs of their runners, by the names that version-5 instances use.

A parser yields every line on a test. `official` makes the harness's map of them, `worst` the one that lmgym grades.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from lmgym.errors import InstanceError

Line = tuple[str, str]  # a test and its status: PASSED, FAILED, ERROR, SKIPPED or XFAIL
Statuses = dict[str, str]  # status by test
WORST_FIRST = ("FAILED", "ERROR", "SKIPPED", "XFAIL", "PASSED")
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


def pytest(log: str) -> Iterator[Line]:
    """Yield pytest's lines `PASSED path::test` of -rA and `path::test PASSED` of -v."""
    for line in log.split("\n"):
        if match := STATUS_FIRST.match(line):
            if not (match[1] == "SKIPPED" and SKIP_COUNT.match(match[2])):  # a count, not a test
                yield match[2], match[1]
        elif match := TEST_FIRST.match(line):
            yield match[1], match[2]


def pytest_options(log: str) -> Iterator[Line]:
    """Yield pytest's lines; of a parameter that is a path, only the last part counts."""
    return ((_short_option(test), status) for test, status in pytest(log))


def pytest_v2(log: str) -> Iterator[Line]:
    """Yield pytest's lines without colours and control characters."""
    return pytest("\n".join(CONTROL.sub("", COLOUR.sub("", line)) for line in log.split("\n")))


def matplotlib(log: str) -> Iterator[Line]:
    """Yield pytest's lines; mouse buttons are written as numbers."""
    return pytest(log.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3"))


def _short_option(test: str) -> str:
    match = OPTION.match(test)
    if match is None:
        return test
    option = match[2]
    if option.startswith("/") and not option.startswith("//") and "*" not in option:
        option = f"/{option.rpartition('/')[2]}"
    return f"{match[1]}[{option}]"


def django(log: str) -> Iterator[Line]:
    """Yield the outcomes of Django's runner; one may stand lines below its test."""
    waiting = ""  # test whose outcome has not come
    split_test = "--version is equivalent to version"  # a docstring that breaks the line of its test
    silent = split_test in log
    for line in map(str.strip, log.split("\n")):
        for pattern, status in DJANGO:
            if match := pattern.fullmatch(line):
                silent = silent and match[1] != split_test
                yield match[1], status
                waiting = ""
                break
        else:
            if " ... " in line:
                waiting = line.partition(" ... ")[0]
            elif line.startswith("ok") and waiting:
                silent = silent and waiting != split_test
                yield waiting, "PASSED"
            elif match := DJANGO_SUMMARY.match(line):
                yield match[2], "FAILED" if match[1] == "FAIL" else "ERROR"
    if silent:
        yield split_test, "PASSED"


def sympy(log: str) -> Iterator[Line]:
    """Yield the lines of SymPy's runner: headings of failures, and `test_name ok`."""
    for test in SYMPY_FAILURE.findall(log):
        yield test, "FAILED"
    for line in map(str.strip, log.split("\n")):
        words = line.split()
        if len(words) > 1 and words[0].startswith("test_") and words[-1] in SYMPY:
            yield words[0], SYMPY[words[-1]]


def go(log: str) -> Iterator[Line]:
    """Yield the lines `--- PASS: TestName (0.00s)` of `go test -v`."""
    return ((match[2], WORDS[match[1]]) for match in map(GO.match, log.split("\n")) if match)


def cargo(log: str) -> Iterator[Line]:
    """Yield the lines `test name ... ok` of `cargo test`."""
    return ((match[1], WORDS[match[2]]) for match in map(CARGO.match, log.split("\n")) if match)


PARSERS: dict[str, Callable[[str], Iterator[Line]]] = {
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


def parser(name: str) -> Callable[[str], Iterator[Line]]:
    """Return a parser by its name, with `parse_log_` before it or not. Raises InstanceError if there is none."""
    short = name.rpartition(".")[2].removeprefix("parse_log_")
    if short not in PARSERS:
        raise InstanceError(f"no log parser {name!r}; there are {', '.join(sorted(PARSERS))}")
    return PARSERS[short]


def official(lines: Iterable[Line]) -> Statuses:
    """Return the status map of the official harness: the last line on a test holds."""
    return dict(lines)


def worst(lines: Iterable[Line]) -> Statuses:
    """Return the worst status of each test, so that a forged line helps no test that a true line calls failed."""
    statuses: Statuses = {}
    for test, status in lines:
        statuses[test] = min(status, statuses.get(test, status), key=WORST_FIRST.index)
    return statuses
