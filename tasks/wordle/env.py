"""Wordle: six tries at a hidden word.

LMRL-Gym draws a new word among those still possible after every try; hiding one word from the start has the same
distribution, since its colouring (without counting) tells all that its state remembers.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.wordle import SPEC

PROMPT = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8")
TRIES = 6
LETTERS = 5
FEWEST = 5  # words of which a fifth can be kept for testing
SHUFFLE = 5  # seed of the order in which secrets become instances


def colour_lmrl(guess: str, secret: str) -> str:
    """Return g where the letter is right, y where the secret has it anywhere, else b; letters are not counted."""
    return "".join(
        "g" if mine == its else "y" if mine in secret else "b" for mine, its in zip(guess, secret, strict=True)
    )


def colour_counting(guess: str, secret: str) -> str:
    """Return the colours of the printed game: a letter is g or y as often as the secret has it, y from the left."""
    left = Counter(its for mine, its in zip(guess, secret, strict=True) if mine != its)
    colours = ""
    for mine, its in zip(guess, secret, strict=True):
        elsewhere = mine != its and left[mine] > 0
        left[mine] -= elsewhere
        colours += "g" if mine == its else "y" if elsewhere else "b"
    return colours


COLOURINGS: Mapping[str, Callable[[str, str], str]] = {"lmrl": colour_lmrl, "counting": colour_counting}


class Wordle(TextEnv):
    """Guess a word in six tries; each wrong try costs 1. The score is 1 when found.

    `words` names a file of one word a line, such as LMRL-Gym's lists; a fifth of its words are the test split.
    """

    SPEC = SPEC

    def __init__(self, *, words: str | os.PathLike[str] | None = None, colouring: str = "lmrl", **common: Any) -> None:
        super().__init__(**common)
        self.check_choices(colouring=(colouring, COLOURINGS))
        self.colour = COLOURINGS[colouring]
        self.words = _read(words)
        self.secrets = _secrets(self.words, self.split)
        self.tries: list[tuple[str, str]] = []  # valid guesses and their colours
        self.left = TRIES

    def size(self) -> int:
        """Return the number of secrets."""
        return len(self.secrets)

    def begin(self, index: int) -> Reply:
        """Hide the word of this instance."""
        return self._hide(self.secrets[index])

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Hide `instance["word"]`."""
        word = instance.get("word")
        if word not in self.words:
            raise InstanceError(f"an instance of {self.task.id} is {{'word': one of its list}}; got {dict(instance)!r}")
        return self._hide(word)

    def act(self, action: str) -> Reply:
        """Colour a guess; a word that is not in the list costs a try and returns an empty line."""
        guess = parse_command(action).replace(" ", "").lower()
        self.left -= 1
        if guess == self.secret:
            return Reply(_line(self.colour(guess, self.secret)), done=True, score=1.0)
        lost = self.left == 0
        end: dict[str, Any] = {"reward": -1.0, "done": lost, "score": 0.0 if lost else None}
        if guess not in self.words:
            return Reply("\n", valid=False, **end)
        colours = self.colour(guess, self.secret)
        self.tries.append((guess, colours))
        return Reply(_line(colours), **end)

    def oracle(self) -> Iterator[str]:
        """Name the word."""
        yield self.secret

    def demonstrator(self) -> Iterator[str]:
        """Try the first word that fits all colours so far."""
        while True:
            yield next(self.fitting(self.tries))

    def fitting(self, tries: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Yield the words of the list that fit all tries, which are pairs of a word and its colours."""
        for word in self.words:
            if all(self.colour(guess, word) == colours for guess, colours in tries):
                yield word

    def admissible(self) -> list[str]:
        """Return every word of the list."""
        return list(self.words)

    def answer(self) -> str:
        """Return the hidden word."""
        return self.secret

    def _hide(self, word: str) -> Reply:
        self.secret, self.tries, self.left = word, [], TRIES
        return Reply(PROMPT)


def _line(colours: str) -> str:
    return " ".join(colours) + "\n"


def _read(path: str | os.PathLike[str] | None) -> list[str]:
    """Return the words of a list, each once, in alphabetical order."""
    try:
        source = files(__package__).joinpath("words.txt") if path is None else Path(path)
        words = source.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InstanceError(f"words={str(path)!r} cannot be read: {error}") from error
    for word in words:
        if len(word) != LETTERS or not (word.isascii() and word.isalpha() and word.islower()):
            raise InstanceError(f"words={str(path)!r}: {word!r} is not a word of five letters a to z")
    if len(set(words)) < FEWEST:
        raise InstanceError(f"words={str(path)!r} has {len(set(words))} words; both splits need {FEWEST} at least")
    return sorted(set(words))


def _secrets(words: Sequence[str], split: str) -> list[str]:
    """Return the secrets of a split: the last fifth of a fixed random order is for testing."""
    order = [words[i] for i in np.random.default_rng(SHUFFLE).permutation(len(words))]
    bound = len(order) * 4 // 5
    return order[bound:] if split == "test" else order[:bound]
