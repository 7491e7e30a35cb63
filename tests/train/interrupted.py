"""Runs that die at a checkpoint."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from lmgym.train.loop import Training


class Interrupted(Exception):
    """Stands for the end of the process."""


@contextmanager
def dying(when: Callable[[Training], bool], *, written: bool) -> Iterator[None]:
    """Let runs in the block die at checkpoints for which `when` holds, once these are written or before."""
    save = Training.save

    def saved(self: Training) -> None:
        over = when(self)
        if written or not over:
            save(self)
        if over:
            raise Interrupted

    with patch.object(Training, "save", saved):
        yield


def interrupted(train: Callable[[bool], object]) -> int:
    """Train, dying at every third checkpoint before it is written and going on; how often it died."""
    calls = itertools.count(1)
    with dying(lambda _: next(calls) % 3 == 0, written=False):
        for deaths in range(40):
            try:
                train(deaths > 0)
            except Interrupted:
                continue
            return deaths
    raise AssertionError("it never ended")
