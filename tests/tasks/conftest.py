"""Fixtures that the tests of all tasks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import episodes
import pytest

from lmgym.env.spec import TaskSpec

OpenEpisode = Callable[..., Any]


@pytest.fixture
def opened() -> Iterator[OpenEpisode]:
    """Return a function that opens an episode; its environment is closed after the test."""
    with ExitStack() as stack:

        def open_episode(task: str | TaskSpec, index: int = 0, **options: Any) -> Any:
            return stack.enter_context(closing(episodes.opened(task, index, **options)))

        yield open_episode
