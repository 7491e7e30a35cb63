"""Weak players whose games the night's starts imitate, as `lmgym record TASK --model python:MODULE:FUNCTION`."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

CHANCE = random.Random(0)  # functions of `python:` get no seed; a process draws the same numbers in the same order


def guess_that_fits(messages: Sequence[Mapping[str, str]]) -> str:
    """Return a random number that the answers so far allow, for guess_number."""
    task, *turns = (message["content"] for message in messages)
    low, high = map(int, re.findall(r"\d+", task))
    for guess, answer in zip(turns[0::2], turns[1::2], strict=True):
        if answer == "higher":
            low = max(low, int(guess) + 1)
        else:
            high = min(high, int(guess) - 1)
    return str(CHANCE.randint(low, high))
