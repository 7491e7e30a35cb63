"""A pytest plugin for tests whose expectations were taken out: it writes down the values that they compare.

It runs inside the sandbox beside the code under test. Nothing of what it writes is believed: the values are compared
outside with expectations that this process does not have.
"""

from __future__ import annotations

import datetime
import json
import os
from collections import Counter, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

PATH = "/tmp/observations"
DEEPEST = 50  # levels of one value
PARTS = ("numerator", "denominator")
NAIVE: list[tuple[type, str, Callable[[Any], Any]]] = [  # how the content of a value is read past an overridden method
    (bool, "bool", bool),
    (int, "int", lambda value: hex(int.__int__(value))),
    (float, "float", lambda value: float.hex(value)),
    (complex, "complex", lambda value: [complex.__repr__(value)]),
    (str, "str", lambda value: str.__str__(value)),
    (bytes, "bytes", lambda value: bytes.hex(value)),
    (bytearray, "bytes", lambda value: bytearray.hex(value)),
    (Fraction, "fraction", lambda value: [hex(vars(Fraction)[part].fget(value)) for part in PARTS]),
    (Decimal, "decimal", lambda value: Decimal.__str__(value)),
    (datetime.datetime, "datetime", lambda value: datetime.datetime.isoformat(value)),
    (datetime.date, "date", lambda value: datetime.date.isoformat(value)),
    (datetime.time, "time", lambda value: datetime.time.isoformat(value)),
    (datetime.timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    (range, "range", lambda value: [hex(value.start), hex(value.stop), hex(value.step)]),
]
MANY: list[tuple[type, str, Callable[[Any], Any]]] = [
    (list, "list", list.__iter__),
    (tuple, "tuple", tuple.__iter__),
    (set, "set", set.__iter__),
    (frozenset, "set", frozenset.__iter__),
    (deque, "deque", deque.__iter__),
    (type({}.keys()), "set", iter),
    (type({}.items()), "set", iter),
]
_now: list[list[Any]] = []  # observations of the present test


def plain(value: Any, depth: int = 0) -> list[Any]:
    """Return a value of Python's own types as JSON. Raises TypeError if another type is in it."""
    kind = type(value)
    if value is None:
        return ["none", None]
    if depth < DEEPEST:
        for base, name, read in NAIVE:
            if issubclass(kind, base):
                return [name, read(value)]
        for base, name, items in MANY:
            if issubclass(kind, base):
                return [name, [plain(item, depth + 1) for item in items(value)]]
        if issubclass(kind, dict):
            return ["dict", [[plain(key, depth + 1), plain(item, depth + 1)] for key, item in dict.items(value)]]
    raise TypeError(kind.__name__)


def _written(value: Any) -> list[Any]:
    try:
        return plain(value)
    except Exception:  # noqa: BLE001 - a value of the code under test may raise anything
        return ["other", None]


def _expectation(value: Any) -> list[Any]:
    if type(value).__name__ == "ApproxScalar":
        return ["approx", [plain(value.expected), plain(value.tolerance)]]
    return _written(value)


def observe(number: int, value: Any, *expected: Any) -> None:
    """Write down the value of an assertion, and in the good repository what it is compared with."""
    _now.append([number, _written(value), *map(_expectation, expected)])


class Raising:
    """Stands for `pytest.raises`: takes any exception and writes it down."""

    def __init__(self, number: int, *expected: Any, match: Any = None) -> None:
        self.number, self.expected = number, expected
        self.match = getattr(match, "pattern", match)
        self.value: Any = None
        self.exception: Any = None

    def __enter__(self) -> Raising:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.value = self.exception = error
        names = [each.__name__ for each in type.mro(kind)] if error is not None else []
        message = str(error) if error is not None else ""
        wanted = []
        for each in self.expected[:1]:
            classes = each if isinstance(each, tuple) else (each,)
            wanted = [_written([[one.__name__ for one in classes], self.match])]
        _now.append([self.number, _written([names, message]), *wanted])
        return error is None or isinstance(error, Exception)

    @property
    def type(self) -> Any:
        """Class of the exception, as of pytest's ExceptionInfo."""
        return type(self.value)

    def __str__(self) -> str:
        return str(self.value)


class Observer:
    """Writes one JSON line for each test that ran to its end."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[str, int]] = {}
        self.file = os.open(PATH, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Number the tests of a function: their ids change when parameters are taken out."""
        counts: Counter[str] = Counter()
        for item in items:
            name = item.nodeid.partition("[")[0]
            self.places[item.nodeid] = name, counts[name]
            counts[name] += 1

    def pytest_runtest_setup(self, item: Any) -> None:
        """Forget what the test before observed."""
        _now.clear()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write what a test observed."""
        if report.when == "call":
            record = {"test": report.nodeid, "place": self.places[report.nodeid], "values": _now, "ok": report.passed}
            os.write(self.file, f"{json.dumps(record)}\n".encode())


def pytest_configure(config: Any) -> None:
    """Start to write."""
    config.pluginmanager.register(Observer())
