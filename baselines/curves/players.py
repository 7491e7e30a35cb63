"""Weak players whose games policies imitate, as `lmgym record TASK --model python:MODULE:FUNCTION`."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from lmgym.tasks.twenty_questions.env import TwentyQuestions
from lmgym.tasks.wordle.env import Wordle

OBJECTS = (  # of the night's twenty_questions
    *("cow", "penguin", "shark", "bee", "apple", "banana", "cherry", "watermelon"),
    *("bus", "bicycle", "helicopter", "sailboat", "hat", "sock", "coat", "belt"),
)
GAME = TwentyQuestions(only=OBJECTS)
NAMES = tuple(GAME.guess(each) for each in OBJECTS)
WORDLE = Wordle()
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


def mixed_question(messages: Sequence[Mapping[str, str]]) -> str:
    """Return a question about `OBJECTS` for twenty_questions, in one of two styles a game.

    In three games of four it names any object at every turn, whatever the answers. In the rest it asks the question
    that splits the objects left most evenly, and names one of the last two.
    """
    turns = [message["content"] for message in messages[1:]]
    hasty = turns[0] in NAMES if turns else CHANCE.random() < 0.75
    if hasty:
        return CHANCE.choice(NAMES)
    left = set(OBJECTS)
    for question, answer in zip(turns[0::2], turns[1::2], strict=True):
        meaning = GAME.table.understand(question)
        assert meaning is not None
        left &= meaning.yes if answer == "Yes." else set(OBJECTS) - meaning.yes
    if len(left) <= 2:
        return GAME.guess(CHANCE.choice(sorted(left)))
    best = min(GAME.table.predicates, key=lambda each: abs(len(left & each.members) - len(left) / 2))
    return best.phrasings[0]


def fitting_word(messages: Sequence[Mapping[str, str]]) -> str:
    """Return a random word that fits all colours so far, with spaces between its letters, for wordle."""
    return " ".join(CHANCE.choice(_fitting(messages)))


def spaced_word(messages: Sequence[Mapping[str, str]]) -> str:
    """Return a word with spaces between its letters for wordle, as in LMRL-Gym's data.

    In one of three turns it is drawn among the words that fit all colours so far, else among all words.
    """
    return " ".join(CHANCE.choice(_fitting(messages) if CHANCE.random() < 1 / 3 else WORDLE.words))


def _fitting(messages: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the words of wordle that fit all colours so far."""
    turns = [message["content"].replace(" ", "").strip() for message in messages[1:]]
    return list(WORDLE.fitting(list(zip(turns[0::2], turns[1::2], strict=True))))
