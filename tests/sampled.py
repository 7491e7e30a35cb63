"""A sample of many cases for the slow tests; the others are run by `make test-whole`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], *, every: int = 3, name: Callable[[Any], str] | None = None) -> list[Any]:
    """Return the cases as parameters: one in `every` marked slow, the others whole. A tuple is several parameters."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            id=None if name is None else name(case),
            marks=pytest.mark.whole if number % every else pytest.mark.slow,
        )
        for number, case in enumerate(cases)
    ]
