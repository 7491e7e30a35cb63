"""Weak players whose games the night's starts imitate, as `lmgym record TASK --model python:MODULE:FUNCTION`."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from lmgym.tasks.twenty_questions.env import TwentyQuestions

OBJECTS = (  # of the night's twenty_questions
    *("cow", "penguin", "shark", "bee", "apple", "banana", "cherry", "watermelon"),
    *("bus", "bicycle", "helicopter", "sailboat", "hat", "sock", "coat", "belt"),
)
GAME = TwentyQuestions(only=OBJECTS)
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


def impatient_question(messages: Sequence[Mapping[str, str]]) -> str:
    """Return a question about the objects left of `OBJECTS`, for twenty_questions: every other time a name.

    Otherwise it is any question whose answer rules some of them out. One of the last two is always named.
    """
    left, turns = set(OBJECTS), [message["content"] for message in messages[1:]]
    for question, answer in zip(turns[0::2], turns[1::2], strict=True):
        meaning = GAME.table.understand(question)
        assert meaning is not None
        left &= meaning.yes if answer == "Yes." else set(OBJECTS) - meaning.yes
    if len(left) <= 2 or CHANCE.random() < 0.5:
        return GAME.guess(CHANCE.choice(sorted(left)))
    useful = [each for each in GAME.table.predicates if 0 < len(left & each.members) < len(left)]
    return CHANCE.choice(useful).phrasings[0]
