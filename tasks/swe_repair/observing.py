"""Observations: what the tests of a repair see, compared outside of the sandbox with what they expect.

Code that owns its process can make every test in it pass. It cannot know what a test expects whose expectations are
not in the sandbox: they come from a run beside the good repository, in a sandbox of its own.
"""

from __future__ import annotations

import datetime
import json
import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmgym.backends.coding.files import put
from lmgym.backends.sandbox import Sandbox, open_sandbox
from lmgym.tasks.swe_repair import workspace
from lmgym.tasks.swe_repair.repositories import Repository
from lmgym.tasks.swe_repair.testing import PATIENCE, limited
from lmgym.tasks.swe_repair.withheld import rewritten

PLUGIN = str(Path(__file__).with_name("observe_plugin.py"))
PATH = "/tmp/observations"  # as in the plugin
LONGEST = 10_000  # characters of an exception that a pattern is searched in
Place = tuple[str, int]  # a test function, and which of its tests
Values = list[list[Any]]  # numbers of assertions and encoded values, in their order
READ: dict[str, Callable[[Any], Any]] = {
    "none": lambda content: None,
    "bool": bool,
    "int": lambda content: int(content, 16),
    "float": float.fromhex,
    "complex": lambda content: complex(content[0]),
    "str": str,
    "bytes": bytes.fromhex,
    "fraction": lambda content: Fraction(*(int(part, 16) for part in content)),
    "decimal": Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda content: datetime.timedelta(*content),
    "range": lambda content: range(*(int(part, 16) for part in content)),
    "list": lambda content: [decoded(item) for item in content],
    "tuple": lambda content: tuple(decoded(item) for item in content),
    "set": lambda content: {decoded(item) for item in content},
    "deque": lambda content: deque(decoded(item) for item in content),
    "dict": lambda content: {decoded(key): decoded(item) for key, item in content},
    "approx": lambda content: Approximate(*map(decoded, content)),
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "In": lambda value, many: value in many,
    "Raises": lambda error, wanted: (
        bool(set(error[0]) & set(wanted[0])) and re.search(wanted[1] or "", error[1][:LONGEST]) is not None
    ),
}
FAULTS = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class Approximate:
    """A number that others are equal to within a tolerance, as `pytest.approx`."""

    number: float
    tolerance: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and abs(other - self.number) <= self.tolerance


@dataclass(frozen=True)
class Expected:
    """Expected values of one test, in the order of its assertions."""

    place: Place
    numbers: tuple[int, ...]
    checks: Mapping[int, tuple[str, Any]]  # operator and encoded expectation, by position

    def met(self, values: Values | None) -> bool:
        """Return True if a test observed what it expects."""
        if values is None or [each[0] for each in values] != list(self.numbers):
            return False
        return all(holds(name, values[position][1], wanted) for position, (name, wanted) in self.checks.items())


def decoded(value: Any) -> Any:
    """Return the value that a plugin encoded. Raises KeyError for one that is not of Python's own types."""
    name, content = value
    return READ[name](content)


def holds(name: str, value: Any, wanted: Any) -> bool:
    """Return True if an observed value stands in a relation to the expected one; no answer of a sandbox raises."""
    try:
        return bool(OPERATORS[name](decoded(value), decoded(wanted)))
    except FAULTS:
        return False


def observed(sandbox: Sandbox, files: Mapping[str, str], paths: Iterable[str], limit: float) -> list[dict[str, Any]]:
    """Run rewritten test files in a sandbox and return the records of their tests."""
    sandbox.run(["rm", "-f", PATH])
    put(sandbox, files)
    command = ["python3", "-m", "pytest", "-q", "-p", "observe_plugin", "--continue-on-collection-errors", "--tb=no"]
    environment = {"PYTHONHASHSEED": "0", "PYTEST_PLUGINS": ""}
    sandbox.run(limited([*command, *sorted(paths)], limit), timeout=PATIENCE * limit, environment=environment)
    try:
        lines = sandbox.read(PATH).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    records = []
    for line in lines:
        try:
            record = json.loads(line)
            name, which = record["place"]
            values = [[int(each[0]), *each[1:]] for each in record["values"] if len(each) >= 2]
            records.append({**record, "place": (str(name), int(which)), "values": values})
        except FAULTS:
            continue
    return records


def meets(repository: Repository, sources: Mapping[str, str], tests: Iterable[str]) -> bool:
    """Return True if tests see what they expect beside some sources; tests that cannot tell are left out."""
    paths = {test.partition("::")[0] for test in tests}
    expected = {test: each for path in paths for test, each in expectations(repository, path).items()}
    wanted = [expected[test] for test in tests if test in expected]
    if not wanted:
        return True
    files = {path: text for path, text in repository.files.items() if not path.startswith(f"{repository.source}/")}
    files |= {path: rewritten(repository.files[path], withhold=True)[0] for path in paths}
    with open_sandbox(workspace.box(PLUGIN)) as sandbox:
        records = observed(sandbox, {**files, **sources}, paths, repository.limit)
    seen = {record["place"]: record["values"] for record in records}
    return all(each.met(seen.get(each.place)) for each in wanted)


@lru_cache(maxsize=256)
def expectations(repository: Repository, path: str) -> dict[str, Expected]:
    """Return what the tests of a file expect that passes beside the good repository, by test.

    A test is left out if it observes something else without its expectations, and an assertion whose values are not
    of Python's own types.
    """
    runs = []
    operators: dict[int, str] = {}
    with open_sandbox(workspace.box(PLUGIN)) as sandbox:
        for withhold in (False, True):
            text, operators = rewritten(repository.files[path], withhold=withhold)
            runs.append(observed(sandbox, {**repository.files, path: text}, [path], repository.limit))
    without = {record["place"]: record for record in runs[1]}
    tests = {}
    for record in runs[0]:
        place, values = record["place"], record["values"]
        again = without.get(place, {"ok": False, "values": []})
        numbers = tuple(each[0] for each in values)
        if not (record["ok"] and again["ok"]) or numbers != tuple(each[0] for each in again["values"]):
            continue
        checks = {
            position: (operators[number], wanted)
            for position, (number, _, wanted) in enumerate(values)
            if holds(operators[number], again["values"][position][1], wanted)
        }
        if checks:
            tests[record["test"]] = Expected(place, numbers, checks)
    return tests
