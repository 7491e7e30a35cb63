"""Guess a number between 1 and `highest`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from lmgym.env.actions import parse_number
from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.guess_number import SPEC

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text())
STREAM = {"train": 0, "test": 1}
MOST = 10**15  # a guess is read as a float, which holds these numbers exactly


@lru_cache(maxsize=1024)  # the tries of a group open the same instance
def hidden(split: str, index: int, highest: int) -> int:
    """Draw the number of an instance."""
    return int(np.random.default_rng([STREAM[split], index]).integers(1, highest + 1))


class GuessNumber(TextEnv):
    """A hidden number in [1, highest]; guesses are answered with higher, lower or correct. Score 1 when found."""

    SPEC = SPEC

    def __init__(self, *, highest: int = 100, **common: Any) -> None:
        super().__init__(**common)
        if not 1 <= highest <= MOST:
            raise InstanceError(f"{self.task.id}: highest is 1 to {MOST:,}; got {highest}")
        self.highest = highest
        self.prompt = PROMPT.substitute(highest=highest).strip()

    def begin(self, index: int) -> Reply:
        """Hide the number of this instance."""
        self.number = hidden(self.split, index, self.highest)
        self.low, self.high = 1, self.highest
        return Reply(self.prompt)

    def act(self, action: str) -> Reply:
        """Compare a guess with the number."""
        guess = parse_number(action)
        if guess is None or not guess.is_integer():
            return Reply("Answer with one whole number.", valid=False)
        if guess == self.number:
            return Reply("Correct!", reward=1.0, done=True, score=1.0)
        if guess < self.number:
            self.low = max(self.low, int(guess) + 1)
            return Reply("higher")
        self.high = min(self.high, int(guess) - 1)
        return Reply("lower")

    def oracle(self) -> Iterator[str]:
        """Name the number."""
        yield str(self.number)

    def demonstrator(self) -> Iterator[str]:
        """Bisect the remaining range."""
        while True:
            yield str((self.low + self.high) // 2)

    def admissible(self) -> list[str]:
        """Return every number of the range."""
        return [str(number) for number in range(1, self.highest + 1)]
